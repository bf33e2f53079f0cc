import type { RunRef } from '../domain/run.ts'
import type { EngineContext } from './context.ts'

/**
 * The sweep looks at a running run at this time, and not only when it had meant to.
 * @param at epoch ms
 * @param options `moved`: always at another time than before, so that a sweep that has looked already does not put the run
 * off; left out: nothing is written where it is due by then anyway
 */
export async function bringForward(
  ctx: Pick<EngineContext, 'store'>,
  ref: RunRef,
  at: number,
  options: { moved?: true } = {},
): Promise<void> {
  for (;;) {
    const run = await ctx.store.getRun(ref, { consistent: true })
    if (run?.status !== 'running' || run.dueAt === null) return
    if (run.dueAt <= at && !options.moved) return
    // refused: it was changed in between
    if ((await ctx.store.pushDue(ref, run, Math.min(run.dueAt - 1, at))).written) return
  }
}
