import { SubledgerError } from '../domain/errors.ts'
import { rootSessionId } from '../domain/ids.ts'
import type { Run, RunRef } from '../domain/run.ts'
import { isTerminal, type SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { expiryOf } from './due-times.ts'
import { stopSession } from './end-session.ts'

/** Headers read with one request. */
const PAGE = 100
/** How long a caller is kept waiting while sessions are stopped one after the other. */
const IN_REQUEST_MS = 5_000
/** Headers stopped at once. */
const AT_ONCE = 10

/** Asks the whole tree to stop. Returns the run as it is then, also when it has ended. @throws SubledgerError unknown_run */
export async function cancelRun(ctx: EngineContext, ref: RunRef): Promise<Run> {
  const now = ctx.clock.now()
  const cancelled = await ctx.store.cancelRun(ref, { now, expiresAt: expiryOf(ctx.settings.retentionMs, now) })
  const run = cancelled.written ? cancelled.item : await ctx.store.getRun(ref, { consistent: true })
  if (!run) throw new SubledgerError('unknown_run', `There is no run ${ref.runId}.`)
  if (run.stop && run.status === 'running') {
    // the rest of a large tree is the sweep's, for which the run is due
    await stopAll(ctx, run, { until: ctx.clock.now() + IN_REQUEST_MS })
  }
  return (await ctx.store.getRun(ref, { consistent: true })) ?? run
}

/**
 * Stops every live session of a run's round, the root first so that nothing new is delegated from above. Repeated by the
 * sweep while the run's stop stands, because a session may be born while this passes. A session of a later round is left
 * alone: whoever is slow here may find the run in its next round.
 * @param options `until`: epoch ms after which no further page of sessions is taken · `again`: whether those that have been
 * told to stop are told once more
 */
export async function stopAll(
  ctx: EngineContext,
  run: Run,
  options: { until?: number; again?: boolean } = {},
): Promise<void> {
  const { until = Number.POSITIVE_INFINITY, again = true } = options
  const ref = { tenant: run.tenant, runId: run.runId }
  const rootId = rootSessionId(run.runId)
  const mine = (h: SessionHeader) => !isTerminal(h) && h.round === run.round && (again || h.stop === null)
  const stop = (h: SessionHeader) => stopSession(ctx, { ...ref, sessionId: h.sessionId }, h, 'cancelled')
  const root = await ctx.store.getHeader({ ...ref, sessionId: rootId })
  if (root && mine(root)) await stop(root)
  let after: string | undefined
  do {
    const options = { consistent: true, limit: PAGE, ...(after !== undefined && { after }) }
    const page = await ctx.store.listHeaders(ref, options)
    const live = page.items.filter((h) => mine(h) && h.sessionId !== rootId)
    for (let i = 0; i < live.length; i += AT_ONCE) await Promise.all(live.slice(i, i + AT_ONCE).map(stop))
    after = page.next
  } while (after !== undefined && ctx.clock.now() <= until)
}
