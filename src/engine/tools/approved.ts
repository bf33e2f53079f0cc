import { APPROVAL_WAIT_MS, type Approval, askOf, type Decision } from '../../domain/approval.ts'
import { readState } from '../../domain/log.ts'
import { isTerminal } from '../../domain/session.ts'
import type { End, ResponseSlot } from '../../domain/turn.ts'
import type { Question } from '../../ports/approval-store.ts'
import { passDecisions } from '../approve.ts'
import { type Drive, now, refresh, type Step } from '../drive.ts'
import { lieDownUntil } from '../wait.ts'
import type { Asked, Planned } from './plan.ts'

/** The tool calls of an answer as they may be run, and since when, epoch ms. */
export interface Approved {
  readonly planned: readonly Planned[]
  readonly since: number
}

/**
 * Has people decide about the calls of an answer that ask for it, and lies down until all are decided: no Lambda is held.
 * None of the answer's calls is run before, so that all its delegations leave in one write.
 * @returns what may be run · the end, when nobody has decided in time · what the driver should do instead
 */
export async function approved(
  d: Drive,
  answer: ResponseSlot,
  planned: readonly (Planned | Asked)[],
): Promise<Approved | { readonly end: End } | Step> {
  const answeredAt = answer.startedAt + answer.durationMs
  const asked = planned.flatMap((p, i) => (p.kind === 'ask' ? [i] : []))
  if (asked.length === 0) return { planned: planned as readonly Planned[], since: answeredAt }
  const until = answeredAt + APPROVAL_WAIT_MS
  for (;;) {
    const known = new Map((await d.ctx.store.listApprovals(d.ref, answer.n)).map((a) => [a.index, a]))
    const open = asked.filter((i) => !known.get(i)?.decision && !isOver(known.get(i), d.header.round))
    if (open.length === 0) return decided(planned, known, answeredAt)
    // one that is closed was closed by a driver who was about to end the round
    if (now(d) >= until || open.some((i) => known.get(i)?.closedAt)) return { end: undecided(answer, open) }
    if (asked.some((i) => !known.has(i)))
      for (const question of await questionsOf(d, answer, asked))
        if (!known.has(question.index)) await d.ctx.store.putApproval(d.ref, { ...question, askedAt: now(d) })
    const h = await refresh(d)
    if (h.attempt !== d.attempt) return 'gone'
    if (h.stop) return 'again'
    const asks = open.map((index) => askOf({ n: answer.n, index }))
    const { rows } = readState(d.slots, h)
    const asleep = await lieDownUntil(d, h, { on: { asks }, wakeAt: until, rows, closed: false, now: now(d) })
    if (asleep === 'asleep') {
      // what was decided between looking and lying down has woken nobody
      const after = await refresh(d)
      if (!isTerminal(after)) await passDecisions(d.ctx, d.ref, after)
    }
    return asleep
  }
}

/** Closed when an earlier round ended: nobody can decide it any more, and this round goes on without. */
const isOver = (a: Approval | undefined, round: number): boolean =>
  a !== undefined && a.closedAt !== null && a.round < round

/** The same for every driver: before an answer has successors, each of its questions is asked or closed. */
async function questionsOf(d: Drive, { n, message }: ResponseSlot, asked: readonly number[]): Promise<Question[]> {
  const earlier = (await d.ctx.store.listApprovals(d.ref)).filter((a) => a.n < n).length
  return asked.map((index, i) => ({
    n,
    index,
    round: d.header.round,
    tool: message!.toolCalls[index]!.name,
    nth: earlier + i,
    of: asked.length,
  }))
}

/**
 * Before the log is closed behind an answer: what nobody has decided about it is closed, also what was not asked yet. So
 * no decision comes after the end, and no question of a driver that has lost the session: what is in the table of a
 * session's approvals when it has ended is all there ever is.
 */
export async function closeApprovals(
  d: Drive,
  answer: ResponseSlot,
  planned: readonly (Planned | Asked)[],
): Promise<void> {
  const asked = planned.flatMap((p, i) => (p.kind === 'ask' ? [i] : []))
  if (asked.length === 0) return
  const known = new Map((await d.ctx.store.listApprovals(d.ref, answer.n)).map((a) => [a.index, a]))
  const open = new Set(asked.filter((i) => !known.get(i)?.decision && !known.get(i)?.closedAt))
  if (open.size === 0) return
  for (const question of await questionsOf(d, answer, asked))
    if (open.has(question.index)) await d.ctx.store.closeApproval(d.ref, question, now(d))
}

function decided(
  planned: readonly (Planned | Asked)[],
  known: ReadonlyMap<number, Approval>,
  answeredAt: number,
): Approved {
  const decisions = [...known.values()].flatMap(({ decision }) => (decision ? [decision.at] : []))
  return {
    planned: planned.map((p, i) => (p.kind === 'ask' ? become(p, known.get(i)!.decision) : p)),
    since: Math.max(answeredAt, ...decisions),
  }
}

function become({ call }: Asked, decision: Decision | null): Planned {
  if (decision?.decision === 'approve') return call
  const why = decision
    ? decision.note
    : 'nobody had decided about it when the round ended. Call it again to have it asked again.'
  const content = `This call was not approved${why ? `: ${why}` : '.'}`
  return { kind: 'instant', outcome: { content, isError: true } }
}

function undecided(answer: ResponseSlot, open: readonly number[]): End {
  const names = [...new Set(open.map((i) => answer.message!.toolCalls[i]!.name))].join(', ')
  const days = APPROVAL_WAIT_MS / 86_400_000
  const message = `Nobody has decided about ${open.length} tool calls (${names}) within ${days} days.`
  return { status: 'failed', reason: 'approval', error: { code: 'approval', message } }
}
