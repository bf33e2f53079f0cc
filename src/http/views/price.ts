import { formatUsd } from '../../domain/money.ts'
import type { Price } from '../../domain/pricing.ts'
import type { ModelDefinition, PricePerMillion } from '../../domain/team.ts'
import type { Answer, price } from '../shapes.ts'

/** USD per million tokens, as in a team file's `cost`; a rate that is not known is null. */
export type PriceView = Answer<typeof price>

export function priceView(p: Price, source: string | null): PriceView {
  const { input, output, cacheRead = null, cacheWrite = null, cacheWrite1h = null } = perMillion(p)
  return { input, output, cacheRead, cacheWrite, cacheWrite1h, source }
}

/** Where the price of a model's calls comes from; null: it has none. */
export const priceSource = (model: Pick<ModelDefinition, 'cost' | 'prices'> | undefined): string | null =>
  model?.cost ? 'team file' : (model?.prices?.source ?? null)

/** Pico-USD per token → USD per million tokens; rates that are not known are left out. */
export const perMillion = (p: Price): PricePerMillion => ({
  input: usd(p.input),
  output: usd(p.output),
  ...(p.cacheRead !== undefined && { cacheRead: usd(p.cacheRead) }),
  ...(p.cacheWrite !== undefined && { cacheWrite: usd(p.cacheWrite) }),
  ...(p.cacheWrite1h !== undefined && { cacheWrite1h: usd(p.cacheWrite1h) }),
})

const usd = (picoPerToken: bigint): string => formatUsd(picoPerToken * 1_000_000n)
