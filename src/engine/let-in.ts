import { childSessionId } from '../domain/ids.ts'
import type { SessionRef } from '../domain/run.ts'
import { mayRun, type SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'

/** Invokes the children that a change of their parent has let in. */
export async function letIn(
  ctx: Pick<EngineContext, 'invoker'>,
  parent: SessionRef,
  change: { before: SessionHeader; after: SessionHeader; width: number },
): Promise<void> {
  const running = new Set(mayRun(change.before, change.width))
  for (const o of mayRun(change.after, change.width)) {
    if (!running.has(o)) await ctx.invoker.invoke({ ...parent, sessionId: childSessionId(parent.sessionId, o) })
  }
}
