/** What a stream of events tells. Each event is derived from facts that are written once, so it never changes. */
import * as z from 'zod/mini'
import { count, errorInfo, maybeMoney, maybeTime, says, sessionId, text, texts, time } from './shape-parts.ts'
import { shapes, stopReason, usage } from './shapes.ts'

const round = count.check(says("the session's round; only a root has more than one"))
const turn = count.check(says('number of the call'))

const created = z.strictObject({
  type: z.literal('session.created'),
  sessionId,
  at: time,
  parentSessionId: z.nullable(sessionId),
  kind: z.enum(['root', 'transfer', 'background', 'task']),
  ordinal: count,
  agent: texts,
  depth: count,
  task: texts.check(says('a preview, or null')),
})
const started = z.strictObject({ type: z.literal('session.started'), sessionId, at: time })
const finished = z.strictObject({
  type: z.literal('session.finished'),
  sessionId,
  at: maybeTime.check(says('null: it was cancelled before it began, and nothing says when')),
  round,
  status: z.enum(['completed', 'failed', 'cancelled']),
  stopReason,
  error: errorInfo,
})
const reopened = z.strictObject({
  type: z.literal('session.reopened'),
  sessionId,
  at: z.null().check(says('no fact says when')),
  round,
})
const turnStarted = z.strictObject({
  type: z.literal('turn.started'),
  sessionId,
  at: time,
  turn,
  agent: text,
  model: text.check(says('provider/model')),
})
const turnFinished = z.strictObject({
  type: z.literal('turn.finished'),
  sessionId,
  at: time,
  turn,
  outcome: z
    .enum(['accepted', 'failed', 'unknown', 'none'])
    .check(says('unknown: its driver was lost; what becomes known later is told by the calls. none: it was not made')),
  cause: texts,
  usage: z.nullable(usage).check(says('null: not known')),
  costUsd: maybeMoney.check(says('null: not known')),
  toolCalls: z.array(z.strictObject({ id: text, name: text })),
})
const toolResult = z.strictObject({
  type: z.literal('tool.result'),
  sessionId,
  at: time,
  turn: turn.check(says('of the answer that asked for it')),
  toolCallId: text,
  toolName: text,
  isError: z.boolean(),
})

const approvalId = text.check(says('names it to POST /v1/runs/{runId}/approvals/{approvalId}'))
const ofAnswer = turn.check(says('of the answer that the tool call is in'))
const index = count.check(says("place among the answer's tool calls, from 0"))
const approvalAsked = z.strictObject({
  type: z.literal('approval.asked'),
  sessionId,
  at: time,
  approvalId,
  tool: text,
  turn: ofAnswer,
  index,
})
const approvalDecided = z.strictObject({
  type: z.literal('approval.decided'),
  sessionId,
  at: time,
  approvalId,
  turn: ofAnswer,
  index,
  decision: z.enum(['approve', 'deny']),
  by: texts.check(says('the principal; null: not known')),
  note: texts,
})
const budgetWarning = z.strictObject({
  type: z.literal('budget.warning'),
  sessionId: z.null().check(says('it is about the whole run')),
  at: time,
  budgetSeq: count.check(says("how often the run's budget had been changed: each budget is warned of once")),
})

export const event = z.union([
  created,
  started,
  finished,
  reopened,
  turnStarted,
  turnFinished,
  toolResult,
  approvalAsked,
  approvalDecided,
  budgetWarning,
])
/** The last thing in the stream of a run in which nothing goes on. */
export const endOfEvents = z.strictObject({
  status: z.enum(['waiting', 'completed', 'failed', 'cancelled']),
  stopReason,
  round: count,
})

shapes.add(event, { id: 'Event', description: 'The `data` of an event; its `type` is the name of the event too' })
shapes.add(endOfEvents, { id: 'EndOfEvents', description: 'The `data` of the event `end`' })
