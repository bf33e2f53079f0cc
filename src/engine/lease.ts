import type { SessionHeader } from '../domain/session.ts'
import type { BookRow } from '../domain/usage.ts'
import { type Drive, leaseUntil, now } from './drive.ts'

/**
 * Renews the lease when two thirds of it are over, and refreshes the header's own totals with it.
 * @param rows own totals as they are known; asked for only when it is time
 * @returns the header as written; `lost` when another driver has taken the session over; undefined when it is not yet time
 */
export async function renewLease(
  d: Drive,
  rows: () => readonly BookRow[],
): Promise<SessionHeader | 'lost' | undefined> {
  const { store, settings } = d.ctx
  const at = now(d)
  if (at - d.leaseAt < (settings.leaseMs * 2) / 3) return undefined
  const lease = leaseUntil(at, settings.leaseMs, d.deadlineAt)
  const beat = await store.heartbeat(d.ref, d.attempt, { lease, rows: rows(), now: at })
  if (!beat.written) return 'lost'
  d.leaseAt = at
  return beat.item
}
