import type { RunRef } from './run.ts'
import { addTotals, type BookRow, COUNTS, NO_TOTALS, subTotals, type Totals } from './usage.ts'

/** A tenant's reports of one day, in UTC. */
export interface UsageDayRef {
  readonly tenant: string
  /** `2026-01-31` */
  readonly day: string
}

/** Names a usage item: whoever computes it comes to the same name, so each is counted once. */
export interface UsageItemRef extends RunRef {
  readonly round: number
  /** epoch ms at which the round's root ended: it says the day and the hour, and never changes */
  readonly at: number
  /** the version of the root's totals that a correction goes on from; null: the round's own item */
  readonly from: number | null
}

/**
 * What a finished round has spent, or by how much a correction changes that. The items of a run are a chain: each says
 * what it adds to those before it.
 */
export interface UsageItem extends UsageItemRef {
  /** it counts everything that the root's totals of this version count, and perhaps more */
  readonly v: number
  readonly team: string
  readonly tags: { readonly [key: string]: string }
  /** what it adds; models by `provider/model` */
  readonly rows: readonly BookRow[]
  /** what the run's items before it have said, all together */
  readonly base: readonly BookRow[]
  /** of a round's own item: when the root of the round before had ended, epoch ms; null: nothing was reported before */
  readonly before: number | null
  /** ends the chain of its round, because a later round has taken over; it adds nothing */
  readonly seal: boolean
}

/** A total of a report: the finest row that there is. */
export interface ReportRow extends BookRow {
  readonly team: string
  readonly tags: { readonly [key: string]: string }
}

/** How far the items of a day have been folded. */
export interface UsageDay extends UsageDayRef {
  /** hours for which a fold may have begun: their items must be looked for in it */
  readonly closing: number
  /** hours that are folded: a report reads their folds in place of their items */
  readonly folded: number
  /** when the sweep looks at it next, epoch ms; null: the whole day is folded */
  readonly dueAt: number | null
}

export const HOUR_MS = 3_600_000
export const HOURS = 24
const DAY_MS = HOURS * HOUR_MS

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
export const hourOf = (at: number): number => Math.floor((at % DAY_MS) / HOUR_MS)
/** Epoch ms at which a day begins. */
export const dayStart = (day: string): number => Date.parse(`${day}T00:00:00.000Z`)
export const usageDayOf = (ref: Pick<UsageItemRef, 'tenant' | 'at'>): UsageDayRef => ({
  tenant: ref.tenant,
  day: dayOf(ref.at),
})

export const isNothing = (totals: Totals): boolean => totals.cost === 0n && COUNTS.every((field) => totals[field] === 0)

/** One row for each agent, model and outcome, without those that come to nothing. */
export function sumRows(...lists: readonly (readonly BookRow[])[]): BookRow[] {
  return merged(lists.flat(), (row) => JSON.stringify([row.agent, row.model, row.outcome]))
}

/** What must be added to `b` to come to `a`. */
export const rowsBeyond = (a: readonly BookRow[], b: readonly BookRow[]): BookRow[] =>
  sumRows(
    a,
    b.map((row) => ({ ...row, totals: subTotals(NO_TOTALS, row.totals) })),
  )

/** One row for each team, set of tags, agent, model and outcome. */
export const sumReport = (rows: readonly ReportRow[]): ReportRow[] =>
  merged(rows, (row) => JSON.stringify([row.team, tagList(row.tags), row.agent, row.model, row.outcome]))

/** Tags in the order of their names, so that equal sets are equal texts. */
export const tagList = (tags: { readonly [key: string]: string }): [string, string][] =>
  Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1))

export const reportRows = (item: Pick<UsageItem, 'team' | 'tags' | 'rows'>): ReportRow[] =>
  item.rows.map((row) => ({ ...row, team: item.team, tags: item.tags }))

function merged<R extends BookRow>(rows: readonly R[], key: (row: R) => string): R[] {
  const sums = new Map<string, R>()
  for (const row of rows) {
    const k = key(row)
    const sum = sums.get(k)
    sums.set(k, sum ? { ...sum, totals: addTotals(sum.totals, row.totals) } : row)
  }
  return [...sums.values()].filter((row) => !isNothing(row.totals))
}
