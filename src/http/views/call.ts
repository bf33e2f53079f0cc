import { formatUsd } from '../../domain/money.ts'
import type { TeamDefinition } from '../../domain/team.ts'
import type { ResponseSlot } from '../../domain/turn.ts'
import type { CallOutcome, UsageSource } from '../../domain/usage.ts'
import { time, type UsageView, usageView } from './figures.ts'
import { type PriceView, priceSource, priceView } from './price.ts'

/** One model call, whatever came of it. */
export interface CallView {
  readonly sessionId: string
  readonly turn: number
  readonly attempt: number
  readonly agent: string
  readonly provider: string | null
  /** the provider's id of the model */
  readonly model: string
  /** the model that answered, where the provider names another one */
  readonly answeredBy: string | null
  readonly outcome: CallOutcome
  /** why it failed, was lost or is waste */
  readonly cause: string | null
  readonly usage: UsageView & { readonly cacheWrite1hTokens: number }
  readonly usageSource: UsageSource
  /** null: no price is known. Of an unknown outcome: the upper bound */
  readonly costUsd: string | null
  /** what `costUsd` follows from, with `usage` alone. Of an unknown outcome: the dearest rates of the upper bound */
  readonly price: PriceView | null
  readonly responseId: string | null
  readonly startedAt: string
  readonly durationMs: number
}

/** An intent that was given up before the call is no call. */
export const isCall = (slot: ResponseSlot): boolean => slot.outcome !== 'none'

export function callView(slot: ResponseSlot & { readonly sessionId: string }, team: TeamDefinition): CallView {
  if (slot.outcome === 'none') throw new Error('an intent that was given up is no call')
  const model = Object.hasOwn(team.models, slot.model) ? team.models[slot.model] : undefined
  return {
    sessionId: slot.sessionId,
    turn: slot.n,
    attempt: slot.attempt,
    agent: slot.agent,
    provider: model?.provider ?? null,
    model: model?.model ?? slot.model,
    answeredBy: slot.answeredBy ?? null,
    outcome: slot.outcome,
    cause: slot.cause ?? null,
    usage: { ...usageView({ ...slot.usage, calls: 1 }), cacheWrite1hTokens: slot.usage.cacheWrite1hTokens },
    usageSource: slot.usageSource,
    costUsd: slot.cost === null ? null : formatUsd(slot.cost),
    price: slot.price && priceView(slot.price, priceSource(model)),
    responseId: slot.responseId ?? null,
    startedAt: time(slot.startedAt),
    durationMs: slot.durationMs,
  }
}
