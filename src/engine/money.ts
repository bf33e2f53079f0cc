import { takeAhead } from '../domain/budget.ts'
import { type Amount, covers, isZero, missing, same } from '../domain/money.ts'
import type { SessionRef } from '../domain/run.ts'
import { freePlaces, isTerminal, type SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { type Drive, refresh } from './drive.ts'

/** `short`: there is not enough on the way to the root · `no place`: there is, but no place among its siblings */
export type Borrowed = 'ok' | 'short' | 'no place'

/**
 * Sees that the session owns `need`: out of what it may give away, or by a loan from above. It goes on from the header as
 * it was last read: every write here is conditional on it.
 * @param hold what the next call may cost: some are taken ahead where there is plenty
 */
export async function haveOwn(d: Drive, need: Amount, hold: Amount): Promise<Borrowed | 'gone'> {
  for (let h = d.header; ; h = await refresh(d)) {
    if (isTerminal(h) || h.status !== 'running' || h.attempt !== d.attempt) return 'gone'
    if (covers(h.own, need)) return 'ok'
    const more = missing(h.own, need)
    if (covers(h.avail, more)) {
      await d.ctx.store.raiseOwn(d.ref, h.own, takeAhead(more, hold, h.avail))
      continue
    }
    const some = h.avail.usd > 0n && h.avail.tok > 0n
    const borrowed = await borrow(d.ctx, d.ref, some ? 'avail' : 'own', some ? missing(h.avail, more) : more, h)
    if (borrowed !== 'ok') return borrowed
  }
}

/**
 * Borrows `more` from the parent (which borrows from its own, and so on), and takes it into `own` or `avail`. Two writes:
 * lend, then take; either may be repeated. A session that was held back for want of money takes a place with it.
 * @param seen its header as just read
 */
export async function borrow(
  ctx: Pick<EngineContext, 'store'>,
  ref: SessionRef,
  into: 'own' | 'avail',
  more: Amount,
  seen?: SessionHeader,
): Promise<Borrowed> {
  if (isZero(more)) return 'ok'
  for (let h = seen ?? (await ctx.store.getHeader(ref)); ; h = await ctx.store.getHeader(ref)) {
    if (!h || h.parentId === null || isTerminal(h)) return 'short'
    const parentRef = { ...ref, sessionId: h.parentId }
    const parent = await ctx.store.getHeader(parentRef)
    if (!parent?.pending.has(h.ordinal)) return 'short'
    const lent = parent.lent[h.ordinal] ?? null
    if (lent && !same(lent, h.taken)) {
      // lent already, perhaps by a driver that died before it took it
      await ctx.store.takeLoan(ref, h.taken, lent, into)
      return 'ok'
    }
    const heldBack = parent.needs.has(h.ordinal)
    if (covers(parent.avail, more)) {
      if (heldBack && freePlaces(parent, h.width) < 1) return 'no place'
      const { avail, next, attempt } = parent
      await ctx.store.lend(parentRef, h.ordinal, lent, more, heldBack ? { avail, next, attempt } : undefined)
      continue
    }
    if (parent.parentId === null) return 'short'
    const borrowed = await borrow(ctx, parentRef, 'avail', missing(parent.avail, more), parent)
    if (borrowed !== 'ok') return borrowed
  }
}
