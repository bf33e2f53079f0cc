import type { Amount } from '../domain/money.ts'
import type { Run, SessionRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { AgentDefinition, TeamDefinition } from '../domain/team.ts'
import type { RequestSlot, ResponseSlot, ToolResultSlot, UserMessage } from '../domain/turn.ts'
import type { EngineContext } from './context.ts'
import { taskMessage, taskOf } from './task-of.ts'

/** Everything one driver knows while it drives one session: its claim, and what it last read. */
export interface Drive {
  readonly ctx: EngineContext
  readonly ref: SessionRef
  /** as last read: at the claim, and when it was granted more */
  run: Run
  readonly team: TeamDefinition
  /** null: a list of tasks or a group */
  readonly agent: AgentDefinition | null
  /** this invocation's nonce */
  readonly driver: string
  readonly attempt: number
  readonly startedAt: number
  readonly deadlineAt: number
  /** as last read or written; consistent */
  header: SessionHeader
  /** the log as last read, with what this driver has put since */
  readonly slots: {
    requests: Map<number, RequestSlot>
    responses: Map<number, ResponseSlot>
    results: Map<string, ToolResultSlot>
  }
  /** calls that this driver has made: an intent is called once */
  readonly called: Set<number>
  /** the answer whose children are known to have their headers; -1: none */
  childrenPut: number
  /** when the lease was last written, epoch ms */
  leaseAt: number
  /** number of the slot before which this driver has put its mark, so that no older one puts an intent; -1: none */
  marked: number
  /** what it holds in its pots, as far as this driver knows; null: nothing. By item */
  readonly pots: Map<string, Amount | null>
  /** they are settled: its log is closed */
  potsSettled: boolean
  /** which limit of the run, by its `limitSeq`, is known to be nearly spent; -1: none */
  warnedSeq: number
  /** not before this time, epoch ms: what a provider asked for with its refusal */
  retryAt: number
  /** the first user message, read once */
  task?: UserMessage
}

/** What one step of the loop says: go on, or return from the invocation. */
export type Step = 'again' | 'gone' | 'asleep'

/** Reads the header again, consistently. It must be there: nothing deletes a header of a live run. */
export async function refresh(d: Drive): Promise<SessionHeader> {
  const header = await d.ctx.store.getHeader(d.ref)
  if (!header) throw new Error(`session ${d.ref.sessionId} of run ${d.ref.runId} has lost its header`)
  d.header = header
  return header
}

/** Reads the whole log again: after a claim, and whenever a put was refused. */
export async function reload(d: Drive): Promise<void> {
  const log = await d.ctx.store.readLog(d.ref)
  d.slots.requests = new Map(log.requests)
  d.slots.responses = new Map(log.responses)
  d.slots.results = new Map(log.results)
}

/** The first user message of a session with a model. */
export async function firstMessage(d: Pick<Drive, 'ctx' | 'run' | 'header' | 'task'>): Promise<UserMessage> {
  if (d.task) return d.task
  const task = await taskOf(d.ctx.store, d.run, d.header)
  if (!task) throw new Error(`the task of session ${d.header.sessionId} of run ${d.run.runId} is not in the table`)
  d.task = { role: 'user', content: taskMessage(task) }
  return d.task
}

export const now = (d: Pick<Drive, 'ctx'>): number => d.ctx.clock.now()

/** Time kept free at the end of an invocation for the last writes, at most. */
const LAST_WRITES_MS = 5_000
/** Time that a model call should have before it, at most; with less the session goes on in a new invocation. */
const CALL_TIME_MS = 120_000

/** When a model call must be broken off so that its outcome can still be written. */
export const callDeadline = (d: Pick<Drive, 'startedAt' | 'deadlineAt'>): number =>
  d.deadlineAt - Math.min(LAST_WRITES_MS, (d.deadlineAt - d.startedAt) / 10)

export const nearDeadline = (d: Drive): boolean =>
  d.deadlineAt - now(d) < Math.min(CALL_TIME_MS, (d.deadlineAt - d.startedAt) / 4)

/** A lease never reaches far beyond the invocation's own deadline, and is never over already. */
export const leaseUntil = (at: number, leaseMs: number, deadlineAt: number): number =>
  Math.max(at + 1_000, Math.min(at + leaseMs, deadlineAt + LAST_WRITES_MS))
