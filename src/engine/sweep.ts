import type { RunRef } from '../domain/run.ts'
import type { EngineContext, Invocation } from './context.ts'

/** What a sweep found and did, for the log. */
export interface SweepReport {
  readonly runs: number
  readonly invoked: number
  readonly settled: number
}

/** Looks at every run whose due time has come. May run at any time and beside itself. */
export async function sweep(_ctx: EngineContext, _invocation: Invocation): Promise<SweepReport> {
  throw new Error('being written')
}

/** Looks at one run now, due or not: what a dead letter asks for. */
export async function sweepRun(_ctx: EngineContext, _ref: RunRef, _invocation: Invocation): Promise<SweepReport> {
  throw new Error('being written')
}
