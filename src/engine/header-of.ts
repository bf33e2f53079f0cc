import type { SessionRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'

/** The header of a session that must have one. @throws Error when it has none */
export async function headerOf(ctx: Pick<EngineContext, 'store'>, ref: SessionRef): Promise<SessionHeader> {
  const h = await ctx.store.getHeader(ref)
  if (!h) throw new Error(`session ${ref.sessionId} of run ${ref.runId} has no header`)
  return h
}
