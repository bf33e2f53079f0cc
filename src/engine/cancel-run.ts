import type { Run, RunRef } from '../domain/run.ts'
import type { EngineContext } from './context.ts'

/** Asks the whole tree to stop. Returns the run as it is then, also when it has ended. @throws SubledgerError unknown_run */
export async function cancelRun(_ctx: EngineContext, _ref: RunRef): Promise<Run> {
  throw new Error('being written')
}
