import { formatUsd } from '../../domain/money.ts'
import type { Price } from '../../domain/pricing.ts'
import type { TeamDefinition } from '../../domain/team.ts'
import type { ResponseSlot } from '../../domain/turn.ts'
import type { CallOutcome, UsageSource } from '../../domain/usage.ts'
import { time, type UsageView, usageView } from './figures.ts'

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
  readonly usage: UsageView
  readonly usageSource: UsageSource
  /** null: no price is known. Of an unknown outcome: the upper bound */
  readonly costUsd: string | null
  readonly price: PriceView | null
  readonly responseId: string | null
  readonly startedAt: string
  readonly durationMs: number
}

/** USD per million tokens, as in a team file's `cost`; a rate that is not known is null. */
export interface PriceView {
  readonly input: string
  readonly output: string
  readonly cacheRead: string | null
  readonly cacheWrite: string | null
  readonly cacheWrite1h: string | null
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
    usage: usageView({ ...slot.usage, calls: 1 }),
    usageSource: slot.usageSource,
    costUsd: slot.cost === null ? null : formatUsd(slot.cost),
    price: slot.price && priceView(slot.price),
    responseId: slot.responseId ?? null,
    startedAt: time(slot.startedAt),
    durationMs: slot.durationMs,
  }
}

const priceView = (p: Price): PriceView => ({
  input: perMillion(p.input),
  output: perMillion(p.output),
  cacheRead: p.cacheRead === undefined ? null : perMillion(p.cacheRead),
  cacheWrite: p.cacheWrite === undefined ? null : perMillion(p.cacheWrite),
  cacheWrite1h: p.cacheWrite1h === undefined ? null : perMillion(p.cacheWrite1h),
})

const perMillion = (picoPerToken: bigint): string => formatUsd(picoPerToken * 1_000_000n)
