import type { Amount } from './money.ts'
import type { Grant, Shortage } from './outer-limit.ts'
import type { ErrorInfo, StopReason } from './turn.ts'
import type { Books } from './usage.ts'

export type RunStatus = 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled'

/** Identifies a run. Every store method takes one: no key without a tenant. */
export interface RunRef {
  readonly tenant: string
  readonly runId: string
}

/** Identifies a session; the payload of a worker's event. */
export interface SessionRef extends RunRef {
  readonly sessionId: string
}

/** The run's own item. Under 1 KB; bodies stand beside it. */
export interface Run extends RunRef {
  readonly team: string
  /** the first agent; null for a list of tasks */
  readonly agent: string | null
  /** hash of the frozen team definition */
  readonly definition: string
  readonly status: RunStatus
  readonly stop: StopReason | null
  readonly stopReason: StopReason | null
  readonly error: ErrorInfo | null
  readonly round: number
  /** names the last input: `INPUT#<inputRound>#<inputRef>` */
  readonly inputRef: string
  /** the round that began with it; later ones go on without a new input, because the limit was raised */
  readonly inputRound: number
  /** the last round that was opened to try again what had not been completed, and the name of who asked for it */
  readonly retry: { readonly round: number; readonly ref: string } | null
  /** number of tasks; null: the run has an input and a root agent */
  readonly tasks: number | null
  readonly maxConcurrency: number
  readonly limit: Amount
  /** what limits outside of it let it have, in all rounds together; null: there are none. UNLIMITED: none of this kind */
  readonly granted: Amount | null
  /** what it holds of them, or is about to */
  readonly grants: readonly Grant[]
  /** why it has stopped, where one of them has too little left */
  readonly short: Shortage | null
  /** raised with every change of the limit, and of what is granted */
  readonly limitSeq: number
  /** the round in which the limit was raised last while it ran: a refusal of that round may have come before; null: none */
  readonly raisedRound: number | null
  /** raised with every change of the limit itself, which names it */
  readonly budgetSeq: number
  /** when it was found that 80 per cent of the limit were spent, epoch ms, and of which limit, by its `budgetSeq` */
  readonly budgetWarned: { readonly at: number; readonly budgetSeq: number } | null
  /** totals as of the last finished round; version `v` of the root's */
  readonly books: Books
  /** number of sessions as of the last finished round */
  readonly sessions: number
  readonly v: number
  /** when the root of the last finished round had ended, epoch ms: names that round's usage item; null: none yet */
  readonly reportedAt: number | null
  readonly tags: { readonly [key: string]: string }
  /** when the sweep looks at it next, epoch ms; null: never again */
  readonly dueAt: number | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly cancelRequestedAt: number | null
  readonly finishedAt: number | null
  /** epoch seconds from which on the run is gone: no read finds it, and the sweep removes what it has written */
  readonly expiresAt: number | null
}

export interface TaskInput {
  readonly agent: string
  readonly task: string
  readonly expectedOutput?: string
}

/** Whether the run was deleted, or its time is over. */
export const isGone = (run: Pick<Run, 'expiresAt'>, now: number): boolean =>
  run.expiresAt !== null && run.expiresAt * 1000 <= now

/** The `inputRef` of round 1, whose input is put once, before the run. Later rounds name theirs by a nonce. */
export const FIRST_INPUT_REF = '0'.repeat(16)

/** What a run starts from. */
export type RunInput = { readonly input: string } | { readonly tasks: readonly TaskInput[] }
/** What a round of a list starts from that tries again: places of tasks in the list, in order. */
export interface RetryInput {
  readonly retry: readonly number[]
}

/**
 * Whether a run that waits for its budget was given more while it came to an end: whoever refused its last call may not
 * have known of that, so it has one more round.
 */
export const wasRaised = (run: Pick<Run, 'status' | 'round' | 'raisedRound'>): boolean =>
  run.status === 'waiting' && run.raisedRound === run.round
