import type { LogState } from '../domain/log.ts'
import { MONEY, type SessionHeader } from '../domain/session.ts'
import { type Drive, now, refresh } from './drive.ts'
import { letIn } from './let-in.ts'
import { childWidth } from './width.ts'

/** A wait for money that nobody ends is looked at after so long: whoever should have ended it may have died. */
const LOOK_AGAIN_MS = 5 * 60_000

/**
 * Lies down until there is money: no Lambda is held. A session that sleeps gives its own place to its children. What came
 * between looking and lying down woke nobody, so the caller looks once more.
 * @returns its header asleep · undefined: it could not lie down
 */
export async function sleepForMoney(d: Drive, state: LogState): Promise<SessionHeader | undefined> {
  const at = now(d)
  const before = d.header
  const wait = { on: 'money', wakeAt: at + LOOK_AGAIN_MS, rows: state.rows, closed: false, now: at } as const
  const suspended = await d.ctx.store.suspend(d.ref, d.attempt, wait)
  if (!suspended.written) {
    const h = await refresh(d)
    // it may have been written, and the answer was lost
    if (h.attempt !== d.attempt || h.status !== 'waiting' || !h.asks.has(MONEY)) return undefined
  }
  const h = await refresh(d)
  if (!h.stop) await letIn(d.ctx, d.ref, { before, after: h, width: childWidth(d) })
  return h
}
