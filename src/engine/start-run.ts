import type { Run, RunInput } from '../domain/run.ts'
import type { EngineContext } from './context.ts'

/** What a run is started from; checked whole before anything is written. */
export interface StartRun {
  readonly tenant: string
  /** name of a team that `Teams` knows */
  readonly team: string
  /** first agent; the team's first unless told */
  readonly agent?: string
  /** exactly one of `input` and `tasks`; checked here, so callers may pass on what they got */
  readonly input?: string
  readonly tasks?: readonly { agent: string; task: string; expectedOutput?: string }[]
  readonly maxConcurrency?: number
  readonly tags?: { readonly [key: string]: string }
  /** id of the run, where the caller has chosen one already (an idempotent retry); made here otherwise */
  readonly runId?: string
}

/**
 * Freezes the team, stores input and run, puts the root's header and invokes it.
 * @throws SubledgerError unknown_team, unknown_agent, bad_team, bad_request
 */
export async function startRun(_ctx: EngineContext, _request: StartRun): Promise<Run> {
  throw new Error(`being written ${{} as RunInput}`)
}
