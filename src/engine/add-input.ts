import type { Run, RunRef } from '../domain/run.ts'
import type { EngineContext } from './context.ts'

/** Opens a new round of an ended run with a follow-up input. @throws SubledgerError unknown_run, run_active, bad_request */
export async function addInput(_ctx: EngineContext, _ref: RunRef, _input: string): Promise<Run> {
  throw new Error('being written')
}
