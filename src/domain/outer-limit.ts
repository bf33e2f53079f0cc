/**
 * Limits over time that stand outside a run: of its tenant, its team, or a tag that it has to have. A run is granted parts
 * of them and may spend no more than that; what it has not spent goes back when its round ends.
 */
import { type Amount, add, min, UNLIMITED, ZERO } from './money.ts'

export type Per = 'day' | 'month'

export interface OuterLimit {
  /** says of whom: `tenant`, `team research`, `tag customer=acme` */
  readonly name: string
  readonly per: Per
  readonly limit: Amount
}

/** What a run holds of one outer limit in one period. */
export interface Grant {
  /** UTC: `2026-11-30`, `2026-11` */
  readonly period: string
  readonly name: string
  /** all that the run had been granted when it began to hold this: what it spends beyond is spent of this */
  readonly from: Amount
  readonly hold: Amount
}

/** Why a run that waits has stopped: an outer limit has less left than its next call may cost. */
export interface Shortage {
  readonly need: Amount
  /** when the next period begins, epoch ms */
  readonly resumeAt: number
}

interface Granted {
  readonly limit: Amount
  /** in all rounds together; null: no outer limit applies. What none of them limits is UNLIMITED */
  readonly granted: Amount | null
}

export const KINDS = ['usd', 'tok'] as const
type Kind = (typeof KINDS)[number]
export const eachKind = (of: (kind: Kind) => bigint): Amount => ({ usd: of('usd'), tok: of('tok') })

/** What the sessions of a run may spend together: its own limit, or less where less has been granted. */
export const effectiveLimit = ({ limit, granted }: Granted): Amount => (granted ? min(limit, granted) : limit)

/** What a run is granted before it has asked: nothing of what is limited. */
export const firstGrant = (limits: readonly OuterLimit[]): Amount | null =>
  limits.length === 0 ? null : eachKind((k) => (limits.some((l) => l.limit[k] < UNLIMITED) ? 0n : UNLIMITED))

/** Its part in the kinds that outer limits limit; nothing of the others. */
export const limitedPart = ({ granted }: Pick<Granted, 'granted'>, amount: Amount): Amount =>
  eachKind((k) => (granted && granted[k] < UNLIMITED ? amount[k] : 0n))

export const periodOf = (per: Per, at: number): string => new Date(at).toISOString().slice(0, per === 'day' ? 10 : 7)

/** When the period after this one begins, epoch ms. */
export function endOfPeriod(per: Per, period: string): number {
  const d = new Date(period)
  return per === 'day'
    ? Date.UTC(d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate() + 1)
    : Date.UTC(d.getUTCFullYear(), d.getUTCMonth() + 1)
}

const endOf = (g: Grant): Amount => add(g.from, g.hold)
const largest = (a: bigint, b: bigint) => (a > b ? a : b)
const between = (low: bigint, value: bigint, high: bigint) => largest(low, value < high ? value : high)

/** How far the grants reach. Beyond what is granted: they were noted, and nobody has finished it yet. */
export const reachOf = (run: { readonly granted: Amount | null; readonly grants: readonly Grant[] }): Amount =>
  run.grants.map(endOf).reduce((a, b) => eachKind((k) => largest(a[k], b[k])), limitedPart(run, run.granted ?? ZERO))

/**
 * The grants with `more` of each of these limits, in the periods that were looked at: the present one may be another by
 * now, and nobody has made its items.
 */
export function grown(
  run: { readonly granted: Amount | null; readonly grants: readonly Grant[] },
  limits: readonly Pick<Grant, 'name' | 'period'>[],
  more: Amount,
): Grant[] {
  const grants = [...run.grants]
  const granted = limitedPart(run, run.granted ?? ZERO)
  for (const { name, period } of limits) {
    const i = grants.findIndex((g) => g.name === name && g.period === period)
    const old = grants[i]
    const hold = add(old?.hold ?? ZERO, more)
    // it ends where all of them end: one that had a gap, because its limit was gone for a while, begins later
    const grant = { period, name, from: eachKind((k) => granted[k] + more[k] - hold[k]), hold }
    if (old) grants[i] = grant
    else grants.push(grant)
  }
  return grants
}

/** The grants of a run that is granted no more than this. */
export const shrunk = (grants: readonly Grant[], granted: Amount): Grant[] =>
  grants.map((g) => ({ ...g, hold: eachKind((k) => between(0n, granted[k] - g.from[k], g.hold[k])) }))

/**
 * What of all that a run has spent counts against one of its grants: the oldest are used up first. What goes beyond all
 * (a call that cost more than its hold) counts against the last ones.
 */
export function spentOf(grants: readonly Grant[], grant: Grant, spent: Amount): Amount {
  const reach = grants.map(endOf).reduce((a, b) => eachKind((k) => largest(a[k], b[k])), ZERO)
  return eachKind((k) => {
    const beyond = spent[k] - grant.from[k]
    const isLast = endOf(grant)[k] === reach[k]
    return isLast ? largest(0n, beyond) : between(0n, beyond, grant.hold[k])
  })
}
