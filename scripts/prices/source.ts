/** The price source, @pydantic/genai-prices, as a table: exact decimals, exact ids, and what is left out with its reason. */
import { type ConditionalPrice, calcPrice, findProvider, type MatchLogic, type ModelInfo } from '@pydantic/genai-prices'
import type { PricePerMillion, PricesFrom } from '../../src/domain/team.ts'
import { writeEntry } from '../../src/prices/entry.ts'
import type { ProviderPrices } from '../../src/prices/price-table.ts'
import { DECLARED, GEOGRAPHIES, NAMED_GEOGRAPHIES } from './declared.ts'

/** Providers as team files name them, and as the source does. */
export const PROVIDERS = {
  anthropic: 'anthropic',
  openai: 'openai',
  google: 'google',
  'amazon-bedrock': 'aws',
  cerebras: 'cerebras',
  deepseek: 'deepseek',
  fireworks: 'fireworks',
  groq: 'groq',
  mistral: 'mistral',
  openrouter: 'openrouter',
  together: 'together',
  xai: 'x-ai',
} as const
export type Provider = keyof typeof PROVIDERS

/** Why a model of the source, or one rate of it, is not in the table. */
export type Reason =
  | 'it has no price by tokens of input and output'
  | 'it charges for a kind of output that calls do not tell apart'
  | 'it has a price of zero, or less'
  | 'its price is no whole number of pico-USD'
  | 'its first price has a condition'
  | 'it has no exact id that the provider serves'

export interface LeftOut {
  readonly provider: Provider
  readonly model: string
  /** left out: the whole model */
  readonly rate?: keyof PricePerMillion
  readonly reason: Reason
}

const KINDS = {
  input_mtok: 'input',
  output_mtok: 'output',
  cache_read_mtok: 'cacheRead',
  cache_write_mtok: 'cacheWrite',
  cache_write_1h_mtok: 'cacheWrite1h',
} as const satisfies { [key: string]: keyof PricePerMillion }
/** What calls never use: requests hold text alone, and no provider's own tools. */
const UNUSED = /^(input_(audio|image|video)_mtok|cache_(audio|image)_read_mtok|(web|storage)_searches_kcount)$/

export function readProvider(provider: Provider): { prices: ProviderPrices; leftOut: LeftOut[] } {
  const source = findProvider({ providerId: PROVIDERS[provider] })
  if (!source) throw new Error(`the price source has no provider "${PROVIDERS[provider]}"`)
  const entries = new Map<string, string>()
  const leftOut: LeftOut[] = []
  for (const model of source.models) {
    const drop = (reason: Reason, rate?: keyof PricePerMillion) =>
      leftOut.push({ provider, model: model.id, reason, ...(rate && { rate }) })
    const ids = idsOf(provider, model)
    const schedule =
      ids.length > 0
        ? scheduleOf(provider, model, drop)
        : drop('it has no exact id that the provider serves') && undefined
    if (!schedule) continue
    const [first, ...others] = ids as [string, ...string[]]
    entries.set(first, writeEntry(schedule))
    for (const other of others) entries.set(other, `= ${first}`)
  }
  const models = Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)))
  return { prices: { address: source.api_pattern, models }, leftOut }
}

/** The ids that are this model's beyond doubt: its own, those that it equals, and those that are declared. Its own first. */
function idsOf(provider: Provider, model: ModelInfo): string[] {
  const candidates = [model.id, ...equalsOf(model.match), ...(DECLARED[provider] ?? [])]
  const ids = provider === 'amazon-bedrock' ? withProfiles(candidates, model.match) : candidates
  return [...new Set(ids)].filter((id) => isId(provider, id) && modelBehind(provider, id) === model)
}

/** What stands for many ids is none; nor does the provider's API serve every model that the source lists under it. */
const isId = (provider: Provider, id: string): boolean =>
  !id.endsWith('-') &&
  !(provider === 'google' && /claude/.test(id)) &&
  !(provider === 'mistral' && id.endsWith(':free'))

/** Alternatives that are a whole id. Inside an `and` they would be one condition among others. */
const equalsOf = (match: MatchLogic): string[] =>
  'equals' in match ? [match.equals] : 'or' in match ? match.or.flatMap(equalsOf) : []

function withProfiles(ids: readonly string[], match: MatchLogic): string[] {
  const said = JSON.stringify(match)
  const geographies = [...GEOGRAPHIES, ...NAMED_GEOGRAPHIES.filter((g) => said.includes(`"${g}`))]
  return ids
    .map((id) => id.replace(/^(regional|global)\./, ''))
    .filter((id) => id.includes('.') && !/^(us|eu|apac|us-gov|au|ca|in|jp)\./.test(id))
    .flatMap((id) => [id, ...geographies.map((g) => g + id)])
}

/** The source's own model of an id; it takes the first that matches. */
const modelBehind = (provider: Provider, id: string): ModelInfo | undefined =>
  calcPrice({}, id, { providerId: PROVIDERS[provider] })?.model

type Drop = (reason: Reason, rate?: keyof PricePerMillion) => number

function scheduleOf(provider: Provider, model: ModelInfo, drop: Drop): PricesFrom[] | undefined {
  const periods: ConditionalPrice[] = Array.isArray(model.prices) ? model.prices : [{ prices: model.prices }]
  if (periods[0]!.constraint) return void drop('its first price has a condition')
  const schedule: PricesFrom[] = []
  for (const { constraint, prices } of periods) {
    const tiers = tiersOf(provider, model.id, prices, drop)
    if (!tiers) return undefined
    schedule.push({ ...conditionOf(constraint), tiers })
  }
  return schedule
}

function conditionOf(constraint: ConditionalPrice['constraint']): Pick<PricesFrom, 'since' | 'daily'> {
  if (!constraint) return {}
  if (constraint.type === 'start_date') return { since: constraint.start_date }
  return { daily: [utc(constraint.start_time), utc(constraint.end_time)] }
}

function utc(time: string): string {
  const whole = new Date(`1970-01-02T${time}`).toISOString()
  return whole.slice(11, 19)
}

function tiersOf(
  provider: Provider,
  id: string,
  prices: ConditionalPrice['prices'],
  drop: Drop,
): PricesFrom['tiers'] | undefined {
  const keys = Object.keys(prices)
  // OpenRouter's ids say which of its models are free; anywhere else no price is no price
  if (keys.length === 0 && provider === 'openrouter' && id.endsWith(':free')) return [{ from: 0, ...FREE }]
  if (prices.input_mtok === undefined || prices.output_mtok === undefined)
    return void drop('it has no price by tokens of input and output')
  if (keys.some((key) => !(key in KINDS) && !UNUSED.test(key)))
    return void drop('it charges for a kind of output that calls do not tell apart')

  const rates = keys
    .filter((key) => key in KINDS)
    .map((key) => ({ kind: KINDS[key as keyof typeof KINDS], ...rateOf(prices[key]!) }))
  const borders = [...new Set([0, ...rates.flatMap((r) => r.tiers.map((t) => t.above + 1))])].sort((a, b) => a - b)
  const known = rates.filter(({ kind, base, tiers }) => {
    const why = problemOf([base, ...tiers.map((t) => t.price)])
    if (why) drop(why, kind === 'input' || kind === 'output' ? undefined : kind)
    return !why
  })
  if (!['input', 'output'].every((kind) => known.some((r) => r.kind === kind))) return undefined
  return borders.map((from) => {
    const at = (r: (typeof known)[number]) => decimal(r.tiers.findLast((t) => from > t.above)?.price ?? r.base)
    return { from, ...(Object.fromEntries(known.map((r) => [r.kind, at(r)])) as unknown as PricePerMillion) }
  })
}

const FREE: PricePerMillion = { input: '0', output: '0', cacheRead: '0', cacheWrite: '0', cacheWrite1h: '0' }

/** A tier of the source begins above its `start`: providers whose tier begins at a size have one less there. */
function rateOf(price: NonNullable<ConditionalPrice['prices'][string]>) {
  if (typeof price === 'number') return { base: price, tiers: [] }
  const tiers = price.tiers.map((t) => ({ above: t.start, price: t.price })).sort((a, b) => a.above - b.above)
  return { base: price.base, tiers }
}

function problemOf(prices: readonly number[]): Reason | undefined {
  if (prices.some((p) => !(p > 0))) return 'it has a price of zero, or less'
  if (prices.some((p) => !/^\d+(\.\d{1,6})?$/.test(decimal(p)))) return 'its price is no whole number of pico-USD'
  return undefined
}

/**
 * The decimal that stands in the source. JavaScript writes the shortest decimal that reads as the same number, which is
 * the one that was written as long as that had no more than 15 digits.
 */
export function decimal(price: number): string {
  const [digits = '', exponent] = String(price).split('e-')
  if (exponent === undefined) return digits
  const [whole = '', fraction = ''] = digits.split('.')
  return `0.${'0'.repeat(Number(exponent) - 1)}${whole}${fraction}`
}
