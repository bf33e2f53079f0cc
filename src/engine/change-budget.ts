import { isUnlimited } from '../domain/budget.ts'
import { SubledgerError } from '../domain/errors.ts'
import { rootSessionId } from '../domain/ids.ts'
import { type Amount, add, sub, UNLIMITED } from '../domain/money.ts'
import { effectiveLimit } from '../domain/outer-limit.ts'
import type { Run, RunRef } from '../domain/run.ts'
import { isTerminal } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { giveBack } from './give-back.ts'
import { type Budget, limitOf } from './limit.ts'
import { reopenRoot } from './open-round.ts'
import { wakeNeedy } from './wake-needy.ts'

type Ctx = Pick<EngineContext, 'store' | 'invoker' | 'clock' | 'settings' | 'outerLimits'>

/**
 * Sets the limit of a run anew; what is not given stays. More of it lets those go on who wait for money, and a run that
 * has ended for want of it; less than what is spent and held stops new holds, while what sessions own may still be spent.
 * @throws SubledgerError unknown_run, bad_request
 */
export async function changeBudget(ctx: Ctx, ref: RunRef, budget: Budget): Promise<Run> {
  const asked = limitOf(budget)
  let reopens = false
  for (;;) {
    const run = await ctx.store.getRun(ref, { consistent: true })
    if (!run) throw new SubledgerError('unknown_run', `There is no run ${ref.runId}.`)
    checkParts(run, budget)
    const limit: Amount = {
      usd: budget.usd === undefined ? run.limit.usd : asked.usd,
      tok: budget.tokens === undefined ? run.limit.tok : asked.tok,
    }
    const raised = limit.usd > run.limit.usd || limit.tok > run.limit.tok
    const now = ctx.clock.now()
    // what its last round held of the limits outside goes back before the next one begins
    if (run.status === 'waiting' && run.grants.length > 0) {
      await giveBack(ctx, ref)
      continue
    }
    const resume = run.status === 'waiting' && raised ? { dueAt: now + ctx.settings.eventAgeMs } : null
    const changed = await ctx.store.changeLimit(ref, {
      seen: run,
      limit,
      resume,
      raised: raised && run.status === 'running',
      // nobody else would look at it before its next round, or while all of it waits for something that is days away
      ...(isTerminal(run) && { dueAt: now + ctx.settings.eventAgeMs }),
      ...(run.status === 'running' && { dueAt: now }),
      now,
    })
    // a refusal may be this write's own, when its first answer was lost: then it is this call that opens the round
    reopens ||= resume !== null
    if (!changed.written) continue
    await takeLimit(ctx, changed.item)
    if (reopens && changed.item.status === 'running') await reopenRoot(ctx, changed.item)
    return changed.item
  }
}

/** A run that waits goes on: a limit outside of it has enough again, or it was given more before it lay down. */
export async function resumeRun(ctx: Ctx, run: Run): Promise<void> {
  const now = ctx.clock.now()
  const resume = { dueAt: now + ctx.settings.eventAgeMs }
  const changed = await ctx.store.changeLimit(run, { seen: run, limit: run.limit, resume, now })
  const seen = changed.written ? changed.item : await ctx.store.getRun(run, { consistent: true })
  // refused by somebody else's write, or by this one's own, when its first answer was lost: both have opened the round
  if (seen?.status !== 'running' || seen.round !== run.round + 1) return
  await takeLimit(ctx, seen)
  await reopenRoot(ctx, seen)
}

/** Shares are dealt out by what is limited: that cannot change under way. */
function checkParts(run: Run, budget: Budget): void {
  if (isUnlimited(run.limit)) {
    throw new SubledgerError('bad_request', 'This run was started without a budget: none can be set afterwards.')
  }
  const wrong =
    budget.usd !== undefined && run.limit.usd >= UNLIMITED
      ? 'usd'
      : budget.tokens !== undefined && run.limit.tok >= UNLIMITED
        ? 'tokens'
        : undefined
  if (wrong === undefined) return
  const message = `this run was started without a budget in ${wrong}: none can be set afterwards`
  throw new SubledgerError('bad_request', `/${wrong}: ${message}.`, { issues: [{ path: `/${wrong}`, message }] })
}

/** The root takes the run's limit in; the sweep does it where the caller has died before. */
export async function takeLimit(ctx: Pick<EngineContext, 'store' | 'invoker' | 'clock'>, seen: Run): Promise<void> {
  const ref = { tenant: seen.tenant, runId: seen.runId, sessionId: rootSessionId(seen.runId) }
  for (;;) {
    const run = await ctx.store.getRun(seen, { consistent: true })
    const root = await ctx.store.getHeader(ref)
    if (!run || !root || root.limitSeq >= run.limitSeq) return
    // what it has given up is no part of what it has
    const limit = add(effectiveLimit(run), root.given)
    const to = { seq: run.limitSeq, limit, more: sub(limit, root.share), now: ctx.clock.now() }
    const taken = await ctx.store.takeLimit(ref, root.limitSeq, to)
    if (!taken.written) continue
    if (!isTerminal(taken.item)) await wakeNeedy(ctx, ref, taken.item)
    return
  }
}
