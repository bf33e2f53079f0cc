import { rootSessionId } from '../domain/ids.ts'
import { DUE_SHARDS } from '../domain/limits.ts'
import { isGone, type Run, type RunRef, type SessionRef } from '../domain/run.ts'
import { isClaimable, isTerminal, mayRun, type SessionHeader } from '../domain/session.ts'
import { amountOf, booksOf, unknown } from '../domain/usage.ts'
import { passDecisions } from './approve.ts'
import { stopAll } from './cancel-run.ts'
import { resumeRun, takeLimit, wasRaised } from './change-budget.ts'
import type { EngineContext, Invocation } from './context.ts'
import { definitionOf } from './definition.ts'
import { purgeRun } from './delete-run.ts'
import { failsAt, nextLook } from './due-times.ts'
import { foldUsage } from './fold-usage.ts'
import { giveBack, hasEnoughAgain } from './give-back.ts'
import { tidyGrants } from './grants.ts'
import { rootHeader } from './new-header.ts'
import { reopenRoot } from './open-round.ts'
import { repair, settleUp } from './settle.ts'
import { finishGiving } from './survey.ts'
import { wakeNeedy } from './wake-needy.ts'
import { warnBudget } from './warn-budget.ts'

/** What a sweep found and did, for the log. */
export interface SweepReport {
  /** runs looked at */
  readonly runs: number
  /** sessions that were sent an event again */
  readonly invoked: number
  /** ended sessions that were made to settle, or whose late answers were passed up */
  readonly settled: number
  /** hours of usage folded */
  readonly folded: number
  /** items of runs that are gone removed */
  readonly purged: number
  /** runs and days whose look failed; the next sweep tries again */
  readonly failed: number
}

const PAGE = 50
/** A sweep stops taking runs when less than this is left of its invocation. */
const LAST_RUN_MS = 10_000
/** A run whose sessions all wait for something outside is looked at this often. */
const QUIET_MS = 24 * 3_600_000

const NOTHING: SweepReport = { runs: 0, invoked: 0, settled: 0, folded: 0, purged: 0, failed: 0 }

/** Looks at every run whose due time has come, and folds what is over. May run at any time and beside itself. */
export async function sweep(ctx: EngineContext, invocation: Invocation): Promise<SweepReport> {
  let report = NOTHING
  for (let shard = 0; shard < DUE_SHARDS; shard++) {
    let after: string | undefined
    do {
      const page = await ctx.store.dueRuns(shard, ctx.clock.now(), {
        limit: PAGE,
        ...(after !== undefined && { after }),
      })
      for (const ref of page.items) {
        if (invocation.deadlineAt - ctx.clock.now() < LAST_RUN_MS) return report
        report = sum(report, await lookSafely(ctx, ref, invocation))
      }
      after = page.next
    } while (after !== undefined)
  }
  const { hours, failed } = await foldUsage(ctx, invocation)
  return sum(report, { ...NOTHING, folded: hours, failed })
}

/** One run that cannot be looked at must not keep the others waiting. */
async function lookSafely(ctx: EngineContext, ref: RunRef, invocation: Invocation): Promise<SweepReport> {
  try {
    return await sweepRun(ctx, ref, invocation)
  } catch (fault) {
    ctx.log.error('could not sweep a run', { ...ref, fault: String(fault) })
    return { ...NOTHING, runs: 1, failed: 1 }
  }
}

const sum = (a: SweepReport, b: SweepReport): SweepReport => ({
  runs: a.runs + b.runs,
  invoked: a.invoked + b.invoked,
  settled: a.settled + b.settled,
  folded: a.folded + b.folded,
  purged: a.purged + b.purged,
  failed: a.failed + b.failed,
})

/**
 * Looks at one run now, due or not: what a dead letter asks for.
 * @param invocation how long there is time to remove what a run that is gone has written; left out: it is left alone
 */
export async function sweepRun(ctx: EngineContext, ref: RunRef, invocation?: Invocation): Promise<SweepReport> {
  const run = await ctx.store.getRun(ref, { consistent: true, gone: true })
  if (!run) return NOTHING
  if (isGone(run, ctx.clock.now())) return sweepGone(ctx, run, invocation)
  // before the headers are read: what it ends needs no event any more
  if (run.stop && run.status === 'running') await stopAll(ctx, run)
  const headers = await allHeaders(ctx, ref)
  const root = headers.get(rootSessionId(ref.runId))
  let invoked = 0
  let settled = 0
  if (!root) {
    await ctx.store.putHeader(rootHeader(run, await definitionOf(ctx, run), ctx.clock.now()))
    await ctx.invoker.invoke({ ...ref, sessionId: rootSessionId(ref.runId) })
    invoked++
  } else if (run.status === 'running' && isTerminal(root) && root.round < run.round) {
    await reopenRoot(ctx, run)
    invoked++
  }
  if (root && root.limitSeq < run.limitSeq) await takeLimit(ctx, run)
  if (root) await warnBudget(ctx, root, amountOf(booksOf([...headers.values()].flatMap((h) => h.rows))), run)
  if (run.granted && run.status === 'running') await tidyGrants(ctx, run)
  if (run.grants.length > 0 && run.status !== 'running') {
    await giveBack(ctx, run)
    settled++
  } else if (run.status === 'waiting' && (wasRaised(run) || (await hasEnoughAgain(ctx, run)))) {
    await resumeRun(ctx, run)
    invoked++
  }
  for (const h of headers.values()) {
    const found = await lookAtSession(ctx, run, h, headers)
    if (found === 'invoked') invoked++
    if (found === 'settled') settled++
  }
  await moveDue(ctx, run, headers)
  return { ...NOTHING, runs: 1, invoked, settled }
}

/** What it holds of limits goes back and late answers are booked first, so that the reports are whole; then everything goes. */
async function sweepGone(ctx: EngineContext, run: Run, invocation: Invocation | undefined): Promise<SweepReport> {
  if (!invocation || (run.dueAt !== null && run.dueAt > ctx.clock.now())) return NOTHING
  let settled = 0
  if (run.grants.length > 0) {
    await giveBack(ctx, run)
    settled++
  }
  if (unknown(run.books).calls > 0) {
    const headers = await allHeaders(ctx, run)
    for (const h of headers.values()) if ((await lookAtSession(ctx, run, h, headers)) === 'settled') settled++
  }
  return { ...NOTHING, runs: 1, settled, purged: await purgeRun(ctx, run, invocation) }
}

async function allHeaders(ctx: EngineContext, ref: RunRef): Promise<Map<string, SessionHeader>> {
  const headers = new Map<string, SessionHeader>()
  let after: string | undefined
  do {
    const page = await ctx.store.listHeaders(ref, { consistent: true, ...(after !== undefined && { after }) })
    for (const h of page.items) headers.set(h.sessionId, h)
    after = page.next
  } while (after !== undefined)
  return headers
}

type Headers = ReadonlyMap<string, SessionHeader>

async function lookAtSession(
  ctx: EngineContext,
  run: Run,
  h: SessionHeader,
  all: Headers,
): Promise<'invoked' | 'settled' | 'nothing'> {
  const ref: SessionRef = { tenant: run.tenant, runId: run.runId, sessionId: h.sessionId }
  const parent = h.parentId === null ? undefined : all.get(h.parentId)
  if (parent?.pending.has(h.ordinal) && !isTerminal(h)) await finishGiving(ctx, parent, h)
  if (isTerminal(h)) {
    const unsettled = parent ? parent.pending.has(h.ordinal) : run.status === 'running' && run.round === h.round
    if (unsettled) {
      await settleUp(ctx, ref)
      return 'settled'
    }
    const above = parent ? (parent.seen[h.ordinal]?.v ?? h.v) : run.status === 'running' ? h.v : run.v
    if (Object.keys(h.unknowns).length > 0 || above < h.v) {
      await repair(ctx, ref)
      return 'settled'
    }
    return 'nothing'
  }
  if (isAbandoned(ctx, h, parent)) {
    await ctx.invoker.invoke(ref)
    return 'invoked'
  }
  if (await passDecisions(ctx, ref, h)) return 'invoked'
  // whoever should have woken somebody here may have died before he did
  const short = h.needs.size > 0 || h.wants.size > 0
  if (short && h.updatedAt + ctx.settings.eventAgeMs <= ctx.clock.now()) {
    const woken = await wakeNeedy(ctx, ref, h)
    if (woken > 0) return 'invoked'
  }
  return 'nothing'
}

/** Nobody drives it, though somebody should. */
function isAbandoned(ctx: EngineContext, h: SessionHeader, parent: SessionHeader | undefined): boolean {
  const now = ctx.clock.now()
  if (h.status === 'running') return h.lease !== null && h.lease < now
  if (h.status === 'waiting') return isClaimable(h, now)
  return hasPlace(h, parent) && h.updatedAt + ctx.settings.eventAgeMs <= now
}

/** A child that is held back for width is nobody's lost event; one that has been stopped may always come. */
const hasPlace = (h: SessionHeader, parent: SessionHeader | undefined): boolean =>
  !parent || h.stop !== null || mayRun(parent, h.width).includes(h.ordinal)

/** Moves the run's due time to the next moment at which something could be found, or takes it off. */
async function moveDue(ctx: EngineContext, seen: Run, headers: Headers): Promise<void> {
  if (seen.dueAt === null) return
  const now = ctx.clock.now()
  if (seen.status === 'running') {
    await ctx.store.pushDue(seen, seen.dueAt, nextDue(ctx, headers, now))
    return
  }
  if (seen.dueAt > now) return
  if (seen.status === 'waiting') {
    if (now >= failsAt(seen, now)) await ctx.store.failWaiting(seen, seen.round, now)
    else await ctx.store.pushDue(seen, seen.dueAt, nextLook(seen, now))
    return
  }
  const run = await ctx.store.getRun(seen, { consistent: true })
  if (!run || run.dueAt === null || run.dueAt > now) return
  // where a run is not kept for ever, the next look is the one that removes it
  await ctx.store.undueRun(
    run,
    { v: run.v, dueAt: run.dueAt },
    run.expiresAt === null ? undefined : run.expiresAt * 1000,
  )
}

function nextDue(ctx: EngineContext, headers: Headers, now: number): number {
  const age = ctx.settings.eventAgeMs
  const times = [...headers.values()]
    .filter((h) => !isTerminal(h))
    .map((h) => {
      if (h.status === 'running') return h.lease !== null && h.lease >= now ? h.lease + 1 : now + age
      if (h.status === 'queued') return Math.max(h.updatedAt, now - age + 1_000) + age
      // it has just been sent an event, and until it comes the header says when it would have woken by itself
      if (isClaimable(h, now)) return now + age
      if (h.wakeAt !== null) return Math.max(h.wakeAt + 1, now + 1_000)
      return h.asks.size > 0 ? now + QUIET_MS : now + age
    })
  return times.length > 0 ? Math.min(...times) : now + age
}
