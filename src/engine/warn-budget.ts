import { isNearlySpent } from '../domain/budget.ts'
import type { Amount } from '../domain/money.ts'
import type { Run, RunRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'

type Ctx = Pick<EngineContext, 'store' | 'clock' | 'log' | 'metrics'>

/**
 * Warns once when 80 per cent of a run's limit are spent. The root's header says the limit (its share) and which it is, so
 * nothing is read or written before that.
 * @param spent everything known of the run, and everything unknown at its bound; may lag behind
 * @param seen the run, where it is at hand; it may be old
 * @returns whether this limit is known to have been warned of
 */
export async function warnBudget(ctx: Ctx, root: SessionHeader, spent: Amount, seen?: Run): Promise<boolean> {
  if (!isNearlySpent(root.share, spent)) return false
  const ref: RunRef = { tenant: root.tenant, runId: root.runId }
  if (isWarned(seen, root)) return true
  const run = await ctx.store.getRun(ref, { consistent: false })
  if (!run || isWarned(run, root)) return run !== undefined
  const at = ctx.clock.now()
  const warned = await ctx.store.warnBudget(ref, root.limitSeq, at)
  if (!warned.written) return false
  ctx.log.info('80 per cent of the budget are spent', { ...ref, team: run.team })
  ctx.metrics?.budgetWarned({ ...ref, team: run.team, at })
  return true
}

const isWarned = (run: Run | undefined, root: SessionHeader): boolean =>
  run?.budgetWarned !== undefined && run.budgetWarned !== null && run.budgetWarned.limitSeq >= root.limitSeq
