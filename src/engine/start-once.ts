import type { Run } from '../domain/run.ts'
import type { OnceRef } from '../ports/idempotency-store.ts'
import type { EngineContext } from './context.ts'
import { type StartRun, startRun } from './start-run.ts'

/** How long a name is remembered: an event may be repeated for six hours. */
const KEPT_SECONDS = 86_400

/** Starts one run for each name, however often it is asked to. @throws what `startRun` throws */
export async function startOnce(ctx: EngineContext, ref: OnceRef, request: StartRun): Promise<Run> {
  const now = ctx.clock.now()
  const record = {
    bodyHash: '',
    token: ctx.ids.runId(now),
    createdAt: now,
    expiresAt: Math.floor(now / 1000) + KEPT_SECONDS,
  }
  const put = await ctx.store.putOnce(ref, record, now)
  const runId = put === 'written' ? record.token : ((await ctx.store.getOnce(ref, now))?.token ?? record.token)
  return startRun(ctx, { ...request, runId })
}
