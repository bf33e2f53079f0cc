import { DUE_SHARDS } from '../domain/limits.ts'
import type { RunRef } from '../domain/run.ts'
import type { EngineContext, Invocation } from './context.ts'
import { foldUsage } from './fold-usage.ts'
import { type Looked, NOTHING_FOUND, sweepRun } from './sweep-run.ts'

/** What a sweep found and did, for the log. */
export interface SweepReport extends Looked {
  /** runs looked at */
  readonly runs: number
  /** hours of usage folded */
  readonly folded: number
  /** runs and days whose look failed; the next sweep tries again */
  readonly failed: number
}

const PAGE = 50
/** Kept of an invocation for the folding of usage, however many runs are due. */
const FOLD_MS = 20_000
/** A sweep takes no further run when less than this is left before that. */
const LAST_RUN_MS = 5_000

const NOTHING: SweepReport = { ...NOTHING_FOUND, runs: 0, folded: 0, failed: 0 }

/**
 * Looks at every run that is due when it begins, each once, and folds what is over. May run at any time and beside itself.
 * Each begins with another shard: where there is more to do than one can, all come in turn.
 */
export async function sweep(ctx: EngineContext, invocation: Invocation): Promise<SweepReport> {
  const began = ctx.clock.now()
  const forRuns = { deadlineAt: invocation.deadlineAt - FOLD_MS }
  let report = NOTHING
  const first = Math.floor(began / 60_000)
  for (let i = 0; i < DUE_SHARDS; i++) {
    report = sum(report, await sweepShard(ctx, (first + i) % DUE_SHARDS, began, forRuns))
  }
  const { hours, failed } = await foldUsage(ctx, invocation)
  return sum(report, { ...NOTHING, folded: hours, failed })
}

async function sweepShard(
  ctx: EngineContext,
  shard: number,
  began: number,
  invocation: Invocation,
): Promise<SweepReport> {
  let report = NOTHING
  let after: string | undefined
  do {
    if (invocation.deadlineAt - ctx.clock.now() < LAST_RUN_MS) return report
    // what a look puts off comes after `began`, so no run is met twice
    const page = await ctx.store.dueRuns(shard, began, { limit: PAGE, ...(after !== undefined && { after }) })
    for (const ref of page.items) {
      if (invocation.deadlineAt - ctx.clock.now() < LAST_RUN_MS) return report
      report = sum(report, await lookSafely(ctx, ref, invocation))
    }
    after = page.next
  } while (after !== undefined)
  return report
}

/** One run that cannot be looked at must not keep the others waiting. */
async function lookSafely(ctx: EngineContext, ref: RunRef, invocation: Invocation): Promise<SweepReport> {
  try {
    return { ...NOTHING, ...(await sweepRun(ctx, ref, invocation)), runs: 1 }
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
