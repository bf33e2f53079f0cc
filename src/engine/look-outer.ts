import { isBlocked, positive } from '../domain/budget.ts'
import { type Amount, add, covers, isZero, min, sub, UNLIMITED, ZERO } from '../domain/money.ts'
import { eachKind, endOfPeriod, KINDS, limitedPart, type OuterLimit, periodOf } from '../domain/outer-limit.ts'
import type { Run } from '../domain/run.ts'
import type { LimitRef, PeriodRef, SharedLimit } from '../ports/limit-store.ts'
import type { EngineContext } from './context.ts'

type Ctx = Pick<EngineContext, 'store' | 'clock' | 'outerLimits'>

/** An outer limit as it is in the present period. */
export interface OpenLimit extends OuterLimit {
  readonly ref: PeriodRef
  readonly item: SharedLimit
}

/** What can be had for a run of the limits outside of it. */
export interface Outer {
  readonly limits: readonly OpenLimit[]
  /** what it may be granted at once, in the kinds that are limited */
  readonly left: Amount
  /** something of each kind that is limited */
  readonly some: boolean
  readonly enough: boolean
  /** not enough now, but others hold what may come back: it is worth waiting for */
  readonly wait: boolean
  /** of those that have too little, when the last one begins anew, epoch ms; null: the run's own limit has too little */
  readonly resumeAt: number | null
  /** names of those that have too little */
  readonly short: readonly string[]
}

/**
 * The limits that apply to a run, in the present period; an item that is not there yet is made, and one whose configured
 * limit has changed follows it.
 */
export async function openLimits(ctx: Ctx, run: Pick<Run, 'tenant' | 'team' | 'tags'>): Promise<readonly OpenLimit[]> {
  const limits = (await ctx.outerLimits?.of(run)) ?? []
  const at = ctx.clock.now()
  const open: OpenLimit[] = []
  for (const l of limits) {
    const ref = { tenant: run.tenant, period: periodOf(l.per, at), name: l.name }
    open.push({ ...l, ref, item: await openLimit(ctx, ref, l.limit) })
  }
  return open
}

async function openLimit(ctx: Ctx, ref: LimitRef, limit: Amount): Promise<SharedLimit> {
  for (;;) {
    const item = await ctx.store.getLimit(ref)
    if (!item) await ctx.store.putLimit(ref, limit)
    else if (item.limit.usd === limit.usd && item.limit.tok === limit.tok) return item
    else await ctx.store.moveLimit(ref, item.limit, limit)
  }
}

/** Of a run that nothing limits from outside. */
export const NO_OUTER: Outer = {
  limits: [],
  left: ZERO,
  some: false,
  enough: false,
  wait: false,
  resumeAt: null,
  short: [],
}

/** What of a run's own limit it has not been granted yet. */
const roomOf = (run: Run): Amount => limitedPart(run, sub(run.limit, run.granted ?? ZERO))

/**
 * How it stands with the limits outside for somebody who lacks this. Where he lacks something that none of them limits,
 * they cannot help: it is the run's own limit that has too little.
 */
export async function lookFor(ctx: Ctx, run: Run, missing: Amount): Promise<Outer & { readonly need: Amount }> {
  const need = needOf(run, missing)
  const outer = await lookOuter(ctx, run, need)
  const own = KINDS.some((k) => missing[k] > 0n && run.granted![k] >= UNLIMITED)
  return own || isZero(need) ? { ...NO_OUTER, left: outer.left, some: outer.some, need } : { ...outer, need }
}

/** @param need what is missing in the run, in the kinds that are limited outside of it */
export async function lookOuter(ctx: Ctx, run: Run, need: Amount): Promise<Outer> {
  return judge(run, need, await openLimits(ctx, run))
}

export function judge(run: Run, need: Amount, limits: readonly OpenLimit[]): Outer {
  const room = roomOf(run)
  // a limit of 0 blocks everything, calls that cost nothing too
  const free = (l: OpenLimit): Amount => (isBlocked(l.limit) ? ZERO : l.item.avail)
  const lacking = limits.filter((l) => isBlocked(l.limit) || !covers(l.item.avail, need))
  const left = positive(limitedPart(run, limits.map(free).reduce(min, room)))
  const fits = covers(room, need)
  return {
    limits,
    left,
    some: KINDS.every((k) => run.granted![k] >= UNLIMITED || left[k] > 0n),
    enough: fits && lacking.length === 0,
    wait: fits && lacking.every((l) => mayComeBack(l, need, run.runId)),
    resumeAt: lacking.length === 0 ? null : Math.max(...lacking.map((l) => endOfPeriod(l.per, l.ref.period))),
    short: lacking.map((l) => `${l.name} (${l.ref.period})`),
  }
}

/** Somebody else works with what he holds of it, and without that the run would fit in. */
function mayComeBack({ item, limit }: OpenLimit, need: Amount, runId: string): boolean {
  const others = Object.entries(item.held).filter(([holder]) => holder !== runId)
  const working = others.some(([, hold]) => !hold.waits && !isZero(hold))
  const most = sub(sub(item.limit, item.spent), item.held[runId] ?? ZERO)
  return working && !isBlocked(limit) && covers(most, need)
}

/** A run takes no more at once than this part of what a limit has available, unless it needs it. */
const PART = 16n

/** How much to ask for: what is needed, or else twice what the run has, so that it asks a few times only. */
export function chunkOf(run: Run, need: Amount, { left }: Pick<Outer, 'left'>): Amount {
  const has = run.grants.reduce((sum, g) => eachKind((k) => (g.hold[k] > sum[k] ? g.hold[k] : sum[k])), ZERO)
  return limitedPart(
    run,
    eachKind((k) => {
      const part = left[k] / PART
      const chunk = has[k] < part ? has[k] : part
      return chunk > need[k] ? chunk : need[k]
    }),
  )
}

/** What a run lacks, as it is asked for: nothing of what nobody limits, something of what it was granted nothing of yet. */
export const needOf = (run: Run, missing: Amount): Amount => {
  const part = limitedPart(run, positive(missing))
  return eachKind((k) => (run.granted?.[k] === 0n && part[k] === 0n ? 1n : part[k]))
}

export const isGrantable = (run: Run): boolean =>
  run.granted !== null && (run.granted.usd < UNLIMITED || run.granted.tok < UNLIMITED)

export const netOf = (root: { readonly share: Amount; readonly given: Amount }): Amount => sub(root.share, root.given)
export const shareFor = (effective: Amount, root: { readonly given: Amount }): Amount => add(effective, root.given)
