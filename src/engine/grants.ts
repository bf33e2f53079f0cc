import { rootSessionId } from '../domain/ids.ts'
import { type Amount, covers, same, sub, UNLIMITED, ZERO } from '../domain/money.ts'
import { eachKind, effectiveLimit, type Grant, grown, limitedPart, reachOf, shrunk } from '../domain/outer-limit.ts'
import type { Run, RunRef } from '../domain/run.ts'
import { isTerminal, type SessionHeader } from '../domain/session.ts'
import type { Hold, LimitRef, SharedLimit } from '../ports/limit-store.ts'
import { takeLimit } from './change-budget.ts'
import type { EngineContext } from './context.ts'
import { chunkOf, isGrantable, judge, lookFor, lookOuter, NO_OUTER, needOf, netOf, type Outer } from './look-outer.ts'
import { wakeWaiting } from './wake-waiting.ts'

export type GrantContext = Pick<EngineContext, 'store' | 'invoker' | 'clock' | 'outerLimits'>

/** `granted`: there is more in the run than before, look again; otherwise how it stands with the limits outside. */
export type Asked = 'granted' | Outer

/**
 * Asks for more than a run has, of all limits outside of it. In this order, so that nobody ever spends what is not held:
 * the run notes what it is about to hold, holds it of each limit, says that it is granted, and its root takes it in.
 * Whoever comes after a crash between two of these finishes what was noted, or takes it back.
 * @param missing what the asker could not find in the run
 */
export async function askGrant(ctx: GrantContext, ref: RunRef, missing: Amount): Promise<Asked> {
  for (;;) {
    const run = await ctx.store.getRun(ref, { consistent: true })
    if (!run || !isGrantable(run) || run.status !== 'running' || run.stop) return NO_OUTER
    if ((await tidyGrants(ctx, run)) !== 'tidy') return 'granted'
    const outer = await lookFor(ctx, run, missing)
    if (!outer.enough) return outer
    const more = chunkOf(run, outer.need, outer)
    const noted = await note(
      ctx,
      run,
      grown(
        run,
        outer.limits.map((l) => l.ref),
        more,
      ),
      reachedBy(run, more),
    )
    if (noted && (await finishGrant(ctx, noted)) === 'granted') return 'granted'
  }
}

/** Where no limit is left that would hold it, there is nothing to reach: what is granted is simply more. */
const reachedBy = (run: Run, more: Amount): Amount => eachKind((k) => run.granted![k] + more[k])

async function note(ctx: GrantContext, run: Run, grants: readonly Grant[], reach: Amount): Promise<Run | undefined> {
  const now = ctx.clock.now()
  const limited = limitedPart(run, reach)
  const granted = same(reachOf({ ...run, grants }), limited) ? run.granted! : reach
  const written = await ctx.store.moveGrants(run, run, { granted, grants, now })
  return written.written ? written.item : undefined
}

/** Whether something was noted that is not granted yet. */
export const isUnfinished = (run: Run): boolean =>
  run.granted !== null && !same(reachOf(run), limitedPart(run, run.granted))

/** Holds what a run has noted, and grants it; or takes the note back where a limit has too little left. */
async function finishGrant(ctx: GrantContext, run: Run): Promise<'granted' | 'not'> {
  const held = await putHolds(ctx, run)
  if (held === 'stale') return 'not'
  const now = ctx.clock.now()
  if (held === 'short') {
    const back = await ctx.store.moveGrants(run, run, {
      granted: run.granted!,
      grants: shrunk(run.grants, run.granted!),
      now,
    })
    if (back.written) await putHolds(ctx, back.item)
    return 'not'
  }
  const reach = reachOf(run)
  const granted = eachKind((k) => (run.granted![k] >= UNLIMITED ? UNLIMITED : reach[k]))
  const written = await ctx.store.moveGrants(run, run, { granted, grants: run.grants, now })
  if (!written.written) return 'not'
  await takeLimit(ctx, written.item)
  // there may be more where this came from: one who has got some wakes the next
  for (const { ref, item } of held) await wakeWaiting(ctx, ref, item, run.runId, 1)
  return 'granted'
}

export interface HeldLimit {
  readonly ref: LimitRef
  readonly item: SharedLimit
}

/**
 * Sees that the limits say what the run has noted. Each hold carries the number of the note, so one that belongs to an
 * older note is never written over it. The limits are read before the run is looked at once more: when it has ended since,
 * its holds are settled or about to be, and the version of the limit keeps a late one out.
 * @returns the limits as they are afterwards · `short`: one of them has too little left · `stale`: the run has moved on
 */
export async function putHolds(
  ctx: Pick<GrantContext, 'store'>,
  run: Run,
  options: { waits?: true } = {},
): Promise<readonly HeldLimit[] | 'short' | 'stale'> {
  const refs = run.grants.map((g) => refOf(run, g))
  for (;;) {
    const items = await Promise.all(refs.map((ref) => mustGetLimit(ctx, ref)))
    const now = await ctx.store.getRun(run, { consistent: true })
    if (now?.limitSeq !== run.limitSeq || now.status !== run.status) return 'stale'
    const held: HeldLimit[] = []
    for (const [i, { hold }] of run.grants.entries()) {
      const [ref, item] = [refs[i]!, items[i]!]
      const mine = item.held[run.runId] ?? null
      if (mine && mine.seq! > run.limitSeq) return 'stale'
      if (mine?.seq === run.limitSeq) {
        held.push({ ref, item })
        continue
      }
      const more = sub(hold, mine ?? ZERO)
      if (!covers(ZERO, more) && !covers(item.avail, more)) return 'short'
      const to: Hold = { ...hold, seq: run.limitSeq, ...options }
      const written = await ctx.store.hold(ref, run.runId, { hold: mine, v: item.v }, to)
      if (!written.written) break
      held.push({ ref, item: written.item })
    }
    if (held.length === refs.length) return held
  }
}

const refOf = ({ tenant }: RunRef, { period, name }: Grant): LimitRef => ({ tenant, period, name })

export { refOf as limitOfGrant }

export async function mustGetLimit(ctx: Pick<GrantContext, 'store'>, ref: LimitRef): Promise<SharedLimit> {
  const item = await ctx.store.getLimit(ref)
  if (!item) throw new Error(`the limit ${JSON.stringify(ref)} is not in the table`)
  return item
}

/**
 * Finishes what somebody has begun who may have died: a note, what the root has not taken in, and what it has left without
 * the run having been told.
 */
export async function tidyGrants(ctx: GrantContext, run: Run): Promise<'tidy' | 'moved'> {
  if (isUnfinished(run)) {
    await finishGrant(ctx, run)
    return 'moved'
  }
  const root = await ctx.store.getHeader({ ...run, sessionId: rootSessionId(run.runId) })
  if (!root || isTerminal(root)) return 'tidy'
  if (root.limitSeq < run.limitSeq) {
    const before = netOf(root)
    await takeLimit(ctx, run)
    return same(before, effectiveLimit(run)) ? 'tidy' : 'moved'
  }
  if (!hasLeft(run, root)) return 'tidy'
  await lowerGrants(ctx, run, root)
  return 'moved'
}

/** Whether the root has given up something that the run still says is granted. */
const hasLeft = (run: Run, root: SessionHeader): boolean =>
  root.limitSeq === run.limitSeq && !covers(limitedPart(run, netOf(root)), limitedPart(run, effectiveLimit(run)))

/** The run is granted no more than its root has left, and holds no more than that. */
async function lowerGrants(ctx: GrantContext, run: Run, root: SessionHeader): Promise<Run | undefined> {
  const net = netOf(root)
  const granted = eachKind((k) => (run.granted![k] >= UNLIMITED ? UNLIMITED : net[k]))
  const to = { granted, grants: shrunk(run.grants, granted), now: ctx.clock.now() }
  const written = await ctx.store.moveGrants(run, run, to)
  if (!written.written) return undefined
  await putHolds(ctx, written.item)
  await takeLimit(ctx, written.item)
  return written.item
}

/**
 * A run in which nobody can go on says so to the limits that it waits for, and holds no more than it has spent or still
 * needs; what its root has given up is there for others.
 * @returns how it stands afterwards, or that somebody else has changed something
 */
export async function restGrants(ctx: GrantContext, ref: RunRef, missing: Amount): Promise<Outer | 'again'> {
  const run = await ctx.store.getRun(ref, { consistent: true })
  const root = await ctx.store.getHeader({ ...ref, sessionId: rootSessionId(ref.runId) })
  if (!run || !root || run.status !== 'running' || isUnfinished(run)) return 'again'
  if (root.limitSeq !== run.limitSeq) {
    await takeLimit(ctx, run)
    return 'again'
  }
  const need = needOf(run, missing)
  const outer = await lookOuter(ctx, run, need)
  const rests = outer.limits.every(({ item }) => item.held[run.runId]?.waits)
  if (rests && !hasLeft(run, root)) return outer
  const net = netOf(root)
  const granted = eachKind((k) => (run.granted![k] >= UNLIMITED ? UNLIMITED : net[k]))
  const lowered = { granted, grants: shrunk(run.grants, granted) }
  // limits of which it holds nothing yet are among those that know who waits for them
  const grants = grown(
    lowered,
    outer.limits.map((l) => l.ref),
    ZERO,
  )
  const written = await ctx.store.moveGrants(run, run, { granted, grants, now: ctx.clock.now() })
  if (!written.written) return 'again'
  await takeLimit(ctx, written.item)
  const held = await putHolds(ctx, written.item, { waits: true })
  if (typeof held === 'string') return 'again'
  for (const { ref, item } of held) await wakeWaiting(ctx, ref, item, run.runId, 2)
  // as each limit was right after this was written: of several that come to rest at once, the last one sees all others
  const seen = outer.limits.map((l) => ({ ...l, item: held.find((h) => isSame(h.ref, l.ref))?.item ?? l.item }))
  return judge(written.item, need, seen)
}

const isSame = (a: LimitRef, b: LimitRef): boolean => JSON.stringify(a) === JSON.stringify(b)

/** A run that is refused goes on without more: it is nobody who waits, and what it has may come back. */
export async function workOn(ctx: GrantContext, ref: RunRef): Promise<void> {
  const run = await ctx.store.getRun(ref, { consistent: true })
  if (run?.status !== 'running') return
  for (const grant of run.grants) {
    const limit = refOf(run, grant)
    const item = await mustGetLimit(ctx, limit)
    const mine = item.held[run.runId]
    if (!mine?.waits) continue
    const { waits: _, ...hold } = mine
    await ctx.store.hold(limit, run.runId, { hold: mine, v: item.v }, hold)
  }
}
