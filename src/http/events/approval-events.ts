import { type Approval, approvalIdOf } from '../../domain/approval.ts'
import type { TeamDefinition } from '../../domain/team.ts'
import { time } from '../views/figures.ts'
import type { EventView } from './session-events.ts'

/** An event of a question of answer `n`, in the session's round `round`. */
export interface ApprovalEvent {
  readonly event: EventView
  readonly n: number
  readonly round: number
}

/** Whether anybody can be asked anything in a run of this team. */
export const mayAsk = (team: TeamDefinition): boolean => (team.permissions?.ask ?? []).length > 0

/**
 * What can be told of a session's questions, in the one order in which it is ever told: answer by answer, first all that
 * was asked about it, then what was decided, each in the order of the calls. A decision waits for those before it. What
 * was never asked, or closed without a decision, is not told. So what is told once is the beginning of all that is ever
 * told, however the questions are read while they come: whatever is missing from a reading ends it there.
 * @param all of the session, in the order of their keys, as one reading found them
 */
export function approvalEvents(sessionId: string, all: readonly Approval[]): ApprovalEvent[] {
  const events: ApprovalEvent[] = []
  for (let i = 0; i < all.length; ) {
    const { of } = all[i]!
    const ofAnswer = all.slice(i, i + of)
    if (ofAnswer.length < of || ofAnswer.some((a, k) => a.nth !== i + k)) return events
    for (const a of ofAnswer) if (a.askedAt !== null) events.push({ ...a, event: asked(sessionId, a, a.askedAt) })
    for (const a of ofAnswer) {
      if (a.decision) events.push({ ...a, event: decided(sessionId, a, a.decision) })
      else if (a.closedAt === null) return events
    }
    i += of
  }
  return events
}

const idOf = (sessionId: string, { n, index }: Approval): string => approvalIdOf({ sessionId, n, index })

const asked = (sessionId: string, a: Approval, at: number): EventView => ({
  type: 'approval.asked',
  sessionId,
  at: time(at),
  approvalId: idOf(sessionId, a),
  tool: a.tool,
  turn: a.n,
  index: a.index,
})

const decided = (sessionId: string, a: Approval, d: NonNullable<Approval['decision']>): EventView => ({
  type: 'approval.decided',
  sessionId,
  at: time(d.at),
  approvalId: idOf(sessionId, a),
  turn: a.n,
  index: a.index,
  decision: d.decision,
  by: d.by,
  note: d.note,
})
