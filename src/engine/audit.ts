import { isUnlimited } from '../domain/budget.ts'
import { SubledgerError } from '../domain/errors.ts'
import { rootSessionId } from '../domain/ids.ts'
import { effectiveLimit } from '../domain/outer-limit.ts'
import { hourOf, sumRows, type UsageItem, usageDayOf } from '../domain/report.ts'
import type { Run, RunRef } from '../domain/run.ts'
import { isTerminal, type SessionHeader } from '../domain/session.ts'
import type { ResponseSlot } from '../domain/turn.ts'
import type { BookRow } from '../domain/usage.ts'
import type { Store } from '../ports.ts'
import {
  type AuditDifference,
  type AuditedSession,
  checkCalls,
  checkChildren,
  checkMoney,
  checkOwn,
  checkPlaces,
  checkRun,
  Findings,
  hasEnded,
} from './audit-checks.ts'
import type { EngineContext } from './context.ts'
import { findDefinition } from './definition.ts'
import { namedRows, readChain } from './usage-item.ts'

/** What an audit has looked at and found. */
export interface AuditReport {
  readonly runId: string
  readonly status: Run['status']
  /** nothing differs */
  readonly balanced: boolean
  readonly checked: {
    readonly calls: number
    readonly sessions: number
    readonly usageItems: number
  }
  /** sessions that have not ended: their totals are not final, so they are not compared */
  readonly live: number
  /** how many numbers differ */
  readonly differing: number
  /** the first 1,000 of them */
  readonly differences: readonly AuditDifference[]
}

/** A run that is wrong everywhere must still fit an answer. */
const MOST_SHOWN = 1_000

/**
 * Recomputes a run from its calls up: calls → sessions' own rows → what has settled into their parents → the run →
 * usage items and the reports that they are in. Reads the whole run, consistently.
 * @throws SubledgerError unknown_run
 */
export async function auditRun(ctx: Pick<EngineContext, 'store' | 'teams'>, ref: RunRef): Promise<AuditReport> {
  const { store } = ctx
  const run = await store.getRun(ref, { consistent: true })
  if (!run) throw new SubledgerError('unknown_run', `There is no run ${ref.runId}.`)
  const f = new Findings()
  const all = await readSessions(store, ref, f)
  const ended = [...all.values()].filter(hasEnded)
  for (const s of all.values()) checkCalls(f, s)
  for (const s of ended) {
    checkOwn(f, s)
    checkChildren(f, s.header, all)
    if (!isUnlimited(effectiveLimit(run))) checkMoney(f, s, run.limit, run.granted !== null)
  }
  const rootId = rootSessionId(run.runId)
  checkPlaces(f, rootId, all)
  let usageItems = 0
  if (isTerminal(run)) {
    const root = all.get(rootId)?.header
    if (root) {
      checkRun(f, run, root, [...all.values()])
      usageItems = await checkUsage(ctx, f, run, root, all)
    } else
      f.add(
        { sessionId: null, name: 'the run' },
        'root',
        'missing',
        rootId,
        `the run: its root, session ${rootId}, is missing`,
      )
  }
  // what was taken back before it was made is no call
  const made = (s: { responses: ReadonlyMap<number, ResponseSlot> }) =>
    [...s.responses.values()].filter((r) => r.outcome !== 'none').length
  const calls = [...all.values()].reduce((n, s) => n + made(s), 0)
  return {
    runId: run.runId,
    status: run.status,
    balanced: f.differences.length === 0,
    checked: { calls, sessions: all.size, usageItems },
    live: all.size - ended.length,
    differing: f.differences.length,
    differences: f.differences.slice(0, MOST_SHOWN),
  }
}

async function readSessions(store: Store, ref: RunRef, f: Findings): Promise<Map<string, AuditedSession>> {
  const logs = new Map<string, { responses: Map<number, ResponseSlot>; intents: Set<number> }>()
  const logOf = (id: string) => {
    let log = logs.get(id)
    if (!log) logs.set(id, (log = { responses: new Map(), intents: new Set() }))
    return log
  }
  let after: string | undefined
  do {
    const page = await store.listBookSlots(ref, { ...(after !== undefined && { after }) })
    for (const slot of page.items) {
      const log = logOf(slot.sessionId)
      if ('fault' in slot) {
        const of = { sessionId: slot.sessionId, turn: slot.n, name: `call ${slot.n}` }
        f.add(
          of,
          'item',
          'unreadable',
          'a slot',
          `call ${slot.n} of session ${slot.sessionId} cannot be read: ${slot.fault}`,
        )
      } else if ('response' in slot) {
        log.responses.set(slot.n, slot.response)
        if (slot.response.next) log.intents.add(slot.n + 1)
      } else if (slot.request.intent) log.intents.add(slot.n)
    }
    after = page.next
  } while (after !== undefined)

  const all = new Map<string, AuditedSession>()
  do {
    const page = await store.listHeaders(ref, { consistent: true, ...(after !== undefined && { after }) })
    for (const header of page.items) {
      const log = logOf(header.sessionId)
      if (header.first) log.intents.add(0)
      all.set(header.sessionId, { header, ...log })
    }
    after = page.next
  } while (after !== undefined)
  for (const id of logs.keys()) {
    if (all.has(id)) continue
    f.add(
      { sessionId: id, name: id },
      'header',
      'missing',
      id,
      `session ${id}: it has calls, and its header is missing`,
    )
  }
  return all
}

/** Own rows of all sessions → the run's usage items, round by round; and each item is in the report of its day. */
async function checkUsage(
  ctx: Pick<EngineContext, 'store' | 'teams'>,
  f: Findings,
  run: Run,
  root: SessionHeader,
  all: ReadonlyMap<string, AuditedSession>,
): Promise<number> {
  const team = await findDefinition(ctx, run)
  let said: readonly BookRow[] = namedRows(
    [...all.values()].flatMap((s) => s.header.rows),
    team,
  )
  let why = 'the rows of its sessions'
  let items = 0
  let at: number | null = run.reportedAt === null ? null : root.finishedAt
  for (let round = run.round; at !== null && round >= 1; round--) {
    const of = { sessionId: null, name: `the usage item of round ${round}` }
    const chain = await readChain(ctx, { tenant: run.tenant, runId: run.runId, round, at })
    if (!chain) {
      f.add(of, 'usage', 'missing', 'an item', `the usage item of round ${round} is missing`)
      break
    }
    f.rows(of, 'reported', sumRows(chain.last.base, chain.last.rows), sumRows(said), why)
    for (const [i, item] of chain.items.entries()) {
      items++
      const before = chain.items[i - 1]
      if (before) f.rows(of, 'base', item.base, sumRows(before.base, before.rows), 'the items before it')
      if (await isReported(ctx.store, item)) continue
      const name = item.from === null ? of.name : `the correction of round ${round} from version ${item.from}`
      f.add(of, 'report', 'missing', usageDayOf(item).day, `${name} is in no report of ${usageDayOf(item).day}`)
    }
    said = chain.own.base
    why = `the base of round ${round}`
    at = chain.own.before
  }
  return items
}

/** While its hour is open an item counts by itself; then in the fold, or beside it. */
async function isReported(store: Store, item: UsageItem): Promise<boolean> {
  const day = await store.getUsageDay(usageDayOf(item))
  if (!day) return false
  if (hourOf(item.at) >= day.closing) return true
  const taken = await store.isUsageTaken(item)
  return taken === undefined || taken || (await store.hasLateUsage(item))
}
