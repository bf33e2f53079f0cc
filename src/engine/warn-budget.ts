import { isNearlySpent } from '../domain/budget.ts'
import type { Amount } from '../domain/money.ts'
import type { Run, RunRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { netOf } from './look-outer.ts'

type Ctx = Pick<EngineContext, 'store' | 'clock' | 'log' | 'metrics'>

/**
 * Warns once when 80 per cent of a run's limit are spent. The root's header says how much it may spend, so nothing is read
 * or written before that; under limits outside of the run that is what it is granted, which is no reason to warn.
 * @param spent everything known of the run, and everything unknown at its bound; may lag behind
 * @param seen the run, where it is at hand; it may be old
 * @returns whether this limit is known to have been warned of
 */
export async function warnBudget(ctx: Ctx, root: SessionHeader, spent: Amount, seen?: Run): Promise<boolean> {
  if (!isNearlySpent(netOf(root), spent)) return false
  if (seen?.granted && !isNearlySpent(seen.limit, spent)) return false
  if (seen && seen.limitSeq >= root.limitSeq && isWarned(seen)) return true
  const ref: RunRef = { tenant: root.tenant, runId: root.runId }
  const run = await ctx.store.getRun(ref, { consistent: false })
  if (!run || !isNearlySpent(run.limit, spent)) return false
  if (isWarned(run)) return true
  const at = ctx.clock.now()
  const warned = await ctx.store.warnBudget(ref, run.budgetSeq, at)
  if (!warned.written) return false
  ctx.log.info('80 per cent of the budget are spent', { ...ref, team: run.team })
  ctx.metrics?.budgetWarned({ ...ref, team: run.team, at })
  return true
}

const isWarned = (run: Run): boolean => run.budgetWarned?.budgetSeq === run.budgetSeq
