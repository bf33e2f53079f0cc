import { DEFAULT_LIMITS } from '../domain/configured-limits.ts'
import { SubledgerError } from '../domain/errors.ts'
import { rootSessionId } from '../domain/ids.ts'
import type { Run, RunRef } from '../domain/run.ts'
import { isTerminal } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { giveBack } from './give-back.ts'
import { takePlace } from './take-place.ts'

/** What makes an input of its own out of a request that may be sent again. */
export interface OnceInput {
  /** the round that the run was in when it was sent first */
  readonly seenRound: number
  readonly inputRef: string
}

/**
 * Opens a new round of an ended run with a follow-up input. The input is put first under a name of its own, so that two
 * callers at once do not mix: the one whose name the run takes has opened the round, the other is refused.
 * @param once of a request that may have been sent before: it opens one round at most, and finishes what it finds
 * @throws SubledgerError unknown_run, run_active, bad_request, too_many_runs
 */
export async function addInput(ctx: EngineContext, ref: RunRef, input: string, once?: OnceInput): Promise<Run> {
  if (input.trim() === '') throw new SubledgerError('bad_request', '/input: must not be empty')
  const run = await ctx.store.getRun(ref, { consistent: true })
  if (!run) throw new SubledgerError('unknown_run', `There is no run ${ref.runId}.`)
  if (run.tasks !== null) {
    throw new SubledgerError(
      'bad_request',
      'This run was started from a list of tasks: it has no conversation that could go on.',
    )
  }
  if (once && run.round > once.seenRound) {
    // the round after may be another's; of those behind it nobody can tell any more, so nothing is opened again
    if (run.round === once.seenRound + 1 && run.inputRef !== once.inputRef) throw active(ref)
    if (run.inputRef === once.inputRef && !isTerminal(run)) await reopenRoot(ctx, run)
    return run
  }
  if (!isTerminal(run)) throw active(ref)
  // what its last round held of the limits outside goes back before the next one begins
  if (run.grants.length > 0) await giveBack(ctx, ref)
  const { tenantConcurrency } = ctx.settings.limits ?? DEFAULT_LIMITS
  await takePlace(ctx, ref, run.maxConcurrency, tenantConcurrency)
  const now = ctx.clock.now()
  const inputRef = once?.inputRef ?? ctx.ids.nonce()
  await ctx.store.putInput(ref, run.round + 1, inputRef, { input })
  const opened = await ctx.store.openRound(ref, {
    seenRound: run.round,
    seenExpiresAt: run.expiresAt,
    inputRef,
    dueAt: now + ctx.settings.eventAgeMs,
    now,
  })
  if (!opened.written) {
    const seen = await ctx.store.getRun(ref, { consistent: true })
    if (seen?.inputRef !== inputRef) throw active(ref)
    await tryReopenRoot(ctx, seen)
    return seen
  }
  await tryReopenRoot(ctx, opened.item)
  return opened.item
}

const active = (ref: RunRef) =>
  new SubledgerError(
    'run_active',
    `Run ${ref.runId} has not ended yet: send the input when it has, or cancel it first.`,
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
