import type { PicoUsd } from './money.ts'
import type { TokenUsage } from './usage.ts'

/**
 * The price of a model in pico-USD per token. A rate that is not known is left out: tokens of its kind then make the
 * call's cost unknown, they are never free.
 */
export interface Price {
  readonly input: bigint
  readonly output: bigint
  readonly cacheRead?: bigint
  /** cache writes with the provider's short lifetime (5 minutes), and those without a breakdown */
  readonly cacheWrite?: bigint
  readonly cacheWrite1h?: bigint
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
export const dearestInput = (p: Price): bigint =>
  [p.cacheRead, p.cacheWrite, p.cacheWrite1h].reduce<bigint>(
    (most, r) => (r !== undefined && r > most ? r : most),
    p.input,
  )
