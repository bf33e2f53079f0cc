import { divideShare } from '../domain/budget.ts'
import { rootSessionId } from '../domain/ids.ts'
import { type Amount, ZERO } from '../domain/money.ts'
import { effectiveLimit } from '../domain/outer-limit.ts'
import type { Run } from '../domain/run.ts'
import type { SessionHeader, SessionKind } from '../domain/session.ts'
import { canDelegate, findAgent, type TeamDefinition } from '../domain/team.ts'
import { holdFor } from './estimate.ts'

/** What is particular to one new session. */
export interface NewSession {
  readonly sessionId: string
  readonly parentId: string | null
  readonly ordinal: number
  readonly agent: string | null
  readonly kind: SessionKind
  readonly depth: number
  /** the run's round in which it is born */
  readonly round: number
  readonly via: SessionHeader['via']
  readonly width: number
  readonly share: Amount
  readonly taskPreview: string | null
  readonly now: number
}

/** A header as it is born: queued, never claimed, with its share divided. */
export function newHeader(run: Run, team: TeamDefinition, s: NewSession): SessionHeader {
  const agent = s.agent === null ? undefined : findAgent(team, s.agent)
  const kind = !agent ? 'list' : canDelegate(agent) ? 'delegating' : 'leaf'
  const money = divideShare(s.share, {
    kind,
    limit: effectiveLimit(run),
    hold: agent ? holdFor(team, agent, s.now) : ZERO,
  })
  return {
    tenant: run.tenant,
    runId: run.runId,
    sessionId: s.sessionId,
    parentId: s.parentId,
    ordinal: s.ordinal,
    agent: s.agent,
    kind: s.kind,
    depth: s.depth,
    round: s.round,
    limitSeq: s.parentId === null ? run.limitSeq : 0,
    via: s.via,
    status: 'queued',
    stop: null,
    stopReason: null,
    error: null,
    attempt: 0,
    driver: null,
    lease: null,
    continuations: 0,
    continuationsBefore: 0,
    waits: 0,
    asks: new Set(),
    wakeAt: null,
    width: s.width,
    share: s.share,
    own: money.own,
    avail: money.avail,
    taken: ZERO,
    lent: {},
    given: ZERO,
    returned: {},
    next: 0,
    deleg: { turn: -1, from: 0, count: 0, share: ZERO, funded: 0 },
    pending: new Set(),
    waitingOn: new Set(),
    waitAll: false,
    settled: 0,
    needs: new Set(),
    wants: new Set(),
    rows: [],
    unknowns: {},
    kids: {},
    kidsSessions: 0,
    seen: {},
    v: 0,
    first: null,
    createdAt: s.now,
    startedAt: null,
    updatedAt: s.now,
    finishedAt: null,
    // no texts in the header of a session that delegates: each of its children's settlements would pay for them
    taskPreview: kind === 'leaf' ? s.taskPreview : null,
    outputPreview: null,
    finalTurn: null,
  }
}

/** The root's header, from the run's own item: whoever finds it missing can make it. */
export function rootHeader(run: Run, team: TeamDefinition, now: number): SessionHeader {
  return newHeader(run, team, {
    sessionId: rootSessionId(run.runId),
    parentId: null,
    ordinal: 0,
    agent: run.agent,
    kind: 'root',
    depth: 0,
    round: 1,
    via: { turn: null, index: 0 },
    width: run.maxConcurrency,
    share: effectiveLimit(run),
    taskPreview: null,
    now,
  })
}
