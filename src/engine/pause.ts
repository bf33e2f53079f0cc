import type { LogState } from '../domain/log.ts'
import { type Drive, nearDeadline, now } from './drive.ts'

/** Wait before the first retry of a failed call, doubled for each further one. */
const FIRST_BACKOFF_MS = 1_000
/** Between two looks at stop and deadline while waiting. */
const STEP_MS = 2_000
/** A pause longer than this is waited for without a Lambda. */
const LONGEST_HELD_MS = 20_000
/** Workers that were refused together come back over this part of their pause, at most this much apart. */
const SPREAD = 4
const MOST_SPREAD_MS = 10_000

/**
 * Waits before a call where the provider asked for it, of this worker or of any other that calls the same model for the
 * same team, and before a retry.
 * @returns `go`: call now · `again`: some time has passed, look at everything again · a time: wait until then without
 *   holding an invocation
 */
export async function pauseBefore(d: Drive, state: LogState): Promise<'go' | 'again' | number> {
  const until = await pausedUntil(d, state)
  const left = until - now(d)
  if (left <= 0) return 'go'
  if (left > LONGEST_HELD_MS || nearDeadline(d)) return until
  await d.ctx.clock.sleep(Math.min(left, STEP_MS))
  return 'again'
}

async function pausedUntil(d: Drive, state: LogState): Promise<number> {
  const shared = await d.ctx.store.getCoolDown(d.ref.tenant, d.run.team, d.agent!.model)
  return Math.max(retryTime(state), spread(d, shared ?? 0), spread(d, d.retryAt))
}

/** Twice as long after each further call without an answer. */
function retryTime({ kind, last, failures }: LogState): number {
  if (kind !== 'retry' || last?.outcome !== 'failed') return 0
  return last.startedAt + last.durationMs + FIRST_BACKOFF_MS * 2 ** (failures - 1)
}

/** Not all at once: each session has its own moment after the pause, always the same one. */
function spread(d: Drive, until: number): number {
  const left = until - now(d)
  if (left <= 0) return 0
  const place = Number.parseInt(d.ref.sessionId.slice(-4), 32) || 0
  return until + (place % Math.ceil(Math.min(left / SPREAD, MOST_SPREAD_MS)))
}
