import { formatUsd } from '../../domain/money.ts'
import type { TeamDefinition } from '../../domain/team.ts'
import type { ResponseSlot } from '../../domain/turn.ts'
import type { Answer, call } from '../shapes.ts'
import { time, usageView } from './figures.ts'
import { priceSource, priceView } from './price.ts'

/** One model call, whatever came of it. */
export type CallView = Answer<typeof call>

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
    overHold: slot.over ? formatUsd(slot.over.usd) : null,
    price: slot.price && priceView(slot.price, priceSource(model)),
    responseId: slot.responseId ?? null,
    startedAt: time(slot.startedAt),
    durationMs: slot.durationMs,
  }
}
