import { DEFAULT_LIMITS } from '../domain/configured-limits.ts'
import { SubledgerError } from '../domain/errors.ts'
import { rootSessionId } from '../domain/ids.ts'
import type { RetryInput, Run, RunInput, RunRef } from '../domain/run.ts'
import { isTerminal } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { giveBack } from './give-back.ts'
import { takePlace } from './take-place.ts'

/** What a round begins with. Who opens it has made up the name, so two callers at once do not mix. */
export interface Opening {
  readonly name: string
  /** put before the round is opened; null: it goes on with what is there */
  readonly input: RunInput | RetryInput | null
  readonly retry: boolean
}

/** Whether the run's round was opened under this name. */
const isOf = (run: Run, { name, retry }: Opening): boolean =>
  retry ? run.retry?.round === run.round && run.retry.ref === name : run.inputRef === name

/**
 * What a request finds that may have been sent before: it opens one round at most, and finishes what it has begun.
 * @param seenRound the round that the run was in when it was sent first
 * @returns undefined: it is still to be done
 * @throws SubledgerError run_active
 */
export async function openedBefore(
  ctx: EngineContext,
  run: Run,
  seenRound: number,
  opening: Opening,
): Promise<Run | undefined> {
  if (run.round <= seenRound) return undefined
  const mine = isOf(run, opening)
  // the round after may be another's; of those behind it nobody can tell any more, so nothing is opened again
  if (run.round === seenRound + 1 && !mine) throw active(run)
  if (mine && !isTerminal(run)) await reopenRoot(ctx, run)
  return run
}

/**
 * Opens the next round of a run that has ended: takes its place, puts what the round begins with, and opens it. Of two
 * callers at once the one whose name the run takes has opened it, the other is refused.
 * @throws SubledgerError run_active, too_many_runs
 */
export async function openRound(ctx: EngineContext, run: Run, opening: Opening): Promise<Run> {
  const ref = { tenant: run.tenant, runId: run.runId }
  // what its last round held of the limits outside goes back before the next one begins
  if (run.grants.length > 0) await giveBack(ctx, ref)
  const { tenantConcurrency } = ctx.settings.limits ?? DEFAULT_LIMITS
  await takePlace(ctx, ref, run.maxConcurrency, tenantConcurrency)
  const now = ctx.clock.now()
  const { name, input } = opening
  if (input) await ctx.store.putInput(ref, run.round + 1, name, input)
  const opened = await ctx.store.openRound(ref, {
    seenRound: run.round,
    seenExpiresAt: run.expiresAt,
    ...(opening.retry ? { retryRef: name, inputRound: run.inputRound } : { inputRef: name }),
    dueAt: now + ctx.settings.eventAgeMs,
    now,
  })
  const seen = opened.written ? opened.item : await ctx.store.getRun(ref, { consistent: true })
  if (!seen || !isOf(seen, opening)) throw active(ref)
  await tryReopenRoot(ctx, seen)
  return seen
}

export const active = (ref: RunRef): SubledgerError =>
  new SubledgerError(
    'run_active',
    `Run ${ref.runId} has not ended yet: send the request when it has, or cancel it first.`,
  )

/** The second half of opening a round; the sweep finishes it when its caller has died in between, or could not do it. */
async function tryReopenRoot(ctx: EngineContext, run: Run): Promise<void> {
  try {
    await reopenRoot(ctx, run)
  } catch (fault) {
    const { tenant, runId } = run
    ctx.log.warn('a round waits for the sweep: its root could not be invoked', { tenant, runId, fault: String(fault) })
  }
}

export async function reopenRoot(ctx: Pick<EngineContext, 'store' | 'invoker' | 'clock'>, run: Run): Promise<void> {
  const ref = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
  await ctx.store.reopenRoot(ref, run.round - 1, ctx.clock.now())
  await ctx.invoker.invoke(ref)
}
