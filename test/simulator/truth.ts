/** What the items say, summed by plain loops: the truth that the product's own sums are held against. */
import type { SessionHeader } from '../../src/domain/session.ts'
import type { ResponseSlot } from '../../src/domain/turn.ts'
import type { Mirror } from './mirror.ts'

/** One number for each agent, model and outcome, and within it for each kind of token, calls and money. */
export type Sums = Map<string, bigint>

const FIELDS = [
  'inputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWrite1hTokens',
  'outputTokens',
  'reasoningTokens',
] as const

export function addTo(sums: Sums, key: string, n: bigint): void {
  if (n === 0n) return
  const sum = (sums.get(key) ?? 0n) + n
  if (sum === 0n) sums.delete(key)
  else sums.set(key, sum)
}

export function addAll(sums: Sums, more: Sums): Sums {
  for (const [key, n] of more) addTo(sums, key, n)
  return sums
}

/** A call that was made, as the books should show it. */
function addCall(sums: Sums, prefix: string, r: ResponseSlot): void {
  addTo(sums, `${prefix} calls`, 1n)
  for (const field of FIELDS) addTo(sums, `${prefix} ${field}`, BigInt(r.usage[field]))
  if (r.cost === null) addTo(sums, `${prefix} unpricedCalls`, 1n)
  else addTo(sums, `${prefix} cost`, r.cost)
}

/** Own calls of a session from its items, by agent, model and outcome. */
export function sumOfItems(mirror: Mirror, s: string): Sums {
  const sums: Sums = new Map()
  for (const r of mirror.log(s).responses.values()) {
    if (r.outcome !== 'none') addCall(sums, `${r.agent}/${r.model}/${r.outcome}`, r)
  }
  return sums
}

type AnyTotals = { readonly [field: string]: number | bigint }

function addTotalsTo(sums: Sums, prefix: string, totals: object): void {
  for (const [field, n] of Object.entries(totals as AnyTotals)) addTo(sums, `${prefix} ${field}`, BigInt(n))
}

/** Own rows of a header, as it says. */
export function sumOfRows(h: SessionHeader): Sums {
  const sums: Sums = new Map()
  for (const row of h.rows) addTotalsTo(sums, `${row.agent}/${row.model}/${row.outcome}`, row.totals)
  return sums
}

/** Books by outcome, as a header or a run says. */
export function sumOfBooks(books: object): Sums {
  const sums: Sums = new Map()
  for (const [outcome, totals] of Object.entries(books)) addTotalsTo(sums, outcome, totals as object)
  return sums
}

/** The same sums by outcome alone. */
export function byOutcome(sums: Sums): Sums {
  const less: Sums = new Map()
  for (const [key, n] of sums) addTo(less, key.slice(key.lastIndexOf('/') + 1), n)
  return less
}

/** undefined: the same; otherwise the first line in which they differ. */
export function difference(a: Sums, b: Sums): string | undefined {
  for (const key of new Set([...a.keys(), ...b.keys()])) {
    if (a.get(key) !== b.get(key)) return `${key}: ${a.get(key) ?? 0n}, not ${b.get(key) ?? 0n}`
  }
  return undefined
}

/** What a sum takes out of a budget, in pico-USD and tokens. */
export function amountOf(sums: Sums): { usd: bigint; tok: bigint } {
  let [usd, tok] = [0n, 0n]
  for (const [key, n] of sums) {
    if (key.endsWith(' cost')) usd += n
    if (key.endsWith(' inputTokens') || key.endsWith(' outputTokens')) tok += n
  }
  return { usd, tok }
}
