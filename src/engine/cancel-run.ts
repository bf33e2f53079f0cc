import { SubledgerError } from '../domain/errors.ts'
import { rootSessionId } from '../domain/ids.ts'
import type { Run, RunRef } from '../domain/run.ts'
import { isTerminal } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { stopSession } from './end-session.ts'

/** Headers stopped at once. */
const AT_ONCE = 10

/** Asks the whole tree to stop. Returns the run as it is then, also when it has ended. @throws SubledgerError unknown_run */
export async function cancelRun(ctx: EngineContext, ref: RunRef): Promise<Run> {
  const cancelled = await ctx.store.cancelRun(ref, ctx.clock.now())
  const run = cancelled.written ? cancelled.item : await ctx.store.getRun(ref, { consistent: true })
  if (!run) throw new SubledgerError('unknown_run', `There is no run ${ref.runId}.`)
  if (run.stop && run.status === 'running') await stopAll(ctx, ref)
  return (await ctx.store.getRun(ref, { consistent: true })) ?? run
}

/**
 * Stops every live session of a run, the root first so that nothing new is delegated from above. Repeated by the sweep
 * while the run's stop stands, because a session may be born while this passes.
 */
export async function stopAll(ctx: EngineContext, ref: RunRef): Promise<void> {
  const rootId = rootSessionId(ref.runId)
  const root = await ctx.store.getHeader({ ...ref, sessionId: rootId })
  if (root && !isTerminal(root)) await stopSession(ctx, { ...ref, sessionId: rootId }, root, 'cancelled')
  let after: string | undefined
  do {
    const page = await ctx.store.listHeaders(ref, { consistent: true, ...(after !== undefined && { after }) })
    const live = page.items.filter((h) => !isTerminal(h) && h.sessionId !== rootId)
    for (let i = 0; i < live.length; i += AT_ONCE) {
      await Promise.all(
        live.slice(i, i + AT_ONCE).map((h) => stopSession(ctx, { ...ref, sessionId: h.sessionId }, h, 'cancelled')),
      )
    }
    after = page.next
  } while (after !== undefined)
}
