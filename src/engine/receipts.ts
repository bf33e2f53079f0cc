import { SubledgerError } from '../domain/errors.ts'
import { beyondHold } from '../domain/log.ts'
import { costOf } from '../domain/pricing.ts'
import type { RunRef, SessionRef } from '../domain/run.ts'
import { priceOf, type TeamDefinition } from '../domain/team.ts'
import type { ResponseSlot } from '../domain/turn.ts'
import type { TokenUsage } from '../domain/usage.ts'
import type { EngineContext } from './context.ts'
import { definitionOf } from './definition.ts'
import { repair } from './settle.ts'

/** What a provider says of one call. It names the call, or says when it was made. */
export interface Receipt {
  readonly sessionId?: string | undefined
  /** number of the call in its session */
  readonly turn?: number | undefined
  /** the provider's id of the response */
  readonly responseId?: string | undefined
  /** the provider's id of the model that answered */
  readonly model?: string | undefined
  /** when the provider made the response, epoch ms */
  readonly createdAt?: number | undefined
  readonly usage: TokenUsage
}

/**
 * `settled`: the call was unknown, and is booked now · `known`: it was booked already · `no_call`: the run has no call that
 * it could be of · `ambiguous`: it could be of several, or several receipts of one
 */
export type ReceiptResult = 'settled' | 'known' | 'no_call' | 'ambiguous'

export interface SettledReceipt {
  readonly result: ReceiptResult
  readonly sessionId: string | null
  readonly turn: number | null
  /** pico-USD; null: no price is known, or nothing was booked */
  readonly cost: bigint | null
  /** a sentence for people */
  readonly detail: string
}

type Call = ResponseSlot & { readonly sessionId: string }
type Ctx = Pick<EngineContext, 'store' | 'teams' | 'invoker' | 'clock' | 'ids' | 'log' | 'settings'>

/** Providers date by whole seconds, and no two clocks agree. */
const CLOCK_MS = 2_000

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

type Match =
  | { readonly result: 'settled' | 'known'; readonly call: Call; readonly detail: string }
  | { readonly result: 'no_call' | 'ambiguous'; readonly detail: string }

/** Which call each receipt is of: by session and turn, by the response's id, or by model and time where only one fits. */
export function matchReceipts(receipts: readonly Receipt[], calls: readonly Call[], team: TeamDefinition): Match[] {
  const byPlace = new Map(calls.map((c) => [`${c.sessionId}/${c.n}`, c]))
  const byResponse = new Map(calls.flatMap((c) => (c.responseId === undefined ? [] : [[c.responseId, c] as const])))
  const named = new Map<Call, number>()
  const first: (Match | undefined)[] = receipts.map((r) => {
    if (r.sessionId !== undefined && r.turn !== undefined) {
      const call = byPlace.get(`${r.sessionId}/${r.turn}`)
      if (!call) return { result: 'no_call', detail: `there is no call ${r.turn} of session ${r.sessionId}` }
      named.set(call, (named.get(call) ?? 0) + 1)
      return call.outcome === 'unknown' ? { result: 'settled', call, detail: '' } : known(call, r)
    }
    const call = r.responseId === undefined ? undefined : byResponse.get(r.responseId)
    return call && known(call, r)
  })
  const open = calls.filter((c) => c.outcome === 'unknown' && !named.has(c))
  const fits = receipts.map((r, i) => (first[i] ? [] : open.filter((c) => couldBe(r, c, team))))
  return first.map((match, i): Match => {
    if (match) return match.result === 'settled' && named.get(match.call)! > 1 ? several(match.call) : match
    const [call, ...others] = fits[i]!
    if (!call) return { result: 'no_call', detail: 'no call of unknown outcome fits it' }
    if (others.length > 0) {
      const places = fits[i]!.map((c) => `call ${c.n} of session ${c.sessionId}`)
      return { result: 'ambiguous', detail: `it could be ${places.join(', or ')}: say which with sessionId and turn` }
    }
    return fits.filter((f) => f.includes(call)).length > 1 ? several(call) : { result: 'settled', call, detail: '' }
  })
}

const several = (call: Call): Match => ({
  result: 'ambiguous',
  detail: `several receipts fit call ${call.n} of session ${call.sessionId}: leave the right one`,
})

function known(call: Call, r: Receipt): Match {
  const { inputTokens, outputTokens } = call.usage
  const same = inputTokens === r.usage.inputTokens && outputTokens === r.usage.outputTokens
  const detail = same
    ? 'it was booked with the same tokens'
    : `it was booked with ${inputTokens} input and ${outputTokens} output tokens, the receipt has ${r.usage.inputTokens} and ${r.usage.outputTokens}`
  return { result: 'known', call, detail }
}

/** The provider made the response after the intent was put and before the call was written off. */
function couldBe(r: Receipt, call: Call, team: TeamDefinition): boolean {
  if (r.createdAt === undefined) return false
  const asked = Object.hasOwn(team.models, call.model) ? team.models[call.model]!.model : call.model
  // an answer may name the dated version of the model that was asked for
  if (r.model !== undefined && r.model !== asked && !r.model.startsWith(`${asked}-`)) return false
  return r.createdAt >= call.startedAt - CLOCK_MS && r.createdAt <= call.startedAt + call.durationMs + CLOCK_MS
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
