import { positive } from '../domain/budget.ts'
import { childSessionId, rootSessionId } from '../domain/ids.ts'
import { type Amount, add, covers, isZero, same, ZERO } from '../domain/money.ts'
import type { SessionRef } from '../domain/run.ts'
import { freePlaces, funded, isClaimable, MONEY, mayRun, type SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { headerOf } from './header-of.ts'
import { wakeNeedy } from './wake-needy.ts'

type Ctx = Pick<EngineContext, 'store' | 'invoker' | 'clock'>

/** What a session that is short of money finds on its way to the root. */
export interface Survey {
  /** what can be had at once: all that it and those above may give */
  readonly funds: Amount
  /** it is not held back for want of a place among its siblings */
  readonly place: boolean
  /** somebody still has money that may come back: it is worth waiting for */
  readonly live: boolean
  /** something was moved to where it can be had: look again */
  readonly moved: boolean
  /** the session's own header as read */
  readonly header: SessionHeader
}

/**
 * Looks for money from a session up to the root, and for anybody who may still bring some back. Everything is gathered on
 * the way: what those have left who wait for money themselves comes up to where all can have it. Where nothing can come
 * back, two looks one after the other must have seen the same: no single read covers more than one header.
 * @param path ids of the sessions from the root down to this one
 */
export async function survey(ctx: Ctx, ref: SessionRef, path: readonly string[]): Promise<Survey> {
  let before = await look(ctx, ref, path)
  for (let looks = 1; looks < MOST_LOOKS; looks++) {
    if (before.moved || before.live || before.seen.length <= 2) return before
    const next = await look(ctx, ref, path)
    if (!next.moved && !next.live && next.seen.join('\n') === before.seen.join('\n')) return next
    before = next
  }
  return { ...before, moved: before.moved || !before.live }
}

/** Where many end at once something has always changed since the look before. */
const MOST_LOOKS = 4

interface Look extends Survey {
  /** what was read, for comparison */
  readonly seen: readonly string[]
}

async function look(ctx: Ctx, ref: SessionRef, ids: readonly string[]): Promise<Look> {
  const path: SessionHeader[] = []
  for (const sessionId of ids) path.push(await headerOf(ctx, { ...ref, sessionId }))
  const seen: string[] = []
  let [funds, live, moved] = [ZERO, false, false]
  // from the root down: money that comes up meanwhile is then seen further down, or not at all
  for (const [i, h] of path.entries()) {
    const below = path[i + 1]
    funds = add(funds, positive(h.avail))
    seen.push(fingerprint(h))
    const level = await lookAround(ctx, h, below)
    seen.push(...level.seen)
    live ||= level.live
    moved ||= level.moved
  }
  const [parent, own] = [path.at(-2), path.at(-1)!]
  const place = !parent?.needs.has(own.ordinal) || freePlaces(parent, own.width) > 0
  return { funds, place, live, moved, header: own, seen }
}

/** The other children of one session on the way. */
async function lookAround(
  ctx: Ctx,
  h: SessionHeader,
  below: SessionHeader | undefined,
): Promise<Pick<Look, 'live' | 'moved' | 'seen'>> {
  const others = [...h.pending].filter((o) => !h.needs.has(o) && o !== below?.ordinal)
  const seen: string[] = []
  let [live, moved] = [false, false]
  if (others.length === 0) return { live, moved, seen }
  const childRef = (o: number) => ({ ...h, sessionId: childSessionId(h.sessionId, o) })
  const { width } = below ?? (await headerOf(ctx, childRef(others[0]!)))
  const placed = new Set(mayRun(h, width))
  const parked: SessionRef[] = []
  for (const o of others) {
    if (h.wants.has(o)) {
      const child = await restOf(ctx, childRef(o))
      if (child.atRest) {
        seen.push(...child.seen)
        if (await gather(ctx, h, child.header)) moved = true
      } else live = true
    } else if (placed.size === 0 || placed.has(o)) live = true
    else parked.push(childRef(o))
  }
  if (!live && parked.length > 0) {
    const found = await unpark(ctx, h, parked)
    if (found === 'moved') moved = true
    if (found === 'live') live = true
  }
  return { live, moved, seen }
}

/** Ids of the sessions from the root down to this one. They never change. */
export async function pathTo(ctx: Pick<Ctx, 'store'>, h: SessionHeader): Promise<string[]> {
  const ids = [h.sessionId]
  for (let id = h.parentId; id !== null; ) {
    ids.unshift(id)
    id = id === rootSessionId(h.runId) ? null : (await headerOf(ctx, { ...h, sessionId: id })).parentId
  }
  return ids
}

/** Whether nobody works in a subtree in which somebody waits for money: then nothing comes back of it by itself. */
async function restOf(
  ctx: Ctx,
  ref: SessionRef,
): Promise<{ atRest: boolean; header: SessionHeader; seen: readonly string[] }> {
  const header = await headerOf(ctx, ref)
  const seen = [fingerprint(header)]
  const waits = header.status === 'waiting' && !isClaimable(header, ctx.clock.now())
  // a wait with an end of its own, but for the wait for money, goes on by itself
  const ends = header.asks.has(MONEY) ? header.asks.size > 1 : header.asks.size > 0 || header.wakeAt !== null
  if (!waits || ends) return { atRest: false, header, seen }
  for (const o of header.pending) {
    if (header.needs.has(o)) continue
    if (!header.wants.has(o)) return { atRest: false, header, seen }
    const child = await restOf(ctx, { ...ref, sessionId: childSessionId(ref.sessionId, o) })
    if (!child.atRest) return { atRest: false, header, seen }
    seen.push(...child.seen)
  }
  return { atRest: true, header, seen }
}

/** Brings what a resting session may give up to its parent. True: something was, or is on the way. */
export async function gather(ctx: Ctx, parent: SessionHeader, child: SessionHeader): Promise<boolean> {
  const idle = positive(child.avail)
  if (isZero(idle)) return finishGiving(ctx, parent, child)
  const given = add(child.given, idle)
  const written = await ctx.store.giveBack(child, { seenGiven: child.given, given, avail: idle, own: null })
  if (written.written) await finishGiving(ctx, parent, written.item)
  return true
}

/**
 * Children that have money and wait for a place, while those who have the places wait for money: they give theirs back,
 * so that both have a chance.
 */
async function unpark(
  ctx: Ctx,
  parent: SessionHeader,
  refs: readonly SessionRef[],
): Promise<'moved' | 'live' | 'none'> {
  let found: 'moved' | 'none' = 'none'
  for (const ref of refs) {
    const child = await headerOf(ctx, ref)
    const all = add(child.own, positive(child.avail))
    if (child.status === 'queued' && isZero(all)) continue
    if (child.status !== 'queued' || child.attempt > 0) return 'live'
    const own = { seen: child.own, to: ZERO, attempt: 0 }
    const given = add(child.given, all)
    const written = await ctx.store.giveBack(child, {
      seenGiven: child.given,
      given,
      avail: positive(child.avail),
      own,
    })
    if (written.written) {
      const returned = parent.returned[child.ordinal] ?? null
      await ctx.store.takeBack(parent, child.ordinal, returned, given, child.agent !== null)
    }
    found = 'moved'
  }
  return found
}

/**
 * Sees that a parent has taken in all that a child has given back. By comparison, so anybody may do it at any time.
 * True: it had not.
 */
export async function finishGiving(ctx: Ctx, parent: SessionHeader, child: SessionHeader): Promise<boolean> {
  const returned = parent.returned[child.ordinal] ?? null
  // less than has come back already: the child was read before that
  if (same(child.given, returned ?? ZERO) || !covers(child.given, returned ?? ZERO)) return false
  const taken = await ctx.store.takeBack(parent, child.ordinal, returned, child.given, false)
  if (taken.written) await wakeNeedy(ctx, parent, taken.item)
  return true
}

/**
 * All of a header that says where money is. Children that are held back have none: that they end, one after another,
 * changes nothing. What was lent, given and taken back only grows while a child is pending, so money that has come and
 * gone between two looks shows.
 */
function fingerprint(h: SessionHeader): string {
  const amount = (a: Amount) => `${a.usd}/${a.tok}`
  const children = funded(h).sort((a, b) => a - b)
  const moved = children.map((o) => {
    const [lent, returned] = [h.lent[o], h.returned[o]]
    return `${o}:${lent ? amount(lent) : ''}:${returned ? amount(returned) : ''}`
  })
  return [h.sessionId, amount(h.avail), amount(h.taken), amount(h.given), h.next, moved].join(' ')
}
