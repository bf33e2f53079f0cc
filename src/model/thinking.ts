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

/**
 * Thinking for Anthropic. The package adds the budget to the cap, but a call must not cost more than its hold: so the
 * budget is taken out of the cap first, and there is no thinking where it does not fit.
 * @param cap the most output tokens, thinking included
 */
export function anthropicThinking(
  budget: number | string | undefined,
  cap: number,
): {
  maxOutputTokens: number
  thinking?: { type: 'disabled' } | { type: 'adaptive' } | { type: 'enabled'; budgetTokens: number }
} {
  if (budget === undefined) return { maxOutputTokens: cap }
  if (budget === 'adaptive' || Number(budget) < 0) return { maxOutputTokens: cap, thinking: { type: 'adaptive' } }
  const effort = reasoningEffort(budget)
  if (effort === undefined) return { maxOutputTokens: cap }
  if (effort === 'none') return { maxOutputTokens: cap, thinking: { type: 'disabled' } }
  const asked = Number.isNaN(Number(budget)) ? EFFORTS[effort] : Number(budget)
  // at least half of the cap stays for the answer
  const budgetTokens = Math.min(Math.max(asked, LEAST_BUDGET), Math.floor(cap / 2))
  if (budgetTokens < LEAST_BUDGET) return { maxOutputTokens: cap }
  return { maxOutputTokens: cap - budgetTokens, thinking: { type: 'enabled', budgetTokens } }
}
