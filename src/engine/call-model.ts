import type { LogState } from '../domain/log.ts'
import { beyondHold, chargeOf } from '../domain/log.ts'
import { add, covers, sub } from '../domain/money.ts'
import { costOf } from '../domain/pricing.ts'
import { priceOf } from '../domain/team.ts'
import type { Intent, ResponseSlot, ToolMessage } from '../domain/turn.ts'
import type { ModelResult, Put } from '../ports.ts'
import { type Drive, firstMessage, nearDeadline, now, reload } from './drive.ts'
import { modelOf } from './estimate.ts'
import { causeOf } from './failure.ts'
import { boundFor, intentFor, promptOf } from './intent.ts'
import { potsCover } from './pots.ts'
import { transcript } from './prompt.ts'
import { repair } from './settle.ts'
import { instantResults } from './tools/run-tools.ts'
import { mostAnswers } from './tools/specs.ts'
import { watchCall } from './watch-call.ts'

/** Makes the one call that an intent of this driver allows, and puts its outcome before anything is done with it. */
export async function callModel(d: Drive, state: LogState, intent: Intent): Promise<'again'> {
  const { n } = state
  d.called.add(n)
  const definition = modelOf(d.team, d.agent!)
  const task = d.slots.requests.has(0) ? undefined : await firstMessage(d)
  const startedAt = now(d)
  const result = await watchCall(d, state.rows, (signal) =>
    d.ctx.model.call({
      definition,
      ...promptOf({ team: d.team, agent: d.agent! }, transcript(d.slots, n, task)),
      // what its hold was computed with: no answer can be longer than what was set aside for it
      maxOutputTokens: intent.cap,
      signal,
      call: { sessionId: d.ref.sessionId, n, driver: d.driver },
    }),
  )
  const whole = withNext(d, state, intent, outcomeSlot(d, n, intent, result, startedAt))
  const { put, slot } = await bookOutcome(d, whole)
  await heedPause(d, intent, result)
  if (put === 'written') {
    d.slots.responses.set(n, slot)
    return 'again'
  }
  await reload(d)
  const there = d.slots.responses.get(n)
  if (there && there.of === d.driver && there.outcome !== 'unknown') return 'again' // mine: the put's answer was lost
  // written off while it was under way: its real bill replaces the bound
  const { next: _, results: __, ...late } = slot
  const outcome = slot.outcome === 'accepted' ? 'duplicate' : slot.outcome
  const cause = slot.cause ?? 'answered after it had been written off'
  await d.ctx.store.bookLate(d.ref, { ...late, outcome, cause }, d.driver)
  await repair(d.ctx, d.ref)
  await reload(d)
  // whoever holds the header goes on, so that somebody always does
  return 'again'
}

const SECOND_TRY_MS = 300

/** The item itself cannot be stored, now or later: it is too large, or holds what no item can. */
const isRefusedItem = (fault: unknown): boolean =>
  fault instanceof RangeError ||
  (fault instanceof Error && /ValidationException/.test(`${fault.name} ${fault.message}`))

/**
 * Spend is a fact before anything is done with it: where an outcome cannot be stored whole, it is stored without its
 * texts, as a failed call that cost what it cost.
 */
async function bookOutcome(d: Drive, whole: ResponseSlot): Promise<{ put: Put; slot: ResponseSlot }> {
  const putWhole = async () => ({ put: await d.ctx.store.putResponse(d.ref, whole, d.driver), slot: whole })
  try {
    return await putWhole().catch(async (fault) => {
      if (isRefusedItem(fault)) throw fault
      // a passing fault must not cost an answer that is paid for
      await d.ctx.clock.sleep(SECOND_TRY_MS)
      return putWhole()
    })
  } catch (fault) {
    d.ctx.log.warn('could not store an answer; its figures are stored alone', { ...d.ref, fault: String(fault) })
    const { message: _, results: __, next: ___, rawUsage: ____, ...figures } = whole
    const cause = figures.cause ?? 'store: the answer could not be stored'
    const slot: ResponseSlot = { ...figures, outcome: 'failed', cause }
    return { put: await d.ctx.store.putResponse(d.ref, slot, d.driver), slot }
  }
}

/** The provider wants a pause: this worker keeps it, and tells the others that call the same model. */
async function heedPause(d: Drive, intent: Intent, { failure }: ModelResult): Promise<void> {
  if (!failure?.retryAfterMs) return
  d.retryAt = now(d) + failure.retryAfterMs
  try {
    await d.ctx.store.coolDown(d.ref.tenant, d.run.team, intent.model, d.retryAt)
  } catch (fault) {
    // it only spares the others a refusal
    d.ctx.log.warn('could not tell the other workers of a pause', { ...d.ref, fault: String(fault) })
  }
}

function outcomeSlot(d: Drive, n: number, intent: Intent, result: ModelResult, startedAt: number): ResponseSlot {
  const { usage, answeredBy } = result
  // as of the intent, as its hold was: a price that changes between the two must not outgrow it
  const price = priceOf(d.team.models[intent.model]!, { at: intent.at, inputTokens: usage.inputTokens, answeredBy })
  // a call that was refused before any work cost nothing, whether its model has a price or not
  const free = result.usageSource === 'reported' && usage.inputTokens === 0 && usage.outputTokens === 0
  const cost = free ? 0n : costOf(usage, price)
  const over = beyondHold({ usage, cost }, intent.hold)
  if (over) d.ctx.log.info('a call cost more than was set aside for it', { ...d.ref, turn: n, model: intent.model })
  return {
    n,
    outcome: result.message ? 'accepted' : 'failed',
    of: d.driver,
    attempt: d.attempt,
    agent: intent.agent,
    model: intent.model,
    ...(result.failure && { cause: causeOf(result.failure) }),
    usage,
    usageSource: result.usageSource,
    cost,
    price,
    ...(over && { over }),
    ...(result.message && { message: result.message }),
    finishReason: result.finishReason,
    ...(result.responseId !== undefined && { responseId: result.responseId }),
    ...(answeredBy !== undefined && { answeredBy }),
    ...(result.rawUsage !== undefined && { rawUsage: result.rawUsage }),
    startedAt,
    durationMs: now(d) - startedAt,
  }
}

/**
 * Where all tools of an answer are instantaneous and the next hold fits what the session owns, results and the next
 * intent ride in the same item: one write a turn.
 */
function withNext(d: Drive, state: LogState, open: Intent, slot: ResponseSlot): ResponseSlot {
  const agent = d.agent!
  if (slot.outcome !== 'accepted' || !slot.message?.toolCalls.length || nearDeadline(d)) return slot
  if (state.answers + 1 >= mostAnswers(d.team, agent)) return slot
  const results: ToolMessage[] | undefined = instantResults(d, slot)
  if (!results) return slot
  const messages = [...transcript(d.slots, slot.n, d.task), slot.message, ...results]
  const at = now(d)
  const bound = boundFor({ ...d, agent }, messages, at)
  const next = intentFor({ ...d, agent }, bound, at)
  const spent = add(sub(state.spent, open.hold), chargeOf(slot))
  if (!covers(d.header.own, add(spent, next.hold)) || !potsCover(d, slot, bound)) return slot
  return { ...slot, results, next }
}
