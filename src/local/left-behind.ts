import type { Run } from '../domain/run.ts'
import type { EngineContext } from '../engine/context.ts'

/** A run that was left in the middle of its work. */
export interface LeftBehind {
  readonly run: Run
  /** sessions that somebody was driving */
  readonly sessions: number
}

/** Runs looked at, newest first. */
const LOOKS = 1_000
const PAGE = 100

/**
 * Takes over what a process that was here before has left. One process at a time has the folder of the books, so whoever
 * held a lease is gone, and nobody need wait until it is over. To be called before anything goes on.
 */
export async function takeOver(
  ctx: Pick<EngineContext, 'store' | 'clock' | 'invoker'>,
  tenant: string,
): Promise<LeftBehind[]> {
  const found: LeftBehind[] = []
  let after: string | undefined
  for (let looked = 0; looked < LOOKS; looked += PAGE) {
    const options = { limit: PAGE, status: 'running' as const, ...(after !== undefined && { after }) }
    const page = await ctx.store.listRuns(tenant, options)
    for (const run of page.items) {
      const { headers } = await ctx.store.getRunWithSessions(run)
      const driven = headers.filter((h) => h.status === 'running' && h.lease !== null && h.lease >= ctx.clock.now())
      for (const h of driven) {
        const ref = { tenant, runId: run.runId, sessionId: h.sessionId }
        const released = await ctx.store.release(ref, h.attempt, { continues: false, now: ctx.clock.now() })
        if (released.written) await ctx.invoker.invoke(ref)
      }
      if (driven.length > 0) found.push({ run, sessions: driven.length })
    }
    after = page.next
    if (after === undefined) break
  }
  return found
}
