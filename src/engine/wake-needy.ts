import { positive } from '../domain/budget.ts'
import { childSessionId } from '../domain/ids.ts'
import { covers, isZero } from '../domain/money.ts'
import type { SessionRef } from '../domain/run.ts'
import { freePlaces, funded, isTerminal, MONEY, type SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { takeOff } from './wake.ts'

type Ctx = Pick<EngineContext, 'store' | 'invoker' | 'clock'>

/** Sessions woken by one change: two, so that those which have to be refused one after another are not a long chain. */
const AT_ONCE = 2
/** Children looked at for it, at most: where the first ones have been woken already, others mostly have too. */
const LOOKS = 4

/**
 * After something has come back into what a session may give, or a place has become free: wakes the session where it
 * waits for money itself, and some of those below that do. A hint only: whoever wakes looks for himself, and lies down
 * again if it is not enough.
 * @param above there is money further up as well
 * @returns how many were woken
 */
export async function wakeNeedy(
  ctx: Ctx,
  ref: SessionRef,
  h: SessionHeader,
  options: { most?: number; above?: boolean } = {},
): Promise<number> {
  const { most = AT_ONCE, above = false } = options
  if (isTerminal(h) || h.stop) return 0
  let woken = await rouse(ctx, ref, h)
  if (h.needs.size > 0 && isWorthIt(h, above)) woken += await wakeChildren(ctx, ref, h, most - woken)
  for (const o of [...h.wants].sort((a, b) => a - b)) {
    if (woken >= most) break
    const childRef = { ...ref, sessionId: childSessionId(ref.sessionId, o) }
    const child = await ctx.store.getHeader(childRef)
    if (!child) continue
    const options = { most: most - woken, above: above || !isZero(positive(h.avail)) }
    woken += await wakeNeedy(ctx, childRef, child, options)
  }
  return woken
}

/** Where others still hold what may come back, only what is enough for one of them is worth waking somebody for. */
function isWorthIt(h: SessionHeader, above: boolean): boolean {
  return above || covers(h.avail, h.deleg.share) || funded(h).every((o) => h.wants.has(o))
}

async function wakeChildren(ctx: Ctx, ref: SessionRef, h: SessionHeader, most: number): Promise<number> {
  const held = [...h.needs].filter((o) => h.pending.has(o)).sort((a, b) => a - b)
  let woken = 0
  // not always the first ones: of two changes at once each should wake others
  const start = (h.settled * AT_ONCE) % Math.max(1, held.length)
  for (let i = 0; i < Math.min(held.length, LOOKS) && woken < most; i++) {
    const o = held[(start + i) % held.length]!
    const childRef = { ...ref, sessionId: childSessionId(ref.sessionId, o) }
    const child = await ctx.store.getHeader(childRef)
    // the parent may still be putting headers: then it wakes them itself, afterwards
    if (!child) continue
    if (freePlaces(h, child.width) <= woken) break
    woken += child.status === 'queued' ? await send(ctx, childRef) : await rouse(ctx, childRef, child)
  }
  return woken
}

async function send(ctx: Ctx, ref: SessionRef): Promise<1> {
  await ctx.invoker.invoke(ref)
  return 1
}

/** Wakes one session that has lain down for want of money. Who still runs looks once more before it lies down. */
const rouse = async (ctx: Ctx, ref: SessionRef, h: SessionHeader): Promise<number> =>
  h.status === 'waiting' && h.asks.has(MONEY) && (await takeOff(ctx, ref)).woken ? 1 : 0
