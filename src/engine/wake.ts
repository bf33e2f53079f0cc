/** Events for sessions that wait for nothing any more. A hint each: who comes looks for himself. */
import type { SessionRef } from '../domain/run.ts'
import { isClaimable, MONEY, type SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'

type Ctx = Pick<EngineContext, 'store' | 'invoker' | 'clock'>

/** It waits for nothing any more. One that is queued has an event of its own. */
export const wantsEvent = (h: SessionHeader, now: number): boolean => h.status === 'waiting' && isClaimable(h, now)

/** @returns whether an event was sent */
export async function wake(ctx: Pick<Ctx, 'invoker' | 'clock'>, ref: SessionRef, h: SessionHeader): Promise<boolean> {
  if (!wantsEvent(h, ctx.clock.now())) return false
  await ctx.invoker.invoke(ref)
  return true
}

/**
 * A question that a session waits for is answered: it is taken off, and the session woken where nothing else is open. A
 * refusal may be this write's own, when its first answer was lost, or the session has not lain down yet: so it is read.
 * @param ask money, unless told
 */
export async function takeOff(
  ctx: Ctx,
  ref: SessionRef,
  ask: string = MONEY,
): Promise<{ readonly header: SessionHeader | undefined; readonly woken: boolean }> {
  const unasked = await ctx.store.unask(ref, ctx.clock.now(), ask)
  const header = unasked.written ? unasked.item : await ctx.store.getHeader(ref)
  return { header, woken: header !== undefined && (await wake(ctx, ref, header)) }
}
