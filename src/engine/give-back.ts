import { positive } from '../domain/budget.ts'
import { rootSessionId } from '../domain/ids.ts'
import { type Amount, add, isZero, min, sub, UNLIMITED, ZERO } from '../domain/money.ts'
import { eachKind, type Grant, limitedPart, spentOf } from '../domain/outer-limit.ts'
import { type Run, type RunRef, wasRaised } from '../domain/run.ts'
import { isTerminal, type SessionHeader, subtreeBooks } from '../domain/session.ts'
import { amountOf, booksOf } from '../domain/usage.ts'
import { dueAfter } from './due-times.ts'
import { type GrantContext, limitOfGrant } from './grants.ts'
import { isGrantable, lookOuter, netOf } from './look-outer.ts'
import { wakeWaiting } from './wake-waiting.ts'

/**
 * The round of a run is over: what it has not spent of the limits outside of it goes back to them. Its root gives it up
 * first, then each limit settles the run's hold, then the run holds nothing. Repeating it is safe.
 */
export async function giveBack(ctx: GrantContext, ref: RunRef): Promise<void> {
  again: for (;;) {
    const run = await ctx.store.getRun(ref, { consistent: true, gone: true })
    if (!run || run.status === 'running' || run.grants.length === 0) return
    const root = await ctx.store.getHeader({ ...ref, sessionId: rootSessionId(ref.runId) })
    if (!root || !isTerminal(root)) return
    const spent = amountOf(subtreeBooks(root))
    if (!(await leave(ctx, run, root, spent))) continue
    for (const grant of run.grants) {
      if (!(await settle(ctx, run, grant, limitedPart(run, spent)))) continue again
    }
    const granted = eachKind((k) => (run.granted![k] >= UNLIMITED ? UNLIMITED : spent[k]))
    const now = ctx.clock.now()
    // whoever ended it may have died before it went on
    const at = wasRaised(run) ? now : dueAfter(run, now)
    const to = { granted, grants: [], due: { at }, now }
    if ((await ctx.store.moveGrants(run, run, to)).written) return
  }
}

/** The root of an ended round keeps what has been spent. False: look again. */
async function leave(ctx: GrantContext, run: Run, root: SessionHeader, spent: Amount): Promise<boolean> {
  const extra = positive(limitedPart(run, sub(netOf(root), spent)))
  if (isZero(extra)) return true
  const idle = positive(limitedPart(run, sub(root.own, amountOf(booksOf(root.rows)))))
  const own = min(idle, extra)
  const written = await ctx.store.giveUp(root, {
    seenGiven: root.given,
    given: add(root.given, extra),
    seenOwn: root.own,
    own: sub(root.own, own),
    avail: sub(extra, own),
  })
  return written.written
}

/**
 * The limit is read before the run is looked at once more: what it holds then is of this round. False: somebody else has
 * given it all back, and the run may hold something for its next round already.
 */
async function settle(ctx: GrantContext, run: Run, grant: Grant, spent: Amount): Promise<boolean> {
  const ref = limitOfGrant(run, grant)
  for (;;) {
    const item = await ctx.store.getLimit(ref)
    const now = await ctx.store.getRun(run, { consistent: true, gone: true })
    if (now?.limitSeq !== run.limitSeq || now.status === 'running') return false
    if (!item) return true
    const mine = item.held[run.runId] ?? null
    const settled = await ctx.store.settleHold(ref, run.runId, mine, mine ? spentOf(run.grants, grant, spent) : ZERO)
    if (!settled.written) continue
    await wakeWaiting(ctx, ref, settled.item, run.runId, 2)
    return true
  }
}

/** Whether a run that stopped because a limit had too little left would be granted now what its next call may cost. */
export async function hasEnoughAgain(ctx: GrantContext, run: Run): Promise<boolean> {
  if (!run.short || !isGrantable(run)) return false
  return (await lookOuter(ctx, run, run.short.need)).enough
}

/** Notes why a run is about to stop, so that it goes on by itself. */
export async function noteShortage(ctx: GrantContext, ref: RunRef, need: Amount): Promise<void> {
  for (;;) {
    const run = await ctx.store.getRun(ref, { consistent: true })
    if (!run || !isGrantable(run) || run.status !== 'running' || run.short) return
    const { limits, resumeAt } = await lookOuter(ctx, run, limitedPart(run, need))
    if (resumeAt === null || limits.length === 0) return
    const short = { need: limitedPart(run, need), resumeAt }
    const to = { granted: run.granted!, grants: run.grants, short, now: ctx.clock.now() }
    if ((await ctx.store.moveGrants(run, run, to)).written) return
  }
}
