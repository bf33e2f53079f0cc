import type { Run } from '../domain/run.ts'
import type { EngineContext } from '../engine/context.ts'

/** A run that was left in the middle of its work: nobody may take over its sessions before their leases are over. */
export interface LeftBehind {
  readonly run: Run
  readonly sessions: number
  /** epoch ms at which the last of their leases is over */
  readonly until: number
}

/** Runs looked at, newest first. */
const LOOKS = 1_000
const PAGE = 100

/** What a process that was here before has left. To be asked before anything goes on. */
export async function leftBehind(ctx: Pick<EngineContext, 'store' | 'clock'>, tenant: string): Promise<LeftBehind[]> {
  const found: LeftBehind[] = []
  let after: string | undefined
  for (let looked = 0; looked < LOOKS; looked += PAGE) {
    const options = { limit: PAGE, status: 'running' as const, ...(after !== undefined && { after }) }
    const page = await ctx.store.listRuns(tenant, options)
    for (const run of page.items) {
      const { headers } = await ctx.store.getRunWithSessions(run)
      const leases = headers.flatMap((h) =>
        h.status === 'running' && h.lease !== null && h.lease >= ctx.clock.now() ? [h.lease] : [],
      )
      if (leases.length > 0)
        found.push({ run, sessions: leases.length, until: leases.reduce((a, b) => Math.max(a, b)) })
    }
    after = page.next
    if (after === undefined) break
  }
  return found
}
