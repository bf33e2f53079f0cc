import { readState } from '../domain/log.ts'
import { isTerminal, type SessionHeader } from '../domain/session.ts'
import type { BookRow } from '../domain/usage.ts'
import type { Store } from '../ports.ts'
import { bringForward } from './bring-forward.ts'
import { type Drive, now, refresh, type Step } from './drive.ts'
import { letIn } from './let-in.ts'
import { restPots, wakeAtPots } from './pots.ts'
import { wakeNeedy } from './wake-needy.ts'
import { childWidth } from './width.ts'

export interface WaitFor {
  readonly ordinals: 'all' | ReadonlySet<number>
  /** epoch ms at which the wait ends by itself; null: it does not */
  readonly wakeAt: number | null
  /** the log is closed, so a stop changes nothing any more */
  readonly closed: boolean
  readonly rows: readonly BookRow[]
}

/**
 * Lies down until children have settled: no Lambda is held, the last of them wakes the session. Conditional on what was
 * read, so no settlement falls between looking and lying down. `ready`: nothing is left to wait for, or time is up.
 */
export async function waitFor(d: Drive, w: WaitFor): Promise<'ready' | Step> {
  const { ordinals } = w
  for (;;) {
    const h = await refresh(d)
    if (isTerminal(h)) return 'again'
    if (h.attempt !== d.attempt) return 'gone'
    const left = [...h.pending].filter((o) => ordinals === 'all' || ordinals.has(o))
    if (left.length === 0 || (w.wakeAt !== null && now(d) >= w.wakeAt)) return 'ready'
    if (h.stop && !w.closed) return 'again'
    if (!w.closed && (await restPots(d, readState(d.slots, h))) === 'again') return 'again'
    const all = left.length === h.pending.size
    const suspended = await d.ctx.store.suspend(d.ref, d.attempt, {
      on: all ? 'all' : { ordinals: left, settled: h.settled },
      wakeAt: w.wakeAt,
      rows: w.rows,
      closed: w.closed,
      now: now(d),
    })
    if (suspended.written) {
      await wakeAtPots(d)
      await startHeldBack(d, h, suspended.item)
      if (w.wakeAt !== null) await bringForward(d.ctx, d.ref, w.wakeAt)
      return 'asleep'
    }
    const g = await refresh(d)
    if (isTerminal(g) || g.attempt !== d.attempt) return 'asleep'
    if (g.status === 'waiting') {
      await startHeldBack(d, h, g) // it was written, and the answer was lost
      return 'asleep'
    }
  }
}

/** A session that waits for everything gives its own place to its children: those that it lets in are invoked. */
async function startHeldBack(d: Drive, before: SessionHeader, after: SessionHeader): Promise<void> {
  if (after.stop) return
  await letIn(d.ctx, d.ref, { before, after, width: childWidth(d) })
  await wakeNeedy(d.ctx, d.ref, after)
}

/** Lies down until a time; the sweep wakes the session when it has come. */
export async function waitForTime(d: Drive, until: number, rows: readonly BookRow[]): Promise<Step> {
  const wait = { on: 'time', wakeAt: until, rows, closed: false, now: now(d) } as const
  const suspended = await d.ctx.store.suspend(d.ref, d.attempt, wait)
  if (!suspended.written) {
    // it may be this very write that stands there, when its first answer was lost
    const g = await refresh(d)
    return isTerminal(g) || g.attempt !== d.attempt || g.status === 'waiting' ? 'asleep' : 'again'
  }
  await bringForward(d.ctx, d.ref, until)
  return 'asleep'
}

/** Lies down until others say something, or until a time; its own place is for its children meanwhile. */
export async function lieDownUntil(
  d: Drive,
  before: SessionHeader,
  wait: Parameters<Store['suspend']>[2] & { readonly wakeAt: number },
): Promise<Step> {
  if ((await restPots(d, readState(d.slots, before))) === 'again') return 'again'
  const suspended = await d.ctx.store.suspend(d.ref, d.attempt, wait)
  const after = suspended.written ? suspended.item : await refresh(d)
  if (isTerminal(after) || after.attempt !== d.attempt) return 'asleep'
  // refused, and not because it was written before
  if (after.status !== 'waiting') return 'again'
  await wakeAtPots(d)
  await startHeldBack(d, before, after)
  // the sweep looks at the run when the wait is over, and not only at its next turn
  await bringForward(d.ctx, d.ref, wait.wakeAt)
  return 'asleep'
}
