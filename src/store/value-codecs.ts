/** The values inside items: amounts, totals, books, rows, intents, errors. What a pair of functions writes, it reads. */
import type { Amount } from '../domain/money.ts'
import type { Price } from '../domain/pricing.ts'
import type { End, ErrorInfo, Intent, StopReason } from '../domain/turn.ts'
import {
  type BookRow,
  type Books,
  CALL_OUTCOMES,
  type CallOutcome,
  COUNTS,
  NO_TOTALS,
  NO_USAGE,
  type TokenUsage,
  type Totals,
} from '../domain/usage.ts'
import { BadItemError, ItemReader, isMap, type NameMap, present } from './item-reader.ts'
import { AMOUNT, END, ERROR, INTENT, OUTCOME, PRICE, ROW, TOTALS } from './table.ts'
import type { Attribute, Item } from './table-client.ts'

const ALL_STOP_REASONS: Record<StopReason, true> = {
  end_turn: true,
  max_iterations: true,
  max_tokens: true,
  budget: true,
  content_filter: true,
  refusal: true,
  error: true,
  timeout: true,
  cancelled: true,
  parent_ended: true,
  max_attempts: true,
  max_continuations: true,
  approval: true,
  children: true,
}
export const STOP_REASONS = Object.keys(ALL_STOP_REASONS) as readonly StopReason[]
export const TERMINAL = ['completed', 'failed', 'cancelled'] as const

export const encodeAmount = (amount: Amount): Item => ({ [AMOUNT.usd]: amount.usd, [AMOUNT.tok]: amount.tok })

export const decodeAmount = (r: ItemReader<typeof AMOUNT>): Amount => ({ usd: r.big('usd'), tok: r.big('tok') })

/** Amounts by a key, such as an ordinal or a call number. */
export const encodeAmounts = (amounts: { readonly [key: string]: Amount }): Item =>
  Object.fromEntries(Object.entries(amounts).map(([key, amount]) => [key, encodeAmount(amount)]))

export function decodeAmounts(map: Item, where: string): { [key: string]: Amount } {
  return Object.fromEntries(
    Object.entries(map).map(([key, value]) => [key, decodeAmount(mapReader(value, AMOUNT, `${where}.${key}`))]),
  )
}

/** A reader of a map that stands inside another value. @throws BadItemError when it is none */
export function mapReader<F extends NameMap>(value: Attribute | undefined, names: F, where: string): ItemReader<F> {
  if (!isMap(value)) throw new BadItemError(`${where} is not a map`)
  return new ItemReader(value, names, where)
}

const USAGE_FIELDS = [
  'inputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWrite1hTokens',
  'outputTokens',
  'reasoningTokens',
] as const satisfies readonly (keyof TokenUsage)[]

/** Token counts; those that are zero are left out, an absent one is zero. @throws RangeError naming a count that is none */
export function encodeUsage(usage: TokenUsage): Item {
  const map: { [name: string]: Attribute } = {}
  for (const field of USAGE_FIELDS) {
    const count = whole(field, usage[field])
    if (count < 0) throw new RangeError(`${field} is ${count}: a token count is never negative`)
    if (count !== 0) map[TOTALS[field]] = count
  }
  return map
}

/** NaN and fractions stop here: left out like a zero they would be a call that cost nothing. @throws RangeError */
export function whole(name: string, value: number): number {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${name} is ${value}: it must be a whole number`)
  return value
}

export function decodeUsage(r: ItemReader<typeof TOTALS>): TokenUsage {
  const usage = { ...NO_USAGE }
  for (const field of USAGE_FIELDS) if (r.has(field)) usage[field] = r.whole(field)
  return usage
}

/** Totals; fields that are zero are left out, an absent one is zero. */
export function encodeTotals(totals: Totals): Item {
  const map: { [name: string]: Attribute } = {}
  for (const field of COUNTS) if (whole(field, totals[field]) !== 0) map[TOTALS[field]] = totals[field]
  if (totals.cost !== 0n) map[TOTALS.cost] = totals.cost
  return map
}

export function decodeTotals(r: ItemReader<typeof TOTALS>): Totals {
  const totals = { ...NO_TOTALS, cost: r.has('cost') ? r.big('cost') : 0n }
  for (const field of COUNTS) if (r.has(field)) totals[field] = r.count(field)
  return totals
}

/**
 * Tags as JSON text, a list of pairs: their names come from outside, and as names of a map's attributes the SDK refuses
 * some of them (`constructor`, `__proto__`).
 */
export const encodeTags = (tags: { readonly [name: string]: string }): string => JSON.stringify(Object.entries(tags))

/** @param stored what encodeTags has made, or a map of texts @throws BadItemError */
export function decodeTags(stored: Attribute | undefined, where: string): { [name: string]: string } {
  const pairs = isMap(stored) ? Object.entries(stored) : parseTags(stored)
  if (!Array.isArray(pairs)) throw new BadItemError(`${where}: its tags are no list of names and texts`)
  for (const pair of pairs)
    if (!Array.isArray(pair) || pair.length !== 2 || pair.some((part) => typeof part !== 'string'))
      throw new BadItemError(`${where}: tag ${JSON.stringify(Array.isArray(pair) ? pair[0] : pair)} is not a string`)
  return Object.fromEntries(pairs)
}

function parseTags(stored: Attribute | undefined): unknown {
  try {
    return typeof stored === 'string' ? JSON.parse(stored) : undefined
  } catch {
    return undefined
  }
}

export const isNothing = (totals: Totals): boolean => totals.cost === 0n && COUNTS.every((field) => totals[field] === 0)

/** Books by outcome; an outcome without anything is left out. */
export function encodeBooks(books: Books): Item {
  const map: { [name: string]: Attribute } = {}
  for (const outcome of CALL_OUTCOMES) {
    const totals = books[outcome]
    if (totals && !isNothing(totals)) map[OUTCOME[outcome]] = encodeTotals(totals)
  }
  return map
}

export function decodeBooks(r: ItemReader<typeof OUTCOME>): Books {
  const books: { [O in CallOutcome]?: Totals } = {}
  for (const outcome of CALL_OUTCOMES) if (r.has(outcome)) books[outcome] = decodeTotals(r.fields(outcome, TOTALS))
  return books
}

const outcomeOf = (letter: string): CallOutcome | undefined => CALL_OUTCOMES.find((o) => OUTCOME[o] === letter)

export const encodeRows = (rows: readonly BookRow[]): Attribute =>
  rows.map((row) => ({
    [ROW.agent]: row.agent,
    [ROW.model]: row.model,
    [ROW.outcome]: OUTCOME[row.outcome],
    [ROW.totals]: encodeTotals(row.totals),
  }))

export function decodeRows(list: readonly Attribute[], where: string): BookRow[] {
  return list.map((value, i) => {
    const r = mapReader(value, ROW, `${where}[${i}]`)
    const outcome = outcomeOf(r.text('outcome')) ?? r.bad('outcome', 'is no outcome')
    return { agent: r.text('agent'), model: r.text('model'), outcome, totals: decodeTotals(r.fields('totals', TOTALS)) }
  })
}

export const encodeIntent = (intent: Intent): Item => ({
  [INTENT.holdUsd]: intent.hold.usd,
  [INTENT.holdTok]: intent.hold.tok,
  [INTENT.driver]: intent.driver,
  [INTENT.attempt]: intent.attempt,
  [INTENT.agent]: intent.agent,
  [INTENT.model]: intent.model,
  [INTENT.estimate]: intent.estimate,
  [INTENT.cap]: intent.cap,
  [INTENT.at]: intent.at,
})

export const decodeIntent = (r: ItemReader<typeof INTENT>): Intent => ({
  hold: { usd: r.big('holdUsd'), tok: r.big('holdTok') },
  driver: r.text('driver'),
  attempt: r.whole('attempt'),
  agent: r.text('agent'),
  model: r.text('model'),
  estimate: r.whole('estimate'),
  cap: r.whole('cap'),
  at: r.whole('at'),
})

export const encodeError = (error: ErrorInfo): Item => ({ [ERROR.code]: error.code, [ERROR.message]: error.message })
export const decodeError = (r: ItemReader<typeof ERROR>): ErrorInfo => ({
  code: r.text('code'),
  message: r.text('message'),
})

export const encodeEnd = (end: End): Item => ({
  [END.status]: end.status,
  [END.reason]: end.reason,
  ...(end.error && { [END.error]: encodeError(end.error) }),
})

export const decodeEnd = (r: ItemReader<typeof END>): End => ({
  status: r.word('status', TERMINAL),
  reason: r.word('reason', STOP_REASONS),
  ...(r.has('error') && { error: decodeError(r.fields('error', ERROR)) }),
})

/** Rates that are not known are left out. */
export const encodePrice = (price: Price): Item =>
  present({
    [PRICE.input]: price.input,
    [PRICE.output]: price.output,
    [PRICE.cacheRead]: price.cacheRead,
    [PRICE.cacheWrite]: price.cacheWrite,
    [PRICE.cacheWrite1h]: price.cacheWrite1h,
  })

export const decodePrice = (r: ItemReader<typeof PRICE>): Price => ({
  input: r.big('input'),
  output: r.big('output'),
  ...(r.has('cacheRead') && { cacheRead: r.big('cacheRead') }),
  ...(r.has('cacheWrite') && { cacheWrite: r.big('cacheWrite') }),
  ...(r.has('cacheWrite1h') && { cacheWrite1h: r.big('cacheWrite1h') }),
})
