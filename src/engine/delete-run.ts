import { SubledgerError } from '../domain/errors.ts'
import type { Run, RunRef } from '../domain/run.ts'
import { isTerminal } from '../domain/session.ts'
import type { EngineContext, Invocation } from './context.ts'
import { LATE_ANSWERS_MS } from './due-times.ts'

/** Items removed between two looks at the clock. */
const STEP = 500
/** No further step is begun when less than this is left of the invocation. */
const LAST_STEP_MS = 10_000

/**
 * Deletes an ended run: it is gone at once, for every read. What it has written is removed by the sweep, not before late
 * answers to its calls have had their time, so that all of its money is in the reports, where it stays.
 * @throws SubledgerError unknown_run, run_active
 */
export async function deleteRun(ctx: Pick<EngineContext, 'store' | 'clock'>, ref: RunRef): Promise<void> {
  const run = await ctx.store.getRun(ref, { consistent: true })
  if (!run) throw new SubledgerError('unknown_run', `There is no run "${ref.runId}". GET /v1/runs lists them.`)
  if (isTerminal(run)) {
    const now = ctx.clock.now()
    const dueAt = Math.max(now, (run.finishedAt ?? now) + LATE_ANSWERS_MS)
    if ((await ctx.store.deleteRun(ref, { dueAt, now })).written) return
  }
  throw new SubledgerError(
    'run_active',
    `Run ${ref.runId} has not ended yet: delete it when it has, or cancel it first.`,
  )
}

/** Removes what a run that is gone has written, as far as the time allows; the next sweep goes on. */
export async function purgeRun(
  ctx: Pick<EngineContext, 'store' | 'clock'>,
  run: Run,
  invocation: Invocation,
): Promise<number> {
  let removed = 0
  while (invocation.deadlineAt - ctx.clock.now() >= LAST_STEP_MS) {
    const step = await ctx.store.purgeRun(run, STEP)
    removed += step.removed
    if (step.done) break
  }
  return removed
}
