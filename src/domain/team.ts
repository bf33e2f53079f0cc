import { parseUsd } from './money.ts'
import type { Permissions } from './permissions.ts'
import {
  cheapestAt,
  dearestAt,
  dearestFrom,
  type Price,
  type PricePeriod,
  type PriceSchedule,
  priceAt,
} from './pricing.ts'

/**
 * A resolved team: what a team file says after validation, with nothing left to look up. It is frozen with the run
 * (stored under the hash of its JSON), so a later change of the file changes no run that has begun. Plain JSON only.
 */
export interface TeamDefinition {
  /** version of this shape, for readers of stored definitions */
  readonly shape: 1
  readonly name: string
  readonly description?: string
  /** the first one is the run's first agent unless another is asked for */
  readonly agents: readonly AgentDefinition[]
  readonly models: { readonly [name: string]: ModelDefinition }
  /** which tool calls run, wait for an approval, or are refused; left out: all run */
  readonly permissions?: Permissions
  /** the one ceiling of every run */
  readonly budget?: BudgetDefinition
  /** pots that agents draw from, by name: one of each in every run, shared by all its sessions */
  readonly budgets?: { readonly [name: string]: BudgetDefinition }
  /** what its run began with, where the deployment does not leave it at the usual; see configured-limits.ts */
  readonly limits?: { readonly depth: number; readonly width: number }
}

/** Limits of a team file; what is left out is not limited, and 0 lets no call through. */
export interface BudgetDefinition {
  /** a decimal text with at most twelve decimals */
  readonly usd?: string
  /** of input and output together */
  readonly tokens?: number
  /** working time: the sum of the durations of calls */
  readonly timeMs?: number
}

export interface AgentDefinition {
  readonly name: string
  /** key of `models` */
  readonly model: string
  readonly description: string
  readonly instruction: string
  /** agents it may delegate to, by `transfer_task` or in the background */
  readonly subAgents: readonly string[]
  readonly toolsets: readonly ToolsetName[]
  /** most accepted answers of one session in one round; null: the default of limits.ts */
  readonly maxIterations: number | null
  /** what happens to children that still work when the agent answers: `stop` them (the default) or `wait` for them */
  readonly atEnd?: 'stop' | 'wait'
  /** keys of `budgets`: all of them apply to its calls */
  readonly budgets?: readonly string[]
}

/** `transfer_task` needs no toolset: an agent with sub-agents has it. */
export type ToolsetName = 'think' | 'background_agents'

/** How a provider is spoken to. */
export type ModelApi =
  | 'openai_chatcompletions'
  | 'openai_responses'
  | 'openai_compatible'
  | 'anthropic'
  | 'google'
  | 'amazon_bedrock'
  | 'scripted'

export interface ModelDefinition {
  /** the provider as the team file names it, for the books */
  readonly provider: string
  readonly api: ModelApi
  /** the provider's id of the model */
  readonly model: string
  readonly baseUrl?: string
  /** name of the environment variable that holds the key; never the key itself */
  readonly tokenKey?: string
  /** output cap of one call in tokens, as the team file gives it */
  readonly maxTokens?: number
  /** how far that cap may shrink where the budget is short; the same as `maxTokens`: it may not */
  readonly minTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly parallelToolCalls?: boolean
  /** reasoning budget: tokens, or the provider's effort word */
  readonly thinkingBudget?: number | string
  /** provider_opts as they stand; for `scripted` they hold the script */
  readonly options?: { readonly [key: string]: unknown }
  /** USD per million tokens as decimal strings (`models.x.cost`); it goes before `prices` */
  readonly cost?: PricePerMillion
  /** what was known of the model's price when the run began; without this and `cost` its calls have no price */
  readonly prices?: ModelPrices
}

/** USD per million tokens, decimal strings with at most six decimals. */
export interface PricePerMillion {
  readonly input: string
  readonly output: string
  readonly cacheRead?: string
  readonly cacheWrite?: string
  readonly cacheWrite1h?: string
}

/** A model's prices by date and size of the prompt, out of a provider's price list, as they stood when the run began. */
export interface ModelPrices {
  /** where they come from: name, version and date of the list */
  readonly source: string
  readonly schedule: readonly PricesFrom[]
  /** other models of the provider, by id, that may answer in this one's place and cost something else */
  readonly others?: { readonly [id: string]: readonly PricesFrom[] }
}

/** Prices while a condition holds. The last that holds goes before those before it; the first has no condition. */
export interface PricesFrom {
  /** the first day, in UTC: `2026-08-17` */
  readonly since?: string
  /** from and to, of each day in UTC: `["00:30:00", "16:30:00"]` */
  readonly daily?: readonly [string, string]
  /** by size of the prompt in tokens, cached ones included; the first is from 0 on, the others follow by size */
  readonly tiers: readonly (PricePerMillion & { readonly from: number })[]
}

/** What decides on the price of a call. */
export interface PricedCall {
  /** epoch ms */
  readonly at: number
  /** all tokens of the prompt, cached ones included; before the call, their upper bound */
  readonly inputTokens: number
  /** the model that answered, where the provider names one */
  readonly answeredBy?: string | undefined
}

type Priced = Pick<ModelDefinition, 'cost' | 'prices'>

/** USD per million tokens → pico-USD per token, exact. */
export function perToken(usdPerMillion: string): bigint {
  const pico = parseUsd(usdPerMillion)
  if (pico % 1_000_000n !== 0n) throw new RangeError(`"${usdPerMillion}" per million tokens has more than six decimals`)
  return pico / 1_000_000n
}

/** Whether calls of the model have a price. It does not depend on the time: a schedule begins with a price for all times. */
export const isPriced = (model: Priced): boolean => model.cost !== undefined || model.prices !== undefined

/**
 * The price of a call; null: none is known. The team file's `cost` holds whoever answered. Otherwise, where another model
 * answered than the one that was asked for, its own price holds if it differs and is known.
 */
export function priceOf(model: Priced, call: PricedCall): Price | null {
  if (model.cost) return priceFrom(model.cost)
  const schedule = scheduleOf(model.prices, call.answeredBy)
  return schedule && priceAt(schedule, call.at, call.inputTokens)
}

/**
 * The most that a call may be charged for each token of its input and output, whichever model answers, or null;
 * `inputTokens` is their bound.
 */
export const dearestOf = (model: Priced, call: PricedCall): Price | null =>
  dearestOfAll(schedulesOf(model).map((schedule) => dearestAt(schedule, call.at, call.inputTokens)))

/** The least that a token of a call's input and output may be charged at, whichever model answers; null: no price is known. */
export function cheapestOf(model: Priced, call: { at: number; least: number; most: number }): Price | null {
  const prices = schedulesOf(model).map((schedule) => cheapestAt(schedule, call.at, call))
  return prices.length === 0
    ? null
    : prices.reduce((a, b) => ({ input: low(a.input, b.input), output: low(a.output, b.output) }))
}

/** The most that a token may be charged at in a call made at `at` or later, whichever model answers; null: no price is known. */
export const dearestLaterOf = (model: Priced, call: PricedCall): Price | null =>
  dearestOfAll(schedulesOf(model).map((schedule) => dearestFrom(schedule, call.at, call.inputTokens)))

const dearestOfAll = (prices: readonly Price[]): Price | null =>
  prices.length === 0
    ? null
    : prices.reduce((a, b) => ({ input: high(a.input, b.input), output: high(a.output, b.output) }))

const low = (a: bigint, b: bigint) => (a < b ? a : b)
const high = (a: bigint, b: bigint) => (a > b ? a : b)

/** The prices of the model and of those that may answer in its place. */
function schedulesOf(model: Priced): PriceSchedule[] {
  if (model.cost) return [[{ tiers: [{ from: 0, price: priceFrom(model.cost) }] }]]
  if (!model.prices) return []
  return [model.prices.schedule, ...Object.values(model.prices.others ?? {})].map((s) => s.map(periodFrom))
}

function scheduleOf(prices: ModelPrices | undefined, answeredBy?: string): PriceSchedule | null {
  if (!prices) return null
  const { others = {}, schedule } = prices
  const other = answeredBy !== undefined && Object.hasOwn(others, answeredBy) ? others[answeredBy] : undefined
  return (other ?? schedule).map(periodFrom)
}

const periodFrom = (p: PricesFrom): PricePeriod => ({
  ...(p.since !== undefined && { since: Date.parse(`${p.since}T00:00:00Z`) }),
  ...(p.daily && { daily: [secondsOf(p.daily[0]), secondsOf(p.daily[1])] as const }),
  tiers: p.tiers.map((t) => ({ from: t.from, price: priceFrom(t) })),
})

const secondsOf = (time: string): number => Date.parse(`1970-01-01T${time}Z`) / 1000

const priceFrom = (c: PricePerMillion): Price => ({
  input: perToken(c.input),
  output: perToken(c.output),
  ...(c.cacheRead !== undefined && { cacheRead: perToken(c.cacheRead) }),
  ...(c.cacheWrite !== undefined && { cacheWrite: perToken(c.cacheWrite) }),
  ...(c.cacheWrite1h !== undefined && { cacheWrite1h: perToken(c.cacheWrite1h) }),
})

export const findAgent = (team: TeamDefinition, name: string): AgentDefinition | undefined =>
  team.agents.find((a) => a.name === name)

/** `provider/model` of a key of the team's models, as reports name it; a key that the team does not know is its own name. */
export function modelName(team: TeamDefinition, key: string): string {
  const model = Object.hasOwn(team.models, key) ? team.models[key] : undefined
  return model ? `${model.provider}/${model.model}` : key
}

/** Whether an agent may start sub-sessions. */
export const canDelegate = (agent: AgentDefinition): boolean => agent.subAgents.length > 0
