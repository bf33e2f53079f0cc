import { SubledgerError } from '../domain/errors.ts'
import type { Run, RunRef } from '../domain/run.ts'
import { isTerminal } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { active, type Opening, openedBefore, openRound } from './open-round.ts'

/** What makes an input of its own out of a request that may be sent again. */
export interface OnceInput {
  /** the round that the run was in when it was sent first */
  readonly seenRound: number
  readonly inputRef: string
}

/**
 * Opens a new round of an ended run with a follow-up input.
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
  const opening: Opening = { name: once?.inputRef ?? ctx.ids.nonce(), input: { input }, retry: false }
  const before = once && (await openedBefore(ctx, run, once.seenRound, opening))
  if (before) return before
  if (!isTerminal(run)) throw active(ref)
  return openRound(ctx, run, opening)
}
