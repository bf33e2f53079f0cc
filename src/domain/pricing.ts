import type { PicoUsd } from './money.ts'
import type { TokenUsage } from './usage.ts'

/**
 * The price of a call in pico-USD per token: flat rates, the same for every token of a kind. A rate that is not known is
 * left out: tokens of its kind then make the call's cost unknown, they are never free.
 */
export interface Price {
  readonly input: bigint
  readonly output: bigint
  readonly cacheRead?: bigint
  /** cache writes with the provider's short lifetime (5 minutes), and those without a breakdown */
  readonly cacheWrite?: bigint
  readonly cacheWrite1h?: bigint
}

/** The price of all tokens of a call whose prompt has at least `from` tokens, cached ones included. */
export interface Tier {
  readonly from: number
  readonly price: Price
}

/** What a model costs while a condition holds. */
export interface PricePeriod {
  /** epoch ms from which on it holds; left out: always */
  readonly since?: number
  /** from and to, in seconds of the day in UTC, `to` excluded; it may run over midnight. Left out: the whole day */
  readonly daily?: readonly [number, number]
  /** the first is from 0 on, the others follow by size; never empty */
  readonly tiers: readonly Tier[]
}

/** All that is known of a model's price. The last period that holds goes before those before it; the first always holds. */
export type PriceSchedule = readonly PricePeriod[]

const DAY_S = 86_400

/** The price of a call made at `at` (epoch ms) with a prompt of so many tokens, cached ones included. */
export const priceAt = (schedule: PriceSchedule, at: number, promptTokens: number): Price =>
  tiersAt(schedule, at).findLast((tier) => tier.from <= promptTokens)!.price

/**
 * The most that a token of each kind may cost in a call made at `at` with a prompt of at most so many tokens: a real
 * prompt may be smaller than its bound, and the smaller tier may be the dearer one.
 */
export function dearestAt(schedule: PriceSchedule, at: number, mostPromptTokens: number): Price {
  const prices = tiersAt(schedule, at).filter((tier) => tier.from <= mostPromptTokens)
  return {
    input: most(prices.map((t) => dearestInput(t.price))),
    output: most(prices.map((t) => t.price.output)),
  }
}

/** The least that a token of each kind may cost in a call made at `at` with a prompt of `least` to `most` tokens. */
export function cheapestAt(schedule: PriceSchedule, at: number, prompt: { least: number; most: number }): Price {
  const tiers = tiersAt(schedule, at).filter((tier) => tier.from <= prompt.most)
  const prices = tiers.slice(tiers.findLastIndex((tier) => tier.from <= prompt.least))
  return {
    input: least(prices.flatMap(({ price: p }) => [p.input, p.cacheRead, p.cacheWrite, p.cacheWrite1h])),
    output: least(prices.map((t) => t.price.output)),
  }
}

/** As dearestAt, of a call made at `at` or any time later, as far as the schedule knows what comes. */
export function dearestFrom(schedule: PriceSchedule, at: number, mostPromptTokens: number): Price {
  // what holds all day has taken the place of all before it
  const first = schedule.findLastIndex((p) => !p.daily && (p.since === undefined || at >= p.since))
  const prices = schedule.slice(Math.max(0, first)).map((p) => dearestAt([{ tiers: p.tiers }], at, mostPromptTokens))
  return { input: most(prices.map((p) => p.input)), output: most(prices.map((p) => p.output)) }
}

function tiersAt(schedule: PriceSchedule, at: number): readonly Tier[] {
  const period = schedule.findLast((p) => (p.since === undefined || at >= p.since) && holdsDaily(p.daily, at))
  return (period ?? schedule[0]!).tiers
}

function holdsDaily(daily: readonly [number, number] | undefined, at: number): boolean {
  if (!daily) return true
  const [from, to] = daily
  const time = (at / 1000) % DAY_S
  return to < from ? time >= from || time < to : time >= from && time < to
}

/**
 * The cost of a call, or null where it cannot be known: a kind of token that it used has no price, or the provider says
 * more cached input than input. It never throws: a call that was made must be booked.
 */
export function costOf(usage: TokenUsage, price: Price | null | undefined): PicoUsd | null {
  if (!price) return null
  const { cacheReadTokens: read, cacheWriteTokens: write, cacheWrite1hTokens: hour } = usage
  const parts: [number, bigint | undefined][] = [
    [usage.inputTokens - read - write, price.input],
    [read, price.cacheRead],
    [write - hour, price.cacheWrite],
    [hour, price.cacheWrite1h],
    [usage.outputTokens, price.output],
  ]
  let cost = 0n
  for (const [tokens, rate] of parts) {
    if (tokens === 0) continue
    if (tokens < 0 || rate === undefined) return null
    cost += BigInt(tokens) * rate
  }
  return cost
}

/** The dearest rate that an input token may be charged at: cache writes are dearer than plain input. */
export const dearestInput = (p: Price): bigint => most([p.input, p.cacheRead, p.cacheWrite, p.cacheWrite1h])

const most = (rates: readonly (bigint | undefined)[]): bigint =>
  rates.reduce<bigint>((m, r) => (r !== undefined && r > m ? r : m), 0n)
const least = (rates: readonly (bigint | undefined)[]): bigint =>
  rates.filter((r) => r !== undefined).reduce((m, r) => (r < m ? r : m))
