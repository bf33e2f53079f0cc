import { parseUsd } from './money.ts'
import type { Price } from './pricing.ts'

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
}

/** `transfer_task` needs no toolset: an agent with sub-agents has it. */
export type ToolsetName = 'think' | 'background_agents'

/** How a provider is spoken to. */
export type ModelApi = 'openai_chatcompletions' | 'openai_responses' | 'openai_compatible' | 'anthropic' | 'scripted'

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
  readonly temperature?: number
  readonly topP?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly parallelToolCalls?: boolean
  /** reasoning budget: tokens, or the provider's effort word */
  readonly thinkingBudget?: number | string
  /** provider_opts as they stand; for `scripted` they hold the script */
  readonly options?: { readonly [key: string]: unknown }
  /** USD per million tokens as decimal strings (`models.x.cost`); left out: no price is known */
  readonly cost?: PricePerMillion
}

/** USD per million tokens, decimal strings with at most six decimals. */
export interface PricePerMillion {
  readonly input: string
  readonly output: string
  readonly cacheRead?: string
  readonly cacheWrite?: string
  readonly cacheWrite1h?: string
}

/** USD per million tokens → pico-USD per token, exact. */
export function perToken(usdPerMillion: string): bigint {
  const pico = parseUsd(usdPerMillion)
  if (pico % 1_000_000n !== 0n) throw new RangeError(`"${usdPerMillion}" per million tokens has more than six decimals`)
  return pico / 1_000_000n
}

export function priceOf(model: Pick<ModelDefinition, 'cost'>): Price | null {
  const c = model.cost
  if (!c) return null
  return {
    input: perToken(c.input),
    output: perToken(c.output),
    ...(c.cacheRead !== undefined && { cacheRead: perToken(c.cacheRead) }),
    ...(c.cacheWrite !== undefined && { cacheWrite: perToken(c.cacheWrite) }),
    ...(c.cacheWrite1h !== undefined && { cacheWrite1h: perToken(c.cacheWrite1h) }),
  }
}

export const findAgent = (team: TeamDefinition, name: string): AgentDefinition | undefined =>
  team.agents.find((a) => a.name === name)

/** Whether an agent may start sub-sessions. */
export const canDelegate = (agent: AgentDefinition): boolean => agent.subAgents.length > 0
