import type { LogState } from '../domain/log.ts'
import type { RequestSlot } from '../domain/turn.ts'
import { type Drive, now, reload } from './drive.ts'

/**
 * What an older driver may still put must not be put against money that is given away: the next place in the log is taken.
 * The first driver of a session has none before it.
 */
export async function mark(d: Drive, state: LogState): Promise<boolean> {
  const { n } = state.next
  if (d.attempt === 1 || d.marked === n - 1) return true
  const slot: RequestSlot = { n, round: d.header.round, messages: [], at: now(d) }
  const put = await d.ctx.store.putRequest(d.ref, slot, d.driver)
  if (put === 'written') {
    d.slots.requests.set(n, slot)
    d.marked = n
  } else await reload(d)
  return false
}
