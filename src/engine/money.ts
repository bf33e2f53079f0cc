import { type Amount, covers, isZero, missing, same } from '../domain/money.ts'
import type { SessionRef } from '../domain/run.ts'
import { isTerminal } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { type Drive, refresh } from './drive.ts'

/**
 * Sees that the session owns `need`: out of what it may give away, or by a loan from above.
 * `none`: there is not enough anywhere on the way to the root.
 */
export async function haveOwn(d: Drive, need: Amount): Promise<'ok' | 'none' | 'gone'> {
  for (;;) {
    const h = await refresh(d)
    if (isTerminal(h) || h.status !== 'running' || h.attempt !== d.attempt) return 'gone'
    if (covers(h.own, need)) return 'ok'
    const more = missing(h.own, need)
    if (covers(h.avail, more)) {
      await d.ctx.store.raiseOwn(d.ref, h.own, more)
      continue
    }
    if (!(await borrow(d.ctx, d.ref, 'own', more))) return 'none'
  }
}

/**
 * Borrows `more` from the parent (which borrows from its own, and so on), and takes it into `own` or `avail`. Two writes:
 * lend, then take; either may be repeated. False: nobody above has enough.
 */
export async function borrow(
  ctx: Pick<EngineContext, 'store'>,
  ref: SessionRef,
  into: 'own' | 'avail',
  more: Amount,
): Promise<boolean> {
  if (isZero(more)) return true
  for (;;) {
    const h = await ctx.store.getHeader(ref)
    if (!h || h.parentId === null || isTerminal(h)) return false
    const parentRef = { ...ref, sessionId: h.parentId }
    const parent = await ctx.store.getHeader(parentRef)
    if (!parent?.pending.has(h.ordinal)) return false
    const lent = parent.lent[h.ordinal] ?? null
    if (lent && !same(lent, h.taken)) {
      // lent already, perhaps by a driver that died before it took it
      await ctx.store.takeLoan(ref, h.taken, lent, into)
      return true
    }
    if (covers(parent.avail, more)) {
      await ctx.store.lend(parentRef, h.ordinal, lent, more)
      continue
    }
    const short = missing(parent.avail, more)
    if (!(await borrow(ctx, parentRef, 'avail', short))) return false
  }
}
