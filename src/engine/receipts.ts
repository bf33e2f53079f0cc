import { SubledgerError } from '../domain/errors.ts'
import { beyondHold } from '../domain/log.ts'
import { costOf } from '../domain/pricing.ts'
import type { RunRef, SessionRef } from '../domain/run.ts'
import { priceOf, type TeamDefinition } from '../domain/team.ts'
import type { ResponseSlot } from '../domain/turn.ts'
import type { EngineContext } from './context.ts'
import { definitionOf } from './definition.ts'
import { type Call, matchReceipts, type Receipt, type ReceiptResult } from './match-receipts.ts'
import { repair } from './settle.ts'

export interface SettledReceipt {
  readonly result: ReceiptResult
  readonly sessionId: string | null
  readonly turn: number | null
  /** pico-USD; null: no price is known, or nothing was booked */
  readonly cost: bigint | null
  /** a sentence for people */
  readonly detail: string
}

type Ctx = Pick<EngineContext, 'store' | 'teams' | 'invoker' | 'clock' | 'ids' | 'log' | 'settings'>

/**
 * Replaces calls of outcome unknown by what the provider says of them, as their late answers would have, and corrects
 * everything above. A call is settled once, whoever comes first: repeating it changes nothing.
 * @returns what came of each receipt, in their order
 * @throws SubledgerError unknown_run
 */
export async function settleReceipts(ctx: Ctx, ref: RunRef, receipts: readonly Receipt[]): Promise<SettledReceipt[]> {
  const run = await ctx.store.getRun(ref, { consistent: true })
  if (!run) throw new SubledgerError('unknown_run', `There is no run ${ref.runId}.`)
  const team = await definitionOf(ctx, run)
  const matches = matchReceipts(receipts, await allCalls(ctx, ref), team)
  const results: SettledReceipt[] = []
  const sessions = new Set<string>()
  for (const [i, match] of matches.entries()) {
    if (!('call' in match)) {
      results.push({ sessionId: null, turn: null, cost: null, ...match })
      continue
    }
    const { call } = match
    const place = { sessionId: call.sessionId, turn: call.n }
    if (match.result === 'known') {
      // whoever booked it from a receipt may have died before he corrected what is above
      if (call.outcome !== 'accepted') sessions.add(call.sessionId)
      results.push({ ...place, result: 'known', cost: call.cost, detail: match.detail })
      continue
    }
    const slot = settledSlot(call, receipts[i]!, team)
    const session: SessionRef = { ...ref, sessionId: call.sessionId }
    // as its late answer would: only an unknown outcome is replaced
    const written = await ctx.store.bookLate(session, slot, call.of)
    sessions.add(call.sessionId)
    results.push(
      written === 'written'
        ? { ...place, result: 'settled', cost: slot.cost, detail: `booked as ${slot.outcome}` }
        : { ...place, result: 'known', cost: null, detail: 'its answer came first' },
    )
  }
  for (const sessionId of sessions) await repair(ctx, { ...ref, sessionId })
  return results
}

async function allCalls(ctx: Ctx, ref: RunRef): Promise<Call[]> {
  const calls: Call[] = []
  let after: string | undefined
  do {
    const page = await ctx.store.listBookSlots(ref, { ...(after !== undefined && { after }) })
    for (const slot of page.items)
      if ('response' in slot && slot.response.outcome !== 'none')
        calls.push({ ...slot.response, sessionId: slot.sessionId })
    after = page.next
  } while (after !== undefined)
  return calls
}

/** The call as it is known now: paid for, and in no transcript. A receipt over nothing says that it was not charged. */
function settledSlot(call: Call, r: Receipt, team: TeamDefinition): ResponseSlot {
  const { sessionId: _, finishReason: __, ...slot } = call
  const { usage } = r
  const free = usage.inputTokens === 0 && usage.outputTokens === 0
  const definition = Object.hasOwn(team.models, call.model) ? team.models[call.model] : undefined
  const asked = { at: call.startedAt, inputTokens: usage.inputTokens, answeredBy: r.model }
  const price = definition ? priceOf(definition, asked) : null
  const cost = free ? 0n : costOf(usage, price)
  const over = slot.bound && beyondHold({ usage, cost }, slot.bound.hold)
  return {
    ...slot,
    outcome: free ? 'failed' : 'duplicate',
    cause: free ? 'settled from a receipt: nothing was charged' : 'settled from a receipt: its answer never came',
    usage,
    usageSource: 'reported',
    cost,
    price,
    ...(over && { over }),
    ...(r.responseId !== undefined && { responseId: r.responseId }),
    ...(r.model !== undefined && r.model !== definition?.model && { answeredBy: r.model }),
  }
}
