import { formatUsd } from '../../domain/money.ts'
import type { Totals } from '../../domain/usage.ts'
import type { Answer, figures, usage } from '../shapes.ts'

/** Token counts as the API shows them. The breakdown of cache writes by lifetime matters for prices alone: single calls have it too. */
export type UsageView = Answer<typeof usage>
/**
 * Usage with its money. `costUsd` is the priced part, always a number; `costComplete: false` says that calls without a
 * known price are among the calls, so that more was spent.
 */
export type FiguresView = Answer<typeof figures>

export const usageView = (t: Omit<Totals, 'cost' | 'unpricedCalls' | 'cacheWrite1hTokens'>): UsageView => ({
  calls: t.calls,
  inputTokens: t.inputTokens,
  cacheReadTokens: t.cacheReadTokens,
  cacheWriteTokens: t.cacheWriteTokens,
  outputTokens: t.outputTokens,
  reasoningTokens: t.reasoningTokens,
})

export const figuresView = (t: Totals): FiguresView => ({
  usage: usageView(t),
  costUsd: formatUsd(t.cost),
  costComplete: t.unpricedCalls === 0,
})

/** Epoch ms as ISO 8601 in UTC. */
export const time = (ms: number): string => new Date(ms).toISOString()
export const timeOrNull = (ms: number | null): string | null => (ms === null ? null : time(ms))
