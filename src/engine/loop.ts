import { isBlocked } from '../domain/budget.ts'
import { MAX_CONTINUATIONS, MAX_EXTRA_ATTEMPTS, MAX_FAILED_CALLS } from '../domain/limits.ts'
import { type LogState, readState } from '../domain/log.ts'
import { add, covers } from '../domain/money.ts'
import { effectiveLimit } from '../domain/outer-limit.ts'
import type { Run } from '../domain/run.ts'
import { isTerminal } from '../domain/session.ts'
import { dearestOf } from '../domain/team.ts'
import type { End, Intent, Message, RequestSlot, ResponseSlot } from '../domain/turn.ts'
import { addBooks, amountOf, booksOf, NO_USAGE } from '../domain/usage.ts'
import { callModel } from './call-model.ts'
import { type Drive, firstMessage, nearDeadline, now, refresh, reload } from './drive.ts'
import { endSession } from './end-session.ts'
import { failureOf, isPermanent } from './failure.ts'
import { fundCall } from './fund-call.ts'
import { boundFor, intentFor } from './intent.ts'
import { renewLease } from './lease.ts'
import { listStep } from './list-step.ts'
import { pauseBefore } from './pause.ts'
import { fundPots } from './pots.ts'
import { transcript } from './prompt.ts'
import { repair, settleUp } from './settle.ts'
import { dropTools, runTools } from './tools/run-tools.ts'
import { mostAnswers } from './tools/specs.ts'
import { waitForTime } from './wait.ts'
import { warnBudget } from './warn-budget.ts'

/** Drives a claimed session: looks at header and log, puts the next slot, again and again. */
export async function loop(d: Drive): Promise<void> {
  // a stop that came right after the claim is seen before anything is spent, as before every later call
  if (d.agent !== null) await refresh(d)
  for (;;) {
    if (isTerminal(d.header)) return settleUp(d.ctx, d.ref)
    if (d.header.attempt !== d.attempt) return
    if ((await step(d)) !== 'again') return
    if (hasAnswered(d)) continue
    await refresh(d)
    // short calls may follow each other for longer than a lease
    if (d.header.attempt === d.attempt && (await renewLease(d, () => readState(d.slots, d.header).rows)) === 'lost')
      return
  }
}

/**
 * A leaf that has its last answer ends whatever its header says now: an answer that is in the log goes before a stop, and
 * it has no children that could have changed it.
 */
function hasAnswered(d: Drive): boolean {
  if (d.agent === null || d.header.next > 0 || d.header.attempt !== d.attempt) return false
  const state = readState(d.slots, d.header)
  return state.kind === 'final' && state.round === d.header.round
}

async function step(d: Drive): Promise<'again' | 'gone'> {
  await bookNeverCalled(d)
  const state = readState(d.slots, d.header)
  const stopped = d.header.stop ?? d.run.stop

  const closed = state.kind === 'final' || state.kind === 'ended'
  if (closed && d.header.round === state.round) return outcome(await endSession(d, state))
  if (d.agent === null) {
    if (stopped) return close(d, state, { status: 'cancelled', reason: stopped })
    return outcome(await listStep(d, state))
  }

  if (state.kind === 'open') {
    const intent = state.open!
    if (intent.driver !== d.driver || d.called.has(state.n)) return writeOff(d, state.n, intent)
    if (stopped) return giveUp(d, state.n, intent, { status: 'cancelled', reason: stopped })
    const pause = nearDeadline(d) ? 0 : await pauseBefore(d, state)
    if (pause === 'again') return 'again'
    // an intent may not be left open by a driver that goes: it is taken back, and made again by the next one
    return pause === 'go' ? outcome(await callModel(d, state, intent)) : giveUp(d, state.n, intent)
  }

  if (stopped) return close(d, state, { status: 'cancelled', reason: stopped })
  const bound = closed ? undefined : overBound(d, state)
  if (bound) return close(d, state, bound)
  if (nearDeadline(d)) return goOnElsewhere(d, state)

  let messages: readonly Message[] = []
  // a round that has put nothing in the log yet begins with its input, where it has one of its own
  const begins = closed || (state.kind === 'start' && d.header.round > state.round)
  const opening = begins ? await opensWith(d, state) : []
  if (opening === 'gone') return 'gone'
  // one without goes on where the one before ran out of money
  const kind = closed ? state.before : state.kind
  if (kind === 'start') messages = [await firstMessage(d), ...opening]
  else if (opening.length > 0) messages = opening
  else if (kind === 'tools') {
    const results = await runTools(d, state.last!)
    if (typeof results === 'string') return outcome(results)
    if ('end' in results) return close(d, state, results.end)
    messages = results
    await refresh(d)
    if (d.header.attempt !== d.attempt) return 'gone'
    if (d.header.stop) return 'again'
  } else if (!closed) {
    const pause = await pauseBefore(d, state)
    if (pause === 'again') return 'again'
    if (pause !== 'go') return outcome(await waitForTime(d, pause, state.rows))
  }

  return request(d, state, messages)
}

const outcome = (s: 'again' | 'gone' | 'asleep'): 'again' | 'gone' => (s === 'again' ? 'again' : 'gone')

/** Puts the next request with its intent, or closes the log where the money does not reach. */
async function request(d: Drive, state: LogState, messages: readonly Message[]): Promise<'again' | 'gone'> {
  const agent = d.agent!
  const n = state.next.n
  if (d.header.parentId === null && d.warnedSeq < d.header.limitSeq) await warn(d, state)
  const task = await firstMessageIfNeeded(d)
  const sofar = [...transcript(d.slots, n, task), ...messages]
  const at = now(d)
  const call = boundFor({ ...d, agent }, sofar, at)
  const enough = covers(d.header.own, add(state.spent, call.hold)) && !isBlocked(effectiveLimit(d.run))
  const funded = enough ? call : await fundCall(d, state, call, at)
  if (funded === 'gone' || funded === 'again') return funded
  if ('status' in funded) return close(d, state, funded)
  const paid = await fundPots(d, state, funded, at)
  if (typeof paid === 'string') return paid
  if ('status' in paid) return close(d, state, paid)
  const intent = intentFor({ ...d, agent }, paid, at)
  const slot: RequestSlot = { n, round: d.header.round, messages, intent, at }
  const put = await d.ctx.store.putRequest(d.ref, slot, d.driver)
  if (put === 'written') d.slots.requests.set(n, slot)
  else await reload(d)
  return 'again'
}

/** The root sees what its whole tree has spent, as far as it has settled. */
async function warn(d: Drive, state: LogState): Promise<void> {
  const spent = amountOf(addBooks(booksOf(state.rows), d.header.kids))
  if (await warnBudget(d.ctx, d.header, spent, d.run)) d.warnedSeq = d.header.limitSeq
}

/** The task stands in request 0, unless the first intent rode on the claim. */
const firstMessageIfNeeded = async (d: Drive) => (d.header.first ? await firstMessage(d) : undefined)

/** A session that cannot get on ends, so that a poisonous one costs a bounded amount. */
function overBound(d: Drive, state: LogState): End | undefined {
  const failure = state.kind === 'retry' && state.last ? failureOf(state.last) : undefined
  if (failure && (isPermanent(failure) || state.failures >= MAX_FAILED_CALLS)) {
    return { status: 'failed', reason: failure.code === 'timeout' ? 'timeout' : 'error', error: failure }
  }
  if (state.failures >= MAX_FAILED_CALLS) {
    const message = `${state.failures} model calls in a row brought no answer.`
    return { status: 'failed', reason: 'error', error: { code: 'no_answer', message } }
  }
  // claims that ended in order, by a wait or a continuation, are no sign of a session that kills its drivers
  const broken = d.header.attempt - 1 - d.header.continuations - d.header.waits
  if (Math.min(broken, d.header.attempt - state.lastAttempt) > MAX_EXTRA_ATTEMPTS) {
    const message = `${MAX_EXTRA_ATTEMPTS} invocations in a row ended without getting any further.`
    return { status: 'failed', reason: 'max_attempts', error: { code: 'max_attempts', message } }
  }
  const most = mostAnswers(d.team, d.agent!)
  if (state.answers >= most) {
    const message = `The agent has answered ${most} times in this round, which is its max_iterations.`
    return { status: 'failed', reason: 'max_iterations', error: { code: 'max_iterations', message } }
  }
  return undefined
}

/** Releases the session and has it go on in an invocation of its own. */
async function goOnElsewhere(d: Drive, state: LogState): Promise<'again' | 'gone'> {
  if (d.header.continuations - d.header.continuationsBefore >= MAX_CONTINUATIONS) {
    const message = `The session has gone on in ${MAX_CONTINUATIONS} new invocations in this round, which is the most.`
    return close(d, state, {
      status: 'failed',
      reason: 'max_continuations',
      error: { code: 'max_continuations', message },
    })
  }
  const released = await d.ctx.store.release(d.ref, d.attempt, { continues: true, now: now(d) })
  // a refusal may be this write's own, when its first answer was lost
  if (released.written || (await refresh(d)).status === 'queued') await d.ctx.invoker.invoke(d.ref)
  return 'gone'
}

/** Puts the end into the next slot: from then on no call can begin. */
async function close(d: Drive, state: LogState, end: End): Promise<'again'> {
  const { n } = state.next
  if (state.kind === 'tools' && d.agent !== null) await dropTools(d, state.last!)
  const slot: RequestSlot = { n, round: d.header.round, messages: [], end, at: now(d) }
  const put = await d.ctx.store.putRequest(d.ref, slot, d.driver)
  if (put === 'written') d.slots.requests.set(n, slot)
  else await reload(d)
  return 'again'
}

/** Another's open intent: his time is over, and what he may have spent is booked at its bound. */
async function writeOff(d: Drive, n: number, intent: Intent): Promise<'again'> {
  const price = dearestOf(d.team.models[intent.model]!, { at: intent.at, inputTokens: intent.estimate })
  return putOutcome(d, {
    ...unanswered(n, intent, now(d)),
    outcome: 'unknown',
    cause: 'its driver was lost before an answer was written',
    usage: { ...NO_USAGE, inputTokens: intent.estimate, outputTokens: intent.cap },
    cost: price && intent.hold.usd,
    price,
  })
}

/** My own intent, not called yet: it is given up, and where the session ends the log is closed in the same write. */
async function giveUp(d: Drive, n: number, intent: Intent, end?: End): Promise<'again'> {
  const none = { ...unanswered(n, intent, now(d)), outcome: 'none', usage: NO_USAGE, cost: 0n, price: null } as const
  return putOutcome(d, { ...none, ...(end && { end }) })
}

const unanswered = (n: number, intent: Intent, at: number) => ({
  n,
  of: intent.driver,
  attempt: intent.attempt,
  agent: intent.agent,
  model: intent.model,
  usageSource: 'estimated' as const,
  bound: { hold: intent.hold, estimate: intent.estimate, cap: intent.cap },
  startedAt: intent.at,
  durationMs: Math.max(0, at - intent.at),
})

async function putOutcome(d: Drive, slot: ResponseSlot): Promise<'again'> {
  const put = await d.ctx.store.putResponse(d.ref, slot, d.driver)
  if (put === 'written') d.slots.responses.set(slot.n, slot)
  else await reload(d)
  return 'again'
}

/** An intent of mine that was written off before I called: there was no call, so nothing was spent. */
async function bookNeverCalled(d: Drive): Promise<void> {
  for (const [n, r] of d.slots.responses) {
    if (r.outcome !== 'unknown' || r.of !== d.driver || d.called.has(n)) continue
    const none: ResponseSlot = {
      ...r,
      outcome: 'none',
      usage: NO_USAGE,
      cost: 0n,
      cause: 'written off before it was called',
    }
    await d.ctx.store.bookLate(d.ref, none, d.driver)
    await repair(d.ctx, d.ref)
    await reload(d)
    return
  }
}

/** What a new round begins with: its input, or nothing where it has none; `gone`: the run is in the next already. */
async function opensWith(d: Drive, state: LogState): Promise<Message[] | 'gone'> {
  const run = await d.ctx.store.getRun(d.ref, { consistent: true })
  if (!run || run.round > d.header.round) return 'gone'
  // behind a last answer nothing can go on: a round that tries again asks once more what was asked
  const asksAgain = state.kind === 'final' || state.before === 'final'
  // round 1 begins with the task, as every session does
  return asksAgain || run.inputRound > Math.max(1, state.opened) ? newRound(d, state, run) : []
}

/**
 * What opens a new round: an error result for every tool call that was still without one (a transcript can always be
 * sent again), then the new input.
 */
async function newRound(d: Drive, state: LogState, run: Run): Promise<Message[]> {
  const input = await d.ctx.store.getInput(d.ref, run.inputRound, run.inputRef)
  if (!input || !('input' in input)) throw new Error(`the input of round ${run.inputRound} is not in the table`)
  const messages: Message[] = unansweredTools(d, state).map(({ id, name }) => ({
    role: 'tool',
    toolCallId: id,
    toolName: name,
    content: 'There is no result: the round ended before this tool had finished.',
    isError: true,
  }))
  return [...messages, { role: 'user', content: input.input }]
}

/** Tool calls of the last answer of which no later request carries the results. */
function unansweredTools(d: Drive, state: LogState) {
  for (let n = state.n; n >= 0; n--) {
    const answer = d.slots.responses.get(n)
    if (answer?.outcome !== 'accepted') continue
    const answered = [...d.slots.requests.values()].some((r) => r.n > n && !r.end && r.messages.length > 0)
    return answer.results || answered ? [] : (answer.message?.toolCalls ?? [])
  }
  return []
}
