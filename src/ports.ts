/**
 * Read this first. The outside world of the engine, as small interfaces.
 *
 * - **run**: one execution of a team: one partition of the table, one budget, one tree of sessions
 * - **session**: one agent's conversation inside a run; a **sub-session** was started by another session, its parent
 * - **turn**: one model call and what came of it: a request and its outcome, two numbered slots of the session's **log**
 * - **intent**: the write-ahead record of a call, put before it
 * - **hold**: the most a call may cost, set aside until its outcome is known
 * - **driver**: an invocation that drives a session; its **nonce** tells its writes from those of others
 * - **attempt**: one claim of a session; **lease**: until when the driver may be presumed alive
 * - **settle**: the one conditional write by which a finished sub-session reports to its parent
 * - **sweep**: the scheduled pass that finds what nobody is driving any more
 *
 * Outcomes that are expected are values; only faults throw. `written: false` means that the condition did not hold: read
 * the item consistently and go by what it says (it may also be the caller's own write whose first answer was lost).
 */
import type { Amount } from './domain/money.ts'
import type { RetryInput, Run, RunInput, RunRef, RunStatus, SessionRef, TaskInput } from './domain/run.ts'
import type { Schedule } from './domain/schedule.ts'
import type { Seen, SessionHeader, TerminalStatus } from './domain/session.ts'
import type { TeamDefinition } from './domain/team.ts'
import type { End, ErrorInfo, Intent, ResponseSlot, StopReason } from './domain/turn.ts'
import type { BookRow, Books } from './domain/usage.ts'
import type { ApprovalStore } from './ports/approval-store.ts'
import type { IdempotencyStore } from './ports/idempotency-store.ts'
import type { LimitStore } from './ports/limit-store.ts'
import type { LogStore } from './ports/log-store.ts'
import type { MoneyStore } from './ports/money-store.ts'
import type { PlaceStore } from './ports/place-store.ts'
import type { ScheduleRef, ScheduleStore } from './ports/schedule-store.ts'
import type { UsageStore } from './ports/usage-store.ts'

export type * from './ports/model.ts'
export type { OuterLimits } from './ports/outer-limits.ts'
export type { AskedModel, Prices } from './ports/prices.ts'

export interface Clock {
  /** epoch ms */
  now(): number
  /** resolves after `ms`, or at once when the signal aborts */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The end of a run that has nobody who works on it. */
export interface EndOfRun {
  readonly now: number
  /** epoch s; left out: it is kept for ever */
  readonly expiresAt?: number | undefined
}

export interface Ids {
  /** a ULID: sorts by the time given */
  runId(now: number): string
  /** 16 random characters: names one driver, one input */
  nonce(): string
}

/** Structured log lines. No secrets, no bodies. */
export interface Logger {
  info(message: string, fields?: object): void
  warn(message: string, fields?: object): void
  error(message: string, fields?: object): void
}

/** Figures for whoever watches. They are no books: a crash may lose or double them. */
export interface Metrics {
  /** what a round has spent that has just finished; models by `provider/model`, `at` in epoch ms */
  roundFinished(round: { tenant: string; team: string; rows: readonly BookRow[]; at: number }): void
  /** 80 per cent of a run's limit are spent, `at` in epoch ms */
  budgetWarned(run: { tenant: string; team: string; runId: string; at: number }): void
}

/** Starts a worker for a session, asynchronously: at least once, at any time, in any order. A hint, never a fact. */
export interface Invoker {
  invoke(ref: SessionRef): Promise<void>
}

/** The teams that can be run. */
export interface Teams {
  list(): Promise<readonly { name: string; description: string }[]>
  /** @throws SubledgerError unknown_team, or bad_team with the places that are wrong */
  get(name: string): Promise<TeamDefinition>
}

/** Schedules whose definitions stand in a file. */
export interface Schedules {
  list(tenant: string): Promise<readonly Schedule[]>
  get(ref: ScheduleRef): Promise<Schedule | undefined>
}

/** A conditional update's outcome, with the item as it is after the write. */
export type Written<T> = { readonly written: true; readonly item: T } | { readonly written: false }
export type Put = 'written' | 'already'

export interface Page<T> {
  readonly items: readonly T[]
  /** give it back to go on; absent: there is no more */
  readonly next?: string
}

/** What settles into a parent: the child's totals, and the money that comes back. */
export interface Settlement {
  readonly ordinal: number
  readonly books: Books
  readonly sessions: number
  /** what the parent had lent it, as read; null: nothing */
  readonly lent: Amount | null
  /** what the parent had taken back from it, as read; null or left out: nothing */
  readonly returned?: Amount | null
  readonly back: Amount
  /** set when the subtree has unknown calls: what the parent remembers */
  readonly seen: Seen | null
}

/** What a slot says for the books, without its texts. */
export type BookSlot = { readonly sessionId: string; readonly n: number } & (
  | { readonly request: { readonly intent?: Intent; readonly end?: End } }
  | { readonly response: ResponseSlot }
  /** it cannot be read: what is wrong with it */
  | { readonly fault: string }
)

/** What a claim asks for. */
export interface Claim {
  readonly seenAttempt: number
  readonly driver: string
  readonly now: number
  readonly lease: number
  /** intent of call 0; only for a session that was never claimed */
  readonly first: Intent | null
}

/**
 * The books. One method per write of docs/protocol.md (its number is given), each one conditional write on one item.
 * Reads that decide anything are consistent.
 */
export interface Store
  extends LogStore,
    UsageStore,
    IdempotencyStore,
    ScheduleStore,
    PlaceStore,
    MoneyStore,
    ApprovalStore,
    LimitStore {
  // ---- the run
  /** before W1; the same text under the same hash */
  putDefinition(ref: RunRef, hash: string, definition: TeamDefinition): Promise<void>
  getDefinition(ref: RunRef, hash: string): Promise<TeamDefinition | undefined>
  /** before W1 and before a new round */
  putInput(ref: RunRef, round: number, inputRef: string, input: RunInput | RetryInput): Promise<void>
  getInput(ref: RunRef, round: number, inputRef: string): Promise<RunInput | RetryInput | undefined>
  /** one task of a list, without reading the others' chunks */
  getTask(ref: RunRef, round: number, inputRef: string, index: number): Promise<TaskInput | undefined>
  /** the GROUP_SIZE tasks (or what there is) of the chunk in which task `first` stands */
  getTasks(ref: RunRef, round: number, inputRef: string, first: number): Promise<readonly TaskInput[]>
  /** W1 */
  createRun(run: Run): Promise<Put>
  /** undefined also for a run that is gone, though its items are there; with `gone` that one too */
  getRun(ref: RunRef, options?: { consistent?: boolean; gone?: boolean }): Promise<Run | undefined>
  /** RUN and all headers, as one query; eventually consistent, for reading only */
  getRunWithSessions(ref: RunRef): Promise<{ run: Run | undefined; headers: readonly SessionHeader[] }>
  /** newest first */
  listRuns(
    tenant: string,
    options: { limit: number; after?: string; status?: RunStatus; team?: string },
  ): Promise<Page<Run>>
  /** runs of one shard of the due index (0 ≤ shard < DUE_SHARDS) whose time has come, earliest first */
  dueRuns(shard: number, now: number, options: { limit: number; after?: string }): Promise<Page<RunRef>>
  /** W14 */
  cancelRun(ref: RunRef, to: EndOfRun): Promise<Written<Run>>
  /** W17 */
  finishRun(
    ref: RunRef,
    to: {
      round: number
      /** `waiting`: for its budget to be raised */
      status: TerminalStatus | 'waiting'
      stopReason: StopReason
      error: ErrorInfo | null
      books: Books
      sessions: number
      v: number
      /** when the root ended, epoch ms: names the round's usage item, which was put before */
      reportedAt: number
      /** null: nothing is unknown, the sweep need not look again */
      dueAt: number | null
      /** epoch seconds from which on the run is gone; left out: it is kept */
      expiresAt?: number
      /** under limits outside of it: as what it holds of them was read */
      seenLimitSeq?: number
      now: number
    },
  ): Promise<Written<Run>>
  /** W23 */
  correctRun(ref: RunRef, seenV: number, to: { v: number; books: Books; now: number }): Promise<Written<Run>>
  /** W24. `next`: when it is looked at again; left out: never */
  undueRun(ref: RunRef, seen: { v: number; dueAt: number }, next?: number): Promise<Written<Run>>
  /** W25: of a run that is as it was seen */
  pushDue(ref: RunRef, seen: Pick<Run, 'dueAt' | 'updatedAt'>, dueAt: number): Promise<Written<Run>>
  /** opens round `seenRound + 1` of an ended run, with an input or to try again (then its last input stays) */
  openRound(
    ref: RunRef,
    to: {
      seenRound: number
      seenExpiresAt?: number | null
      dueAt: number
      now: number
    } & ({ inputRef: string } | { retryRef: string; inputRound: number }),
  ): Promise<Written<Run>>
  /** an ended run is gone at once; what it has written is removed when it is due */
  deleteRun(ref: RunRef, to: { dueAt: number; now: number }): Promise<Written<Run>>
  /**
   * Removes up to `limit` items of a run that is gone, the run's own last.
   * @returns how many it has removed, and whether that was all
   */
  purgeRun(run: Run, limit: number): Promise<{ removed: number; done: boolean }>

  // ---- session headers
  /** W2 */
  putHeader(header: SessionHeader): Promise<Put>
  getHeader(ref: SessionRef, options?: { consistent?: boolean }): Promise<SessionHeader | undefined>
  /** all headers of a run, in the order of their keys; groups included */
  listHeaders(
    ref: RunRef,
    options: { limit?: number; after?: string; consistent?: boolean },
  ): Promise<Page<SessionHeader>>
  /** W3 */
  claim(ref: SessionRef, claim: Claim): Promise<Written<SessionHeader>>
  /** W4; `continues`: it goes on in a new invocation by its own decision, and this is counted */
  release(ref: SessionRef, attempt: number, to: { continues: boolean; now: number }): Promise<Written<SessionHeader>>
  /** W4b */
  heartbeat(
    ref: SessionRef,
    attempt: number,
    to: { lease: number; rows: readonly BookRow[]; now: number },
  ): Promise<Written<SessionHeader>>
  /**
   * W12: `all`: while anything is pending; some: while nothing has settled since the read; `time`: until `wakeAt`;
   * `money`: until somebody takes the question off (W40), or `wakeAt`; `asks`: until all of these are taken off (W40), or
   * `wakeAt`
   */
  suspend(
    ref: SessionRef,
    attempt: number,
    until: {
      on: 'all' | 'time' | 'money' | { ordinals: readonly number[]; settled: number } | { asks: readonly string[] }
      wakeAt: number | null
      rows: readonly BookRow[]
      /** the log is closed: a stop no longer matters */
      closed: boolean
      now: number
    },
  ): Promise<Written<SessionHeader>>
  /** W13; `round`: only in this round of the run, so that a late cancel does not reach into the next */
  stop(ref: SessionRef, to: { reason: StopReason; round: number; now: number }): Promise<Written<SessionHeader>>
  /** W13b: ends a session that nobody has ever claimed, whose log is therefore empty */
  cancelUnclaimed(
    ref: SessionRef,
    to: { reason: StopReason; round: number; now: number },
  ): Promise<Written<SessionHeader>>
  /** W15 */
  finish(
    ref: SessionRef,
    to: {
      round: number
      status: TerminalStatus
      stopReason: StopReason
      error: ErrorInfo | null
      rows: readonly BookRow[]
      unknowns: { readonly [n: string]: Amount }
      finalTurn: number | null
      outputPreview: string | null
      now: number
    },
  ): Promise<Written<SessionHeader>>
  /** a new round of the root: `round = :e` and terminal */
  reopenRoot(ref: SessionRef, seenRound: number, now: number): Promise<Written<SessionHeader>>

  // ---- delegation, settlement, money
  /** W11 */
  delegate(
    ref: SessionRef,
    to: {
      /** only in this round of the session, so that a driver of an earlier one gives nothing away in it */
      round: number
      turn: number
      from: number
      count: number
      share: Amount
      funded: number
      /** ordinals of those among them that are held back until there is money for them */
      needs?: readonly number[]
      now: number
    },
  ): Promise<Written<SessionHeader>>
  /** W16 */
  settle(parent: SessionRef, settlement: Settlement, now: number): Promise<Written<SessionHeader>>
  /** W21 */
  correctOwn(
    ref: SessionRef,
    seenV: number,
    n: number,
    rows: readonly BookRow[],
    now: number,
  ): Promise<Written<SessionHeader>>
  /** W22 */
  correctParent(
    parent: SessionRef,
    ordinal: number,
    seenV: number,
    to: { seen: Seen; difference: Books; back: Amount; now: number },
  ): Promise<Written<SessionHeader>>

  // ---- beside the runs
  /** epoch ms until which a team's model is not to be called, because its provider asked for a pause; may be stale */
  getCoolDown(tenant: string, team: string, model: string): Promise<number | undefined>
  /** prolongs it; never shortens it */
  coolDown(tenant: string, team: string, model: string, until: number): Promise<void>
}
