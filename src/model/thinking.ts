/** The efforts that a team file may name, with the thinking tokens that they stand for where a provider wants a number. */
const EFFORTS = { minimal: 1_024, low: 2_048, medium: 8_192, high: 16_384, xhigh: 32_768, max: 32_768 } as const

export type Effort = 'none' | keyof typeof EFFORTS

/** Anthropic accepts no smaller budget. */
const LEAST_BUDGET = 1_024

/** `thinking_budget` as an effort: a word as it is, a number of tokens as the nearest word; undefined: the model's own. */
export function reasoningEffort(budget: number | string | undefined): Effort | undefined {
  if (budget === undefined) return undefined
  const tokens = Number(budget)
  if (Number.isNaN(tokens)) return budget === 'none' || Object.hasOwn(EFFORTS, budget) ? (budget as Effort) : undefined
  if (tokens < 0) return undefined
  if (tokens === 0) return 'none'
  return (['minimal', 'low', 'medium', 'high'] as const).find((e) => tokens <= EFFORTS[e]) ?? 'high'
}

/** A budget as a number of tokens, at least half of the cap left for the answer. */
const tokensFor = (budget: number | string, effort: Exclude<Effort, 'none'>, cap: number): number =>
  Math.min(Number.isNaN(Number(budget)) ? EFFORTS[effort] : Number(budget), Math.floor(cap / 2))

export type ClaudeThinking =
  | { readonly type: 'disabled' }
  | { readonly type: 'adaptive' }
  | { readonly type: 'enabled'; readonly budgetTokens: number }

/**
 * Thinking for Claude. The packages add the budget to the cap, but a call must not cost more than its hold: so the
 * budget is taken out of the cap first, and there is no thinking where it does not fit.
 * @param cap the most output tokens, thinking included
 */
export function claudeThinking(
  budget: number | string | undefined,
  cap: number,
): { maxOutputTokens: number; thinking?: ClaudeThinking } {
  if (budget === undefined) return { maxOutputTokens: cap }
  if (budget === 'adaptive' || Number(budget) < 0) return { maxOutputTokens: cap, thinking: { type: 'adaptive' } }
  const effort = reasoningEffort(budget)
  if (effort === undefined) return { maxOutputTokens: cap }
  if (effort === 'none') return { maxOutputTokens: cap, thinking: { type: 'disabled' } }
  const budgetTokens = Math.min(Math.max(tokensFor(budget, effort, cap), LEAST_BUDGET), Math.floor(cap / 2))
  if (budgetTokens < LEAST_BUDGET) return { maxOutputTokens: cap }
  return { maxOutputTokens: cap - budgetTokens, thinking: { type: 'enabled', budgetTokens } }
}

/** Claude models that choose themselves how much they think, and refuse a budget. */
const ADAPTIVE_ONLY = /claude-(?:(?:opus|sonnet|haiku)-5-[5-9]|fable-5|[a-z]+-[6-9])/
/** Those that can think between tool calls, which has to be asked for together with a budget. */
export const INTERLEAVES = /claude-(?:opus|sonnet|haiku)-4/

/** The same for Claude on Bedrock, whose package passes a budget on to models that refuse it. */
export function bedrockThinking(model: string, budget: number | string | undefined, cap: number) {
  const thinking = claudeThinking(budget, cap)
  if (thinking.thinking?.type === 'enabled' && ADAPTIVE_ONLY.test(model))
    return { maxOutputTokens: cap, thinking: { type: 'adaptive' } as const }
  return thinking
}

/** Gemini up to 2.5 takes a budget in tokens; those before 2.5 do not think. */
const BUDGETED = /(?:^|[/.])gemini-(?:2\.5|3-pro-image)/
const THOUGHTLESS = /(?:^|[/.])gemini-(?:1|2\.0)|(?:^|[/.])gemma-/
/** Its smallest budgets, and its largest. */
const leastFor = (model: string): number => (model.includes('2.5-pro') ? 128 : model.includes('flash-lite') ? 512 : 1)
const mostFor = (model: string): number => (model.includes('pro') ? 32_768 : 24_576)

/**
 * Thinking for Gemini: thoughts are inside its cap. Newer models take an effort, which their package translates; `budget`
 * is for those that take tokens: -1 leaves it to the model, 0 is none (which gemini-2.5-pro does not know).
 */
export function geminiThinking(
  model: string,
  budget: number | string | undefined,
  cap: number,
): { readonly effort?: Effort; readonly budget?: number } {
  if (budget === undefined || THOUGHTLESS.test(model)) return {}
  const effort = reasoningEffort(budget)
  if (!BUDGETED.test(model)) return effort === undefined ? {} : { effort }
  if (effort === undefined) return Number(budget) < 0 ? { budget: -1 } : {}
  if (effort === 'none') return { budget: model.includes('2.5-pro') ? leastFor(model) : 0 }
  const tokens = Math.min(tokensFor(budget, effort, cap), mostFor(model))
  return { budget: Math.max(tokens, leastFor(model)) }
}
