import { rootSessionId } from '../domain/ids.ts'
import { isGone, type Run, type RunRef, type SessionRef, wasRaised } from '../domain/run.ts'
import { isClaimable, isTerminal, mayRun, type SessionHeader } from '../domain/session.ts'
import { amountOf, booksOf, unknown } from '../domain/usage.ts'
import { passDecisions } from './approve.ts'
import { bringForward } from './bring-forward.ts'
import { stopAll } from './cancel-run.ts'
import { resumeRun, takeLimit } from './change-budget.ts'
import type { EngineContext, Invocation } from './context.ts'
import { definitionOf } from './definition.ts'
import { purgeRun } from './delete-run.ts'
import { dueAgain, expiryOf, failsAt, nextDue, nextLook } from './due-times.ts'
import { giveBack, hasEnoughAgain } from './give-back.ts'
import { tidyGrants } from './grants.ts'
import { headerOf } from './header-of.ts'
import { rootHeader } from './new-header.ts'
import { reopenRoot } from './open-round.ts'
import { repair, settleUp } from './settle.ts'
import { finishGiving } from './survey.ts'
import { wakeNeedy } from './wake-needy.ts'
import { warnBudget } from './warn-budget.ts'

/** What was found in a run and done, for the log. */
export interface Looked {
  /** sessions that were sent an event again */
  readonly invoked: number
  /** ended sessions that were made to settle, or whose late answers were passed up */
  readonly settled: number
  /** items of runs that are gone removed */
  readonly purged: number
}

export const NOTHING_FOUND: Looked = { invoked: 0, settled: 0, purged: 0 }

/** One run's sessions are looked at for so long in one go; the next look begins elsewhere among them. */
const LONGEST_LOOK_MS = 30_000

/**
 * Looks at one run now, due or not.
 * @param invocation how long there is time; left out: for ever, and what a run that is gone has written is left alone
 */
export async function sweepRun(ctx: EngineContext, ref: RunRef, invocation?: Invocation): Promise<Looked> {
  const run = await ctx.store.getRun(ref, { consistent: true, gone: true })
  if (!run) return NOTHING_FOUND
  if (isGone(run, ctx.clock.now())) return sweepGone(ctx, run, invocation)
  const began = ctx.clock.now()
  const until = Math.min(began + LONGEST_LOOK_MS, invocation?.deadlineAt ?? Number.POSITIVE_INFINITY)
  // before the headers are read: what it ends needs no event any more
  if (run.stop && run.status === 'running') await stopAll(ctx, run, { until, again: false })
  const headers = await allHeaders(ctx, ref)
  const root = headers.get(rootSessionId(ref.runId))
  let [invoked, settled, repaired] = [0, 0, 0]
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
  let whole = true
  for (const h of fromElsewhere([...headers.values()], began)) {
    if (ctx.clock.now() > until) {
      whole = false
      break
    }
    const found = await lookAtSession(ctx, run, h, headers)
    if (found === 'invoked') invoked++
    if (found === 'settled') settled++
    if (found === 'repaired') repaired++
  }
  await moveDue(ctx, run, headers, { whole, touched: invoked + settled > 0 })
  return { ...NOTHING_FOUND, invoked, settled: settled + repaired }
}

/**
 * Looks at one session of which Lambda gave up an event; at its whole run where that is the root, or has no header yet. The
 * rest of the run is left to the sweep, for which it becomes due: where all events of a run are given up, each letter is
 * about one session.
 */
export async function sweepSession(ctx: EngineContext, ref: SessionRef): Promise<Looked> {
  const run = await ctx.store.getRun(ref, { consistent: true })
  if (!run) return NOTHING_FOUND
  const h = await ctx.store.getHeader(ref)
  if (!h || h.parentId === null) return sweepRun(ctx, ref)
  const parent = await headerOf(ctx, { ...ref, sessionId: h.parentId })
  const found = await lookAtSession(ctx, run, h, new Map([[parent.sessionId, parent]]))
  await bringForward(ctx, ref, ctx.clock.now() + ctx.settings.eventAgeMs)
  const settled = found === 'settled' || found === 'repaired' ? 1 : 0
  return { ...NOTHING_FOUND, invoked: found === 'invoked' ? 1 : 0, settled }
}

/** What it holds of limits goes back and late answers are booked first, so that the reports are whole; then everything goes. */
async function sweepGone(ctx: EngineContext, run: Run, invocation: Invocation | undefined): Promise<Looked> {
  if (!invocation || (run.dueAt !== null && run.dueAt > ctx.clock.now())) return NOTHING_FOUND
  let settled = 0
  if (run.grants.length > 0) {
    await giveBack(ctx, run)
    settled++
  }
  if (unknown(run.books).calls > 0) {
    const headers = await allHeaders(ctx, run)
    for (const h of headers.values()) {
      // whose parent is removed already: all was repaired before anything was removed
      if (h.parentId !== null && !headers.has(h.parentId)) continue
      const found = await lookAtSession(ctx, run, h, headers)
      if (found === 'settled' || found === 'repaired') settled++
    }
  }
  return { ...NOTHING_FOUND, settled, purged: await purgeRun(ctx, run, invocation) }
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

/**
 * Another place to begin at each minute. A multiple of the golden ratio, so that looks which come to an end after a part
 * of a large run have been everywhere soon.
 */
function fromElsewhere<T>(all: readonly T[], now: number): readonly T[] {
  const start = Math.floor(((Math.floor(now / 60_000) * 0.618_033_988_75) % 1) * all.length)
  return [...all.slice(start), ...all.slice(0, start)]
}

type Headers = ReadonlyMap<string, SessionHeader>
type Found = 'invoked' | 'settled' | 'repaired' | 'nothing'

async function lookAtSession(ctx: EngineContext, run: Run, h: SessionHeader, all: Headers): Promise<Found> {
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
      return 'repaired'
    }
    return 'nothing'
  }
  if (isAbandoned(ctx, h, parent)) {
    await ctx.invoker.invoke(ref)
    return 'invoked'
  }
  if (await passDecisions(ctx, ref, h)) return 'invoked'
  // whoever should have woken somebody here may have died before he did; while it runs its heart beats, which says nothing
  const short = h.needs.size > 0 || h.wants.size > 0
  if (short && (h.status === 'running' || h.updatedAt + ctx.settings.eventAgeMs <= ctx.clock.now())) {
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

/**
 * Moves the run's due time to the next moment at which something could be found, or takes it off.
 * @param look `whole`: every session was looked at · `touched`: some are not as they were read any more
 */
async function moveDue(
  ctx: EngineContext,
  seen: Run,
  headers: Headers,
  look: { whole: boolean; touched: boolean },
): Promise<void> {
  if (seen.dueAt === null) return
  const now = ctx.clock.now()
  const soon = now + ctx.settings.eventAgeMs
  if (seen.status === 'running') {
    const found = nextDue(headers.values(), now, ctx.settings.eventAgeMs)
    const next = look.whole && !look.touched ? found : Math.min(found, soon)
    // who looks before the time puts the run off for nobody
    if (seen.dueAt <= now || next < seen.dueAt) await ctx.store.pushDue(seen, seen, next)
    return
  }
  if (seen.dueAt > now) return
  if (seen.status === 'waiting') {
    if (now >= failsAt(seen, now))
      await ctx.store.failWaiting(seen, seen.round, { now, expiresAt: expiryOf(ctx.settings.retentionMs, now) })
    else await ctx.store.pushDue(seen, seen, nextLook(seen, now))
    return
  }
  const run = await ctx.store.getRun(seen, { consistent: true })
  if (!run || run.dueAt === null || run.dueAt > now) return
  await ctx.store.undueRun(run, { v: run.v, dueAt: run.dueAt }, look.whole ? dueAgain(run, now) : soon)
}
