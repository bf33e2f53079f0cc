import { rootSessionId } from '../../domain/ids.ts'
import { formatUsd } from '../../domain/money.ts'
import { isTerminal, type SessionHeader } from '../../domain/session.ts'
import { modelName, type TeamDefinition } from '../../domain/team.ts'
import type { End, LogSlots, Message, ResponseSlot } from '../../domain/turn.ts'
import { endOfAnswer } from '../../engine/end-session.ts'
import type { event } from '../event-shapes.ts'
import type { Answer } from '../shapes.ts'
import { time, usageView } from '../views/figures.ts'
import type { ApprovalEvent } from './approval-events.ts'

/**
 * The events of one session, derived from facts that are written once. What has been derived from a session once is the
 * beginning of all that is ever derived from it, so a number says how far a reader has come.
 */
export type EventView = Answer<typeof event>

/**
 * What comes next of a session's own events, without its log: of a session that has one round. The approvals must have
 * been read after the header, and consistently: then of one that has ended they are all there.
 * @param told events other than those of approvals
 * @param asked events of approvals
 */
export function ownEvents(
  h: SessionHeader,
  told: number,
  approvals: readonly ApprovalEvent[],
  asked: number,
): EventView[] {
  const before = [created(h), ...(h.startedAt === null ? [] : [started(h, h.startedAt)])]
  if (told > before.length) return []
  const between = h.startedAt === null ? [] : approvals.slice(asked).map((a) => a.event)
  return [...before.slice(told), ...between, ...(isTerminal(h) ? [ended(h)] : [])]
}

/** How far a reader has come in a session whose log is followed. */
export interface Place {
  /** 0: nothing was told, 1: that it was created, 2: that it has started */
  readonly step: number
  readonly round: number
  /** the round's end was told */
  readonly closed: number
  /** `told` events of call `n` were told */
  readonly n: number
  readonly told: number
  /** last accepted answer before call n; -1: none */
  readonly answered: number
  /** so many events of approvals were told, in all rounds */
  readonly asked: number
}

/** @param round 1 for the root, whose rounds follow each other; of a child the one that it was born in */
export const startOf = (round: number): Place => ({ step: 0, round, closed: 0, n: 0, told: 0, answered: -1, asked: 0 })

export interface Follow {
  readonly team: TeamDefinition
  /** its turns and tool calls are told as well */
  readonly turns: boolean
  /** all that can be told of its approvals; read after the log */
  readonly approvals: readonly ApprovalEvent[]
}

/** Whether more can be told of the session only with its log. */
export function needsLog(h: SessionHeader, p: Place, turns: boolean): boolean {
  if (h.startedAt === null) return false
  if (p.closed > 0) return h.round > p.round
  const beganLater = p.step < 2 && h.parentId === null && h.round > 1
  return turns || beganLater || (h.parentId === null && isOver(h, p.round))
}

const isOver = (h: SessionHeader, round: number): boolean => h.round > round || isTerminal(h)

/**
 * What comes behind a place, each event with the place behind it. The log must have been read after the header, and
 * consistently: then it holds whatever the header says has happened.
 * @param slots from call `n - 1` on; undefined: not needed
 */
export function* followedEvents(
  h: SessionHeader,
  slots: LogSlots | undefined,
  from: Place,
  follow: Follow,
): Generator<readonly [EventView, Place]> {
  let p = from
  const isRoot = h.parentId === null
  if (p.step === 0) {
    p = { ...p, step: 1 }
    yield [created(h), p]
  }
  if (p.step === 1) {
    const began = roundOfStart(h, slots)
    // rounds of a root that ended before anybody had claimed it have left nothing in the log
    while (began === undefined ? isOver(h, p.round) : p.round < began) {
      if (p.closed === 0) {
        p = { ...p, closed: 1 }
        yield [isRoot ? neverBegan(h, p.round) : ended(h), p]
      }
      if (h.round <= p.round) return
      p = { ...p, round: p.round + 1, closed: 0 }
      yield [reopened(h, p.round), p]
    }
    if (began === undefined) return
    p = { ...p, step: 2 }
    yield [started(h, h.startedAt!), p]
  }
  for (;;) {
    if (p.closed === 1) {
      if (h.round <= p.round) return
      p = { ...p, round: p.round + 1, closed: 0, n: p.n + 1, told: 0 }
      yield [reopened(h, p.round), p]
    }
    const call = slots && readCall(h, slots, p, follow.team)
    // behind the answer that they are about; the log goes on behind them only when nothing can come to them any more
    while (p.told === 0 && isNext(follow.approvals[p.asked], p, follow.turns)) {
      p = { ...p, asked: p.asked + 1 }
      yield [follow.approvals[p.asked - 1]!.event, p]
    }
    if (!call) return
    while (follow.turns && p.told < call.events.length) {
      const next = call.events[p.told]!
      p = { ...p, told: p.told + 1 }
      yield [next, p]
    }
    if (call.end) {
      if (!isOver(h, p.round)) return
      p = { ...p, closed: 1, answered: call.answered }
      yield [isRoot ? endedBy(h, p.round, call.end) : ended(h), p]
    } else if (call.whole) p = { ...p, n: p.n + 1, told: 0, answered: call.answered }
    else return
  }
}

/** Where the log is not followed, the round says what comes before what. */
const isNext = (a: ApprovalEvent | undefined, p: Place, turns: boolean): boolean =>
  a !== undefined && a.round <= p.round && (!turns || a.n < p.n)

/** The round in which the session was claimed first; undefined: it never was. */
function roundOfStart(h: SessionHeader, slots: LogSlots | undefined): number | undefined {
  if (h.startedAt === null) return undefined
  if (h.parentId !== null || h.round === 1) return h.round
  // an intent that rode on the claim is of round 1; without any slot it is in its first round still
  return h.first ? 1 : (slots?.requests.get(0)?.round ?? h.round)
}

interface CallFacts {
  readonly events: readonly EventView[]
  readonly answered: number
  /** nothing more can come of it */
  readonly whole: boolean
  /** the log was closed here */
  readonly end?: { readonly end: End; readonly at: number }
}

/** Undefined: the log does not reach so far. */
function readCall(h: SessionHeader, slots: LogSlots, p: Place, team: TeamDefinition): CallFacts | undefined {
  const { n, answered } = p
  const { sessionId } = h
  const request = slots.requests.get(n)
  const packed = n === 0 ? h.first : slots.responses.get(n - 1)?.next
  if (!packed && !request) return undefined
  const events: EventView[] = []
  if (!packed) events.push(...results(sessionId, answered, request!.messages, request!.at))
  const intent = packed ?? request!.intent
  if (!intent) {
    const end = request!.end && { end: request!.end, at: request!.at }
    return { events, answered, whole: true, ...(end && { end }) }
  }
  const { agent, at } = intent
  const model = modelName(team, intent.model)
  events.push({ type: 'turn.started', sessionId, at: time(at), turn: n, agent, model })
  const response = slots.responses.get(n)
  if (!response) return { events, answered, whole: false }
  const endedAt = response.startedAt + response.durationMs
  events.push(turnFinished(sessionId, response, at))
  if (response.results) events.push(...results(sessionId, n, response.results, endedAt))
  const accepted = response.outcome === 'accepted'
  const last = accepted && !response.message?.toolCalls.length ? endOfAnswer(response) : undefined
  const end = response.end ?? last
  return { events, answered: accepted ? n : answered, whole: true, ...(end && { end: { end, at: endedAt } }) }
}

/**
 * An outcome as it was put. One with a bound was written off, or given up before its call: what has become known of it
 * since may have replaced what it said, so of that nothing is told.
 */
function turnFinished(sessionId: string, r: ResponseSlot, askedAt: number): EventView {
  const givenUp = r.outcome === 'none' && r.cause === undefined
  const outcome = !r.bound ? (r.outcome === 'accepted' ? 'accepted' : 'failed') : givenUp ? 'none' : 'unknown'
  const known = !r.bound
  return {
    type: 'turn.finished',
    sessionId,
    at: time(known ? r.startedAt + r.durationMs : askedAt),
    turn: r.n,
    outcome,
    cause: known ? (r.cause ?? null) : null,
    usage: known ? usageView({ ...r.usage, calls: 1 }) : null,
    costUsd: known && r.cost !== null ? formatUsd(r.cost) : null,
    toolCalls: known ? (r.message?.toolCalls ?? []).map(({ id, name }) => ({ id, name })) : [],
  }
}

const results = (sessionId: string, turn: number, messages: readonly Message[], at: number): EventView[] =>
  messages.flatMap((m): EventView[] => {
    if (m.role !== 'tool') return []
    const { toolCallId, toolName, isError = false } = m
    return [{ type: 'tool.result', sessionId, at: time(at), turn, toolCallId, toolName, isError }]
  })

function created(h: SessionHeader): EventView {
  const { sessionId, agent, depth, taskPreview } = h
  const inList = h.kind === 'task'
  if (h.kind === 'group') throw new Error('a group is not shown')
  return {
    type: 'session.created',
    sessionId,
    at: time(h.createdAt),
    parentSessionId: inList ? rootSessionId(h.runId) : h.parentId,
    kind: h.kind,
    ordinal: inList ? h.via.index : h.ordinal,
    agent,
    depth,
    task: taskPreview,
  }
}

const started = ({ sessionId }: SessionHeader, at: number): EventView => ({
  type: 'session.started',
  sessionId,
  at: time(at),
})

/** How a session has ended that never goes on. */
const ended = (h: SessionHeader): EventView => ({
  type: 'session.finished',
  sessionId: h.sessionId,
  at: time(h.finishedAt ?? h.updatedAt),
  round: h.round,
  status: h.status as End['status'],
  stopReason: h.stopReason,
  error: h.error,
})

/** How a round of the root has ended: by the slot that closed its log, because the header goes on. */
const endedBy = (h: SessionHeader, round: number, { end, at }: { end: End; at: number }): EventView => ({
  type: 'session.finished',
  sessionId: h.sessionId,
  at: time(at),
  round,
  status: end.status,
  stopReason: end.reason,
  error: end.error ?? null,
})

/** Only a cancel ends a root that nobody has claimed. */
const neverBegan = (h: SessionHeader, round: number): EventView => ({
  type: 'session.finished',
  sessionId: h.sessionId,
  at: null,
  round,
  status: 'cancelled',
  stopReason: 'cancelled',
  error: null,
})

const reopened = ({ sessionId }: SessionHeader, round: number): EventView => ({
  type: 'session.reopened',
  sessionId,
  at: null,
  round,
})
