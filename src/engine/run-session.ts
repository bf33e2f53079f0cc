import type { SessionRef } from '../domain/run.ts'
import type { EngineContext, Invocation } from './context.ts'

/** Claims a session and drives it until it ends, waits, or the deadline is near. Safe to call at any time, any number of times. */
export async function runSession(_ctx: EngineContext, _ref: SessionRef, _invocation: Invocation): Promise<void> {
  throw new Error('being written')
}
