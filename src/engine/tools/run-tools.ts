import { isBlocked } from '../../domain/budget.ts'
import { readState } from '../../domain/log.ts'
import type { Delegation } from '../../domain/session.ts'
import type { End, ResponseSlot, ToolMessage } from '../../domain/turn.ts'
import { delegate, type Kid, widthOf } from '../delegate.ts'
import { type Drive, now, refresh, type Step } from '../drive.ts'
import { stopSession } from '../end-session.ts'
import { waitFor } from '../wait.ts'
import { type Approved, approved, closeApprovals } from './approved.ts'
import { backgroundOrdinals, childRef, reportOf, transferOutcome } from './children.ts'
import { type Asked, type Planned, planTools, type ToolOutcome, taskIdOf } from './plan.ts'
import { bytesPerResult, reportsText, reportText, statesText } from './result-size.ts'

const plan = (d: Drive, answer: ResponseSlot): (Planned | Asked)[] =>
  planTools(d.team, d.agent!, d.header, answer.message!.toolCalls)

const toMessages = (answer: ResponseSlot, outcomes: readonly ToolOutcome[]): ToolMessage[] =>
  answer.message!.toolCalls.map((call, i) => ({
    role: 'tool',
    toolCallId: call.id,
    toolName: call.name,
    content: outcomes[i]!.content,
    ...(outcomes[i]!.isError && { isError: true }),
  }))

/** The results of an answer whose tools are all instantaneous; otherwise nothing. */
export function instantResults(d: Drive, answer: ResponseSlot): ToolMessage[] | undefined {
  const planned = plan(d, answer)
  if (!planned.every((p) => p.kind === 'instant')) return undefined
  return toMessages(
    answer,
    planned.map((p) => p.outcome),
  )
}

/** The session is about to end behind an answer whose tools it has not run: nobody need decide about them any more. */
export const dropTools = (d: Drive, answer: ResponseSlot): Promise<void> => closeApprovals(d, answer, plan(d, answer))

/**
 * Runs the tools of an answer, once all that ask for it are approved or denied: all delegations in one write, then
 * effects, then waits. All of it is safe to run again. Returns one result for every tool call, in order, or how the
 * session ends instead, or what the driver should do instead.
 */
export async function runTools(d: Drive, answer: ResponseSlot): Promise<ToolMessage[] | { readonly end: End } | Step> {
  const may = await approved(d, answer, plan(d, answer))
  if (typeof may === 'string' || 'end' in may) return may
  const { planned, since } = may
  const outcomes: (ToolOutcome | undefined)[] = planned.map((p) => (p.kind === 'instant' ? p.outcome : undefined))

  const wanted = planned.flatMap((p, i) => (p.kind === 'delegate' ? [{ ...p, index: i }] : []))
  let given: Delegation | undefined
  if (wanted.length > 0) {
    const kids: Kid[] = wanted.map((w) => ({
      agent: w.agent,
      kind: w.transfer ? 'transfer' : 'background',
      via: { turn: answer.n, index: w.index },
      weight: 1,
      task: w.task,
    }))
    const made = await delegate(d, answer.n, kids)
    if (typeof made === 'string') return made
    given = made
    for (const [i, w] of wanted.entries()) {
      if (i >= made.count) outcomes[w.index] = notStarted(d)
      else if (!w.transfer) outcomes[w.index] = started(w.agent, made.from + i)
    }
  }

  for (const [i, p] of planned.entries()) if (p.kind === 'stop') outcomes[i] = await stopTask(d, answer.n, i, p.ordinal)

  const transfers = wanted.flatMap((w, i) =>
    w.transfer && i < given!.count ? [{ index: w.index, ordinal: given!.from + i }] : [],
  )
  const asleep = await waitForAll(
    d,
    answer,
    may,
    transfers.map((t) => t.ordinal),
  )
  if (asleep !== 'ready') return asleep

  const maxBytes = bytesPerResult(planned)
  for (const t of transfers) outcomes[t.index] = await transferOutcome(d, t.ordinal, maxBytes)
  for (const [i, p] of planned.entries()) {
    if (p.kind === 'view') outcomes[i] = await viewTask(d, p.ordinal, maxBytes)
    if (p.kind === 'list') outcomes[i] = await listTasks(d, maxBytes)
    if (p.kind === 'wait') outcomes[i] = await waited(d, p, since, maxBytes)
  }
  return toMessages(
    answer,
    outcomes.map((o) => o!),
  )
}

const started = (agent: string, ordinal: number): ToolOutcome => ({
  content: `Started ${agent} in the background. Its task id is ${taskIdOf(ordinal)}.`,
})

const notStarted = (d: Drive): ToolOutcome => ({
  content: isBlocked(d.run.limit)
    ? 'Not started: the budget is 0.'
    : `Not started: at most ${widthOf(d)} agents may work for one session at once. Wait for some of them first.`,
  isError: true,
})

/** Stopping has an effect, so its result is durable: a second run of the same call reads it. */
async function stopTask(d: Drive, n: number, index: number, ordinal: number): Promise<ToolOutcome> {
  const known = d.slots.results.get(`${n}#${index}`) ?? (await d.ctx.store.getToolResult(d.ref, n, index))
  if (known) return { content: known.content, ...(known.isError && { isError: true }) }
  const child = (await backgroundOrdinals(d, [ordinal])).get(ordinal)
  const outcome: ToolOutcome = child
    ? { content: `${taskIdOf(ordinal)} was ${child.status}; it has been asked to stop.` }
    : { content: `There is no background task ${taskIdOf(ordinal)}.`, isError: true }
  if (child) await stopSession(d.ctx, childRef(d, ordinal), child, 'cancelled')
  const slot = { n, index, ...outcome, at: now(d) }
  if ((await d.ctx.store.putToolResult(d.ref, slot, d.driver)) === 'written') return outcome
  const first = await d.ctx.store.getToolResult(d.ref, n, index)
  return first ? { content: first.content, ...(first.isError && { isError: true }) } : outcome
}

/** Waits once for everything that the answer's tools wait for; a wait whose time is up is no longer waited for. */
async function waitForAll(d: Drive, answer: ResponseSlot, { planned, since }: Approved, transfers: readonly number[]) {
  const { rows } = readState(d.slots, d.header)
  for (;;) {
    const h = await refresh(d)
    if (h.attempt !== d.attempt) return 'gone'
    const ordinals = new Set(transfers.filter((o) => h.pending.has(o)))
    let wakeAt: number | null = null
    for (const p of planned) {
      const wait = p.kind === 'wait' ? p : polled(d, answer, p)
      if (!wait) continue
      const until = since + wait.timeoutMs
      const left = [...h.pending].filter((o) => wait.ordinals === 'all' || wait.ordinals.includes(o))
      if (left.length === 0 || now(d) >= until) continue
      for (const o of left) ordinals.add(o)
      wakeAt = wakeAt === null ? until : Math.min(wakeAt, until)
    }
    if (ordinals.size === 0) return 'ready'
    const waited = await waitFor(d, { ordinals, wakeAt, closed: false, rows })
    if (waited !== 'ready') return waited
  }
}

/** How long a session that only polls may be laid down for. */
const POLL_MS = 300_000

/**
 * A session that looks at its children twice in a row without doing anything else is polling: it lies down until the
 * child has ended, so that polling costs no tokens.
 */
function polled(
  d: Drive,
  answer: ResponseSlot,
  p: Planned,
): { ordinals: readonly number[] | 'all'; timeoutMs: number } | undefined {
  if (p.kind !== 'view' && p.kind !== 'list') return undefined
  let before: ResponseSlot | undefined
  for (let n = answer.n - 1; n >= 0 && !before; n--) {
    const r = d.slots.responses.get(n)
    if (r?.outcome === 'accepted') before = r
  }
  if (!before?.message) return undefined
  const earlier = plan(d, before)
  const looked = earlier.length > 0 && earlier.every((e) => e.kind === 'view' || e.kind === 'list')
  if (!looked) return undefined
  if (p.kind === 'view') return { ordinals: [p.ordinal], timeoutMs: POLL_MS }
  const first = Math.min(...d.header.pending)
  return { ordinals: Number.isFinite(first) ? [first] : [], timeoutMs: POLL_MS }
}

async function viewTask(d: Drive, ordinal: number, maxBytes: number): Promise<ToolOutcome> {
  const known = await backgroundOrdinals(d, [ordinal])
  if (!known.has(ordinal)) return { content: `There is no background task ${taskIdOf(ordinal)}.`, isError: true }
  return { content: reportText(await reportOf(d, ordinal, known.get(ordinal)), maxBytes) }
}

async function listTasks(d: Drive, maxBytes: number): Promise<ToolOutcome> {
  const tasks = await backgroundOrdinals(
    d,
    Array.from({ length: d.header.next }, (_, o) => o),
  )
  const states = [...tasks].map(([o, h]) => ({ task_id: taskIdOf(o), agent: h.agent, status: h.status }))
  return { content: statesText(states, maxBytes) }
}

/** The reports of the tasks waited for; of all of them where no ids were given. */
async function waited(d: Drive, p: Planned & { kind: 'wait' }, since: number, maxBytes: number): Promise<ToolOutcome> {
  const among = p.ordinals === 'all' ? Array.from({ length: d.header.next }, (_, o) => o) : p.ordinals
  const tasks = await backgroundOrdinals(d, among)
  const missing = p.ordinals === 'all' ? [] : p.ordinals.filter((o) => !tasks.has(o))
  if (missing.length > 0)
    return { content: `There is no background task ${missing.map(taskIdOf).join(', ')}.`, isError: true }
  const reports = await Promise.all([...tasks].map(([o, h]) => reportOf(d, o, h)))
  const late = now(d) >= since + p.timeoutMs && [...tasks.keys()].some((o) => d.header.pending.has(o))
  return { content: reportsText(reports, late ? { timed_out: true } : {}, maxBytes) }
}
