/**
 * Token counts of model calls, and their totals.
 *
 * `inputTokens` counts all input, of which `cacheReadTokens` and `cacheWriteTokens`; `outputTokens` all output, of which
 * `reasoningTokens`. Providers disagree on what is inside what; adapters normalise, nothing else does.
 */

import type { Amount } from './money.ts'

/** The tokens of one call. Whole numbers, never negative. */
export interface TokenUsage {
  /** all input tokens, cached ones included */
  readonly inputTokens: number
  /** of the input, read from the provider's prompt cache */
  readonly cacheReadTokens: number
  /** of the input, written to the cache, whatever the lifetime */
  readonly cacheWriteTokens: number
  /** of the cache writes, those with the one-hour lifetime, which cost more (0 where there is no breakdown) */
  readonly cacheWrite1hTokens: number
  /** all output tokens, reasoning included */
  readonly outputTokens: number
  /** of the output, reasoning */
  readonly reasoningTokens: number
}

/** `reported` by the provider at the end, `partial` (what it had said when the stream broke), or `estimated` by us. */
export type UsageSource = 'reported' | 'partial' | 'estimated'

export const NO_USAGE: TokenUsage = {
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
}

/**
 * Counts and money of many calls of one outcome. Money is exact at any size. A count that leaves the safe integers stays
 * at `Number.MAX_SAFE_INTEGER`, which then means "at least so many": a sum that is too large for a number must not keep
 * a run from being read or ended.
 */
export interface Totals extends TokenUsage {
  /** number of calls */
  readonly calls: number
  /** pico-USD of the calls that have a price */
  readonly cost: bigint
  /** calls without a known price: more was spent than `cost` says */
  readonly unpricedCalls: number
}

export const NO_TOTALS: Totals = { ...NO_USAGE, calls: 0, cost: 0n, unpricedCalls: 0 }

/** The names of the whole-number fields of Totals, in the order in which they are stored. */
export const COUNTS = [
  'calls',
  'inputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWrite1hTokens',
  'outputTokens',
  'reasoningTokens',
  'unpricedCalls',
] as const satisfies readonly (keyof Totals)[]

/** A count within the safe integers. What is no whole number goes through as it is: whoever stores it refuses it. */
export const saturated = (count: number): number =>
  Math.max(-Number.MAX_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, count))

export function addTotals(a: Totals, b: Totals): Totals {
  const sum = { ...a, cost: a.cost + b.cost }
  for (const k of COUNTS) sum[k] = saturated(a[k] + b[k])
  return sum
}

export function subTotals(a: Totals, b: Totals): Totals {
  const rest = { ...a, cost: a.cost - b.cost }
  for (const k of COUNTS) rest[k] = saturated(a[k] - b[k])
  return rest
}

export const sumTotals = (all: Iterable<Totals>): Totals => {
  let sum = NO_TOTALS
  for (const t of all) sum = addTotals(sum, t)
  return sum
}

/**
 * How a call ended, as the books see it. `accepted`: part of the transcript. `failed`: an error after spend.
 * `duplicate`: its answer came after the call had been written off and another one was accepted. `unknown`: no answer is
 * known, booked at its upper bound. (An intent that was never called has outcome `none` and is no call.)
 */
export type CallOutcome = 'accepted' | 'failed' | 'duplicate' | 'unknown'
export const CALL_OUTCOMES = ['accepted', 'failed', 'duplicate', 'unknown'] as const satisfies readonly CallOutcome[]

/** Totals by outcome; an outcome without calls is left out. */
export type Books = { readonly [O in CallOutcome]?: Totals }

export function addBooks(a: Books, b: Books): Books {
  const sum: { [O in CallOutcome]?: Totals } = { ...a }
  for (const o of CALL_OUTCOMES) if (b[o]) sum[o] = sum[o] ? addTotals(sum[o], b[o]) : b[o]
  return sum
}

export function subBooks(a: Books, b: Books): Books {
  const rest: { [O in CallOutcome]?: Totals } = { ...a }
  for (const o of CALL_OUTCOMES) if (b[o]) rest[o] = subTotals(rest[o] ?? NO_TOTALS, b[o])
  return rest
}

/** Everything paid for and known: accepted, failed and duplicate, without unknown. */
export const known = (b: Books): Totals =>
  sumTotals([b.accepted ?? NO_TOTALS, b.failed ?? NO_TOTALS, b.duplicate ?? NO_TOTALS])
/** Paid for, but no part of a transcript. */
export const waste = (b: Books): Totals => sumTotals([b.failed ?? NO_TOTALS, b.duplicate ?? NO_TOTALS])
/** Calls of which no answer is known, at their upper bounds. */
export const unknown = (b: Books): Totals => b.unknown ?? NO_TOTALS

/** A total of one agent, model and outcome: the finest row of the books above the single call. */
export interface BookRow {
  readonly agent: string
  /** key of the team's models */
  readonly model: string
  readonly outcome: CallOutcome
  readonly totals: Totals
}

export const booksOf = (rows: readonly BookRow[]): Books =>
  rows.reduce<Books>((b, r) => addBooks(b, { [r.outcome]: r.totals }), {})

/** Adds a row to a list of rows, keeping one row for each agent, model and outcome. */
export function addRow(rows: readonly BookRow[], row: BookRow): BookRow[] {
  const i = rows.findIndex((r) => r.agent === row.agent && r.model === row.model && r.outcome === row.outcome)
  if (i < 0) return [...rows, row]
  return rows.with(i, { ...row, totals: addTotals(rows[i]!.totals, row.totals) })
}

/** What books take out of a budget: everything known, and everything unknown at its bound. */
export function amountOf(books: Books): Amount {
  const [k, u] = [known(books), unknown(books)]
  const counts = [k.inputTokens, k.outputTokens, u.inputTokens, u.outputTokens]
  return { usd: k.cost + u.cost, tok: counts.reduce((sum, count) => sum + BigInt(count), 0n) }
}
