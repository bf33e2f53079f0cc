import { type Amount, add, isZero, missing, ZERO } from './money.ts'
import type { SessionHeader } from './session.ts'
import type { End, Intent, LogSlots, ResponseSlot } from './turn.ts'
import { addRow, type BookRow, NO_TOTALS, type Totals } from './usage.ts'

/**
 * What a session's log says: what the last word is, what has been spent, where the next slot is.
 *
 * `start`: no call yet · `open`: an intent without outcome · `tools`: an answer whose tool calls want results ·
 * `retry`: the last call brought no answer · `final`: an answer without tool calls · `ended`: closed by an end
 *
 * A request slot with neither intent nor end changes nothing: it is a mark that keeps others from putting theirs there.
 */
export interface LogState {
  readonly kind: 'start' | 'open' | 'tools' | 'retry' | 'final' | 'ended'
  /** number of the last call, -1 before the first */
  readonly n: number
  /** round of the conversation that the log has reached */
  readonly round: number
  /** accepted answers of this round */
  readonly answers: number
  /** calls without an accepted answer since the last accepted one */
  readonly failures: number
  /** of the session's own money: what its calls cost, open intents at their hold, unknown ones at their bound */
  readonly spent: Amount
  readonly rows: readonly BookRow[]
  readonly unknowns: { readonly [n: string]: Amount }
  /** attempt that wrote the last slot; 0: none */
  readonly lastAttempt: number
  readonly open?: Intent
  /** the last outcome: the answer of `tools` and `final`, the failure of `retry` */
  readonly last?: ResponseSlot
  readonly end?: End
  /** what the log said before its end: where a session that ended for want of money goes on */
  readonly before?: Exclude<LogState['kind'], 'open' | 'ended'>
  /** the last round in which a call was made or about to be made; 0: none */
  readonly opened: number
  /** where the next write goes, whatever it is */
  readonly next: { readonly n: number; readonly part: 0 | 1 }
}

/** What a call takes from its session's own money. */
export const chargeOf = (r: ResponseSlot): Amount =>
  r.outcome === 'none'
    ? ZERO
    : r.outcome === 'unknown' && r.bound
      ? r.bound.hold
      : { usd: r.cost ?? 0n, tok: BigInt(r.usage.inputTokens + r.usage.outputTokens) }

/** By how much a known call went beyond its hold; undefined: not at all. */
export function beyondHold(r: Pick<ResponseSlot, 'cost' | 'usage'>, hold: Amount): Amount | undefined {
  const over = missing(hold, { usd: r.cost ?? 0n, tok: BigInt(r.usage.inputTokens + r.usage.outputTokens) })
  return isZero(over) ? undefined : over
}

/** A call's part of the books. */
export const totalsOf = (r: ResponseSlot): Totals =>
  r.outcome === 'none'
    ? NO_TOTALS
    : { ...r.usage, calls: 1, cost: r.cost ?? 0n, unpricedCalls: r.cost === null ? 1 : 0 }

export function readState(slots: LogSlots, header: Pick<SessionHeader, 'first' | 'parentId' | 'round'>): LogState {
  let state: LogState = {
    kind: 'start',
    n: -1,
    // only the root's conversation goes on in later rounds; a child's whole log is of the round it was born in
    round: header.parentId === null ? 1 : header.round,
    opened: header.first ? 1 : 0,
    answers: 0,
    failures: 0,
    spent: ZERO,
    rows: [],
    unknowns: {},
    lastAttempt: 0,
    next: { n: 0, part: 0 },
  }
  let open: Intent | undefined = header.first ?? undefined
  for (let n = 0; ; n++) {
    if (!open) {
      const request = slots.requests.get(n)
      if (!request) return state
      if (request.round > state.round) state = { ...state, round: request.round, answers: 0, failures: 0 }
      if (request.end) {
        const { open: _, ...rest } = state
        const before = state.kind === 'open' || state.kind === 'ended' ? state.before : state.kind
        state = { ...rest, kind: 'ended', n, end: request.end, next: { n: n + 1, part: 0 }, ...(before && { before }) }
        continue
      }
      open = request.intent
      if (!open) {
        state = { ...state, next: { n: n + 1, part: 0 } }
        continue
      }
      state = { ...state, opened: request.round }
    }
    const response = slots.responses.get(n)
    const attempt = Math.max(state.lastAttempt, open.attempt)
    if (!response) {
      return {
        ...state,
        kind: 'open',
        n,
        open,
        spent: add(state.spent, open.hold),
        lastAttempt: attempt,
        next: { n, part: 1 },
      }
    }
    state = { ...after(state, n, response), lastAttempt: Math.max(attempt, response.attempt) }
    open = response.next
  }
}

/** The state after the outcome of call n. */
function after(before: LogState, n: number, response: ResponseSlot): LogState {
  const booked = response.outcome !== 'none'
  const { open: _, end: __, before: ___, ...rest } = before
  const state = {
    ...rest,
    n,
    last: response,
    spent: add(before.spent, chargeOf(response)),
    rows: booked
      ? addRow(before.rows, {
          agent: response.agent,
          model: response.model,
          outcome: response.outcome as Exclude<ResponseSlot['outcome'], 'none'>,
          totals: totalsOf(response),
        })
      : before.rows,
    unknowns: response.outcome === 'unknown' ? { ...before.unknowns, [n]: chargeOf(response) } : before.unknowns,
    next: { n: n + 1, part: 0 as const },
  }
  if (response.end) return { ...state, kind: 'ended', before: 'retry', end: response.end }
  if (response.outcome !== 'accepted') return { ...state, kind: 'retry', failures: before.failures + (booked ? 1 : 0) }
  const tools = (response.message?.toolCalls.length ?? 0) > 0
  return { ...state, kind: tools ? 'tools' : 'final', answers: before.answers + 1, failures: 0 }
}
