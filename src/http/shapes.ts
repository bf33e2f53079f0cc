/**
 * What the API answers with, each shape once: the types of the views are inferred from here, and the OpenAPI document is
 * made of it. Nothing is checked with these while a request is answered.
 */
import * as z from 'zod/mini'
import { ERRORS, type ErrorCode } from '../domain/errors.ts'
import type { StopReason } from '../domain/turn.ts'
import { schedule, schedules } from './schedule-shapes.ts'
import {
  asOf,
  count,
  errorInfo,
  maybeMoney,
  maybeTime,
  money,
  next,
  runId,
  says,
  sessionId,
  text,
  texts,
  time,
} from './shape-parts.ts'

export { schedule, schedules }

/** Schemas with the name that they have in the document. */
export const shapes = z.registry<{ id: string; description?: string }>()

/** What a shape says of an answer. */
export type Answer<S extends z.ZodMiniType> = Readonlys<z.infer<S>>
type Readonlys<T> = T extends readonly (infer E)[]
  ? readonly Readonlys<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Readonlys<T[K]> }
    : T

const STOP_REASONS = [
  ...(['end_turn', 'max_iterations', 'max_tokens', 'budget', 'content_filter', 'refusal', 'error'] as const),
  ...(['timeout', 'cancelled', 'parent_ended', 'max_attempts', 'max_continuations', 'approval', 'children'] as const),
] satisfies readonly StopReason[]
export const stopReason = z.nullable(z.enum(STOP_REASONS))

export const usage = z.strictObject({
  calls: count,
  inputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  outputTokens: count,
  reasoningTokens: count,
})
const priced = {
  usage,
  costUsd: money.check(says('the priced part, always a number')),
  costComplete: z.boolean().check(says('false: calls without a known price are among them')),
}
export const figures = z.strictObject(priced)
const waste = z.strictObject({ calls: count, ...priced })

export const price = z.strictObject({
  input: money,
  output: money,
  cacheRead: maybeMoney,
  cacheWrite: maybeMoney,
  cacheWrite1h: maybeMoney,
  source: texts.check(says('`team file`, or the price list with its version and date')),
})

export const budget = z.strictObject({
  usd: maybeMoney,
  tokens: z.nullable(count),
  heldUsd: maybeMoney,
  availableUsd: maybeMoney,
  warnedAt: maybeTime.check(says('when 80 per cent of the limit were found to be spent; null: not yet')),
})

export const run = z.strictObject({
  runId,
  team: text,
  agent: texts.check(says('the first agent; null for a list of tasks')),
  status: z.enum(['running', 'waiting', 'completed', 'failed', 'cancelled']),
  stopReason,
  round: count,
  input: texts.check(says("the round's input; null for a list of tasks, and in lists")),
  tasks: z.nullable(count).check(says('number of tasks; null: the run has an input')),
  output: texts.check(says("the root's answer once the round has ended; null in lists")),
  error: errorInfo,
  rootSessionId: sessionId,
  ...priced,
  unpricedCalls: count,
  warnings: z.nullable(z.array(text)).check(says('models without a known price, in words; null in lists')),
  waste: waste.check(says('paid for, but no part of a transcript; contained in usage and costUsd')),
  unknown: waste.check(says('calls of which no answer is known, at their upper bounds; contained in no other figure')),
  budget: z.nullable(budget),
  sessions: z
    .nullable(
      z.strictObject({
        total: count,
        queued: count,
        running: count,
        waiting: count,
        completed: count,
        failed: count,
        cancelled: count,
      }),
    )
    .check(says('sessions by status; null in lists')),
  maxConcurrency: count,
  tags: z.record(text, text),
  createdAt: time,
  updatedAt: time,
  asOf,
  cancelRequestedAt: maybeTime,
  finishedAt: maybeTime,
})

export const approval = z.strictObject({
  approvalId: text.check(says('opaque')),
  sessionId,
  tool: text,
  arguments: text.check(says('as the model wrote them')),
  askedAt: time,
  decision: z
    .nullable(
      z.strictObject({
        decision: z.enum(['approve', 'deny']),
        by: texts.check(says('who decided; null where nobody need say who they are')),
        at: time,
        note: texts,
      }),
    )
    .check(says('null: nobody has decided')),
})

export const session = z.strictObject({
  sessionId,
  runId,
  parentSessionId: z.nullable(sessionId),
  kind: z.enum(['root', 'transfer', 'background', 'task']),
  ordinal: count.check(says("its place among the parent's children, or in the list of tasks")),
  agent: texts.check(says('null: the root of a list of tasks, which calls no model')),
  model: texts.check(says('provider/model')),
  task: texts.check(says("a preview or null in lists, whole in the session's own route")),
  expectedOutput: z.optional(text),
  status: z.enum(['queued', 'running', 'waiting', 'completed', 'failed', 'cancelled']),
  stopReason,
  output: texts.check(says("a preview or null in lists, whole in the session's own route")),
  error: errorInfo,
  approvals: z
    .nullable(z.array(approval))
    .check(says('tool calls that somebody was asked about, the last 100; null in lists')),
  attempt: count,
  depth: count,
  ...priced,
  subtree: z.strictObject({ ...priced, sessions: count }).check(says('the session and everything below it')),
  createdAt: time,
  startedAt: maybeTime,
  asOf,
  finishedAt: maybeTime,
})

export const contentPart = z.strictObject({ type: z.enum(['text', 'reasoning']), text })

export const message = z.strictObject({
  turn: count,
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.union([text, z.array(contentPart)]).check(says('parts are used where an answer holds more than text')),
  toolCalls: z.optional(z.array(z.strictObject({ id: text, name: text, arguments: text }))),
  toolCallId: z.optional(text),
  toolName: z.optional(text),
  isError: z.optional(z.literal(true)),
  createdAt: time,
})

export const call = z.strictObject({
  sessionId,
  turn: count,
  attempt: count,
  agent: text,
  provider: texts,
  model: text.check(says("the provider's id of the model")),
  answeredBy: texts.check(says('the model that answered, where the provider names another one')),
  outcome: z.enum(['accepted', 'failed', 'duplicate', 'unknown']),
  cause: texts.check(says('why it failed, was lost or is waste')),
  usage: z.extend(usage, { cacheWrite1hTokens: count }),
  usageSource: z.enum(['reported', 'partial', 'estimated']),
  costUsd: maybeMoney.check(says('null: no price is known. Of an unknown outcome: the upper bound')),
  overHold: maybeMoney.check(
    says('by how much it cost more than was set aside for it; 0: only its tokens were more; null: it kept within'),
  ),
  price: z.nullable(price).check(says('what costUsd follows from, with usage alone')),
  responseId: texts,
  startedAt: time,
  durationMs: count,
})

const byName = z.record(text, figures)
export const books = z.strictObject({ total: figures, byAgent: byName, byModel: byName, byOutcome: byName })

const cost = z.strictObject({
  input: money,
  output: money,
  cacheRead: z.optional(money),
  cacheWrite: z.optional(money),
  cacheWrite1h: z.optional(money),
})
export const model = z.strictObject({
  provider: text,
  model: text,
  cost: z.nullable(cost).check(says('USD per million tokens: what a small prompt costs now; null: no price is known')),
  priceSource: texts,
})
const agent = z.strictObject({
  name: text,
  description: text,
  model: text,
  subAgents: z.array(text),
  toolsets: z.array(text),
  maxIterations: z.nullable(count),
})
export const team = z.strictObject({
  name: text,
  description: text,
  agents: z.array(agent).check(says("the first one is the run's first agent unless another is asked for")),
  models: z.record(text, model),
})

const spendFigures = { ...priced, unpricedCalls: count, unknown: waste }
export const spend = z.strictObject({
  from: text,
  to: text,
  groupBy: z.array(text),
  total: z.strictObject(spendFigures),
  rows: z.array(
    z.strictObject({
      group: z.record(text, texts).check(says('by the names in groupBy; null: a run without that tag')),
      ...spendFigures,
    }),
  ),
})

export const audit = z.strictObject({
  runId,
  status: run.shape.status,
  balanced: z.boolean().check(says('nothing differs')),
  checked: z.strictObject({ calls: count, sessions: count, usageItems: count }),
  live: count.check(says('sessions that have not ended: their totals are not final, so they are not compared')),
  differing: count.check(says('how many numbers differ; the first 1,000 of them are listed')),
  differences: z.array(
    z.strictObject({
      sessionId: texts.check(says('null: the run as a whole')),
      turn: z.nullable(count),
      field: text,
      found: text,
      expected: text,
      message: text,
    }),
  ),
})

export const receipts = z.strictObject({
  settled: count.check(says('calls that are no longer unknown by it')),
  receipts: z.array(
    z.strictObject({
      result: z.enum(['settled', 'known', 'no_call', 'ambiguous']),
      sessionId: texts,
      turn: z.nullable(count),
      costUsd: maybeMoney,
      detail: text,
    }),
  ),
})

export const runs = z.strictObject({ runs: z.array(run), next })
export const sessions = z.strictObject({ sessions: z.array(session), next })
export const approvals = z.strictObject({ approvals: z.array(approval), next })
export const messages = z.strictObject({ messages: z.array(message), next })
export const calls = z.strictObject({ calls: z.array(call), next })
export const teams = z.strictObject({ teams: z.array(z.strictObject({ name: text, description: text })) })
export const health = z.strictObject({ status: z.literal('ok') })

const codes = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]
/** The one form of everything that is refused or goes wrong (RFC 9457). */
export const problem = z.strictObject({
  type: text.check(says('urn:subledger:error:<code>')),
  title: text,
  status: z.int(),
  code: z.enum(codes),
  detail: text.check(says('what is wrong, where, and what to do')),
  errors: z.optional(z.array(z.strictObject({ path: text, message: text }))),
})

for (const [id, shape, description] of [
  ['Usage', usage, 'Token counts'],
  ['Figures', figures, 'Usage with its money'],
  ['Waste', waste, 'Figures of calls that are in no transcript'],
  ['Price', price, 'USD per million tokens; a rate that is not known is null'],
  ['Budget', budget, 'usd = costUsd + unknown.costUsd + heldUsd + availableUsd, at every look'],
  ['Run', run, 'One execution of a team'],
  ['Approval', approval, 'A tool call that somebody is asked about'],
  ['Session', session, "One agent's conversation inside a run"],
  ['Message', message, 'A message of a transcript. Only accepted answers are part of it'],
  ['Call', call, 'One model call, whatever came of it'],
  ['Books', books, 'The books of a run, cut three ways'],
  ['Team', team, 'Who is in a team, and what its models cost'],
  ['SpendReport', spend, 'What finished rounds have spent'],
  ['Audit', audit, "Whether a run's books balance"],
  ['Receipts', receipts, 'What came of each receipt, in their order'],
  ['Schedule', schedule, 'When runs start by themselves'],
  ['Schedules', schedules, 'All schedules'],
  ['Runs', runs, 'A page of runs, newest first'],
  ['Approvals', approvals, 'A page of approvals'],
  ['Sessions', sessions, 'A page of sessions'],
  ['Messages', messages, 'A page of a transcript'],
  ['Calls', calls, 'A page of model calls'],
  ['Teams', teams, 'What can be run'],
  ['Health', health, 'It answers'],
  ['Problem', problem, 'Why a request was refused'],
] as const)
  shapes.add(shape, { id, description })
