/** The table against its source, model by model: what the one charges for a call, and what the other does. */
import { type ConditionalPrice, calcPrice, type ModelInfo, type TieredPrices } from '@pydantic/genai-prices'
import { PROVIDERS, type Provider } from '../../scripts/prices/source.ts'
import { costOf } from '../../src/domain/pricing.ts'
import { priceOf } from '../../src/domain/team.ts'
import { NO_USAGE, type TokenUsage } from '../../src/domain/usage.ts'
import { priceTable, type TableFile } from '../../src/prices/price-table.ts'

const NOON = Date.parse('2026-11-30T12:00:00Z')
/** They reckon with floats: a sum of a few products is off by a few units in the 16th digit. */
const FLOAT = 1e-12

/** Every call for which the two say something else, as a line; and how many calls were compared. */
export function compare(file: TableFile): { differences: string[]; calls: number } {
  const table = priceTable(file)
  const differences: string[] = []
  let calls = 0
  for (const [provider, { models }] of Object.entries(file.providers))
    for (const id of Object.keys(models)) {
      const prices = table.of({ provider, model: id })
      const source = modelOf(provider as Provider, id)
      if (!prices || !source) {
        differences.push(`${provider}/${id}: it is in one of the two only`)
        continue
      }
      for (const at of momentsOf(source))
        for (const inputTokens of sizesOf(source)) {
          const price = priceOf({ prices }, { at, inputTokens })!
          for (const usage of usagesOf(inputTokens, price)) {
            calls++
            const ours = costOf(usage, price)!
            const theirs = calcPrice(asTheirs(usage), id, {
              providerId: PROVIDERS[provider as Provider],
              timestamp: new Date(at),
            })
            const exact = Number(ours) / 1e12
            if (Math.abs(exact - theirs!.total_price) > FLOAT * Math.max(exact, theirs!.total_price))
              differences.push(
                `${provider}/${id} at ${new Date(at).toISOString()}, ${JSON.stringify(usage)}: ${exact}, not ${theirs!.total_price}`,
              )
          }
        }
    }
  return { differences, calls }
}

export const modelOf = (provider: Provider, id: string): ModelInfo | undefined =>
  calcPrice({}, id, { providerId: PROVIDERS[provider] })?.model

export const periodsOf = (model: ModelInfo): ConditionalPrice[] =>
  Array.isArray(model.prices) ? model.prices : [{ prices: model.prices }]

/** On both sides of everything at which a price of the model may change. */
function momentsOf(model: ModelInfo): number[] {
  const borders = periodsOf(model).flatMap(({ constraint }) => {
    if (!constraint) return []
    if (constraint.type === 'start_date') return [Date.parse(constraint.start_date)]
    return [constraint.start_time, constraint.end_time].map((time) => Date.parse(`2026-11-30T${time}`))
  })
  return [NOON, ...borders.flatMap((at) => [at - 1, at])]
}

/** A small prompt, and the last of each tier and the first of the next. */
function sizesOf(model: ModelInfo): number[] {
  const rates = periodsOf(model).flatMap((p) => Object.values(p.prices))
  const tiers = rates.flatMap((rate) => (typeof rate === 'object' ? (rate as TieredPrices).tiers : []))
  return [...new Set([1_000, ...tiers.flatMap((t) => [t.start, t.start + 1])])]
}

/** Plain, and with each kind of cached token that has a price. */
function usagesOf(inputTokens: number, price: NonNullable<ReturnType<typeof priceOf>>): TokenUsage[] {
  const plain = { ...NO_USAGE, inputTokens, outputTokens: 177 }
  const reads = price.cacheRead !== undefined ? { cacheReadTokens: 301 } : {}
  const writes = price.cacheWrite !== undefined ? { cacheWriteTokens: 203 } : {}
  const hours = price.cacheWrite1h !== undefined ? { cacheWrite1hTokens: 107 } : {}
  const cached = [reads, writes, { ...reads, ...writes, ...hours }].filter((c) => Object.keys(c).length > 0)
  return [plain, ...cached.map((c) => ({ ...plain, ...c }))]
}

const asTheirs = (u: TokenUsage) => ({
  input_tokens: u.inputTokens,
  output_tokens: u.outputTokens,
  cache_read_tokens: u.cacheReadTokens,
  cache_write_tokens: u.cacheWriteTokens,
  cache_write_1h_tokens: u.cacheWrite1hTokens,
})
