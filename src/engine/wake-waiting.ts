import { positive } from '../domain/budget.ts'
import { rootSessionId } from '../domain/ids.ts'
import { isZero } from '../domain/money.ts'
import type { LimitRef, SharedLimit } from '../ports/limit-store.ts'
import type { EngineContext } from './context.ts'
import { wakeNeedy } from './wake-needy.ts'

/** Runs looked at for it, at most. */
const LOOKS = 4

/**
 * Something of a limit has become available: wakes some of the runs that wait for it. A hint only; who is left out, or was
 * not asleep yet, looks by himself after some minutes.
 */
export async function wakeWaiting(
  ctx: Pick<EngineContext, 'store' | 'invoker' | 'clock'>,
  ref: LimitRef,
  item: SharedLimit,
  but: string,
  most: number,
): Promise<void> {
  if (isZero(positive(item.avail))) return
  const waiting = Object.entries(item.held)
    .filter(([holder, hold]) => hold.waits && holder !== but)
    .map(([holder]) => holder)
    .sort()
  let woken = 0
  // not always the first ones
  for (let i = 0; i < Math.min(waiting.length, LOOKS) && woken < most; i++) {
    const runId = waiting[(item.v + i) % waiting.length]!
    const rootRef = { tenant: ref.tenant, runId, sessionId: rootSessionId(runId) }
    const root = await ctx.store.getHeader(rootRef)
    if (root) woken += await wakeNeedy(ctx, rootRef, root, { most: most - woken, above: true })
  }
}
