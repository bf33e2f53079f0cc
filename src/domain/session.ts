import type { Amount } from './money.ts'
import { TEAM_BUDGET } from './pot.ts'
import type { ErrorInfo, Intent, StopReason } from './turn.ts'
import { addBooks, type BookRow, type Books, booksOf } from './usage.ts'

export type SessionStatus = 'queued' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled'
export type TerminalStatus = 'completed' | 'failed' | 'cancelled'
/** `group`: a session without a model between a parent and more than 100 children; hidden outside. */
export type SessionKind = 'root' | 'transfer' | 'background' | 'task' | 'group'

/** What a session decided when it last delegated: one write gives ordinals and money away, this says how. */
export interface Delegation {
  /** the answer whose delegations these are; -1: none yet */
  readonly turn: number
  /** first ordinal */
  readonly from: number
  readonly count: number
  /** money of each funded child */
  readonly share: Amount
  /** how many of them got a share; the others are born with nothing */
  readonly funded: number
}

/** What a parent remembers of a child that settled with unknown calls, to take over corrections by comparison. */
export interface Seen {
  readonly v: number
  readonly books: Books
}

/**
 * The header of a session: the mutable summary of a log that never changes. Under 1 KB, because an update costs the
 * whole item. Absent sets are empty.
 */
export interface SessionHeader {
  readonly tenant: string
  readonly runId: string
  readonly sessionId: string
  readonly parentId: string | null
  /** ordinal among the parent's children; 0 for the root */
  readonly ordinal: number
  /** null: a session without a model (a list of tasks, or a group) */
  readonly agent: string | null
  readonly kind: SessionKind
  readonly depth: number
  /** the run's round in which it was born; the root's grows with the run's */
  readonly round: number
  /** how many changes of the run's limit the root has taken in */
  readonly limitSeq: number
  /** where its task stands: call `index` of answer `turn` of the parent, or place `index` of the input (turn null) */
  readonly via: { readonly turn: number | null; readonly index: number }

  readonly status: SessionStatus
  /** asked to stop, and why */
  readonly stop: StopReason | null
  readonly stopReason: StopReason | null
  readonly error: ErrorInfo | null

  /** number of claims */
  readonly attempt: number
  /** nonce of the invocation that drives it */
  readonly driver: string | null
  /** epoch ms until which the driver may be presumed alive */
  readonly lease: number | null
  /** how often it went on in a new invocation */
  readonly continuations: number
  /** of these, in earlier rounds */
  readonly continuationsBefore: number
  /** how often it lay down to wait */
  readonly waits: number
  /** what it waits for beside children: time, money, or approvals, each by its name */
  readonly asks: ReadonlySet<string>
  /** epoch ms at which a wait ends by itself */
  readonly wakeAt: number | null
  /** how many invocations its subtree may use at once, its own included */
  readonly width: number

  /** money given at birth */
  readonly share: Amount
  /** may be spent on own calls; shrinks only by what the session gives back */
  readonly own: Amount
  /** may be given away; below zero where the limit was lowered, or a call cost more than its hold */
  readonly avail: Amount
  /** how much of what the parent lent it has moved in */
  readonly taken: Amount
  /** lent to children, by ordinal */
  readonly lent: { readonly [ordinal: string]: Amount }
  /** how much it has given back to its parent in all, because it could not go on with it */
  readonly given: Amount
  /** how much of what its children gave back it has taken in, by ordinal */
  readonly returned: { readonly [ordinal: string]: Amount }

  /** next ordinal to give: the watermark */
  readonly next: number
  readonly deleg: Delegation
  /** ordinals of children that have not settled */
  readonly pending: ReadonlySet<number>
  /** ordinals it waits for, while waiting for some */
  readonly waitingOn: ReadonlySet<number>
  /** waits for all that is pending */
  readonly waitAll: boolean
  readonly settled: number
  /**
   * children that have no money and cannot go on without: born with nothing, or given back. They call no model and have
   * no place among those that may run, until a loan takes them out of this set
   */
  readonly needs: ReadonlySet<number>
  /** children below which somebody waits for money: who has some to give looks there too */
  readonly wants: ReadonlySet<number>

  /** own calls by agent, model and outcome; of a running session up to 60 s old */
  readonly rows: readonly BookRow[]
  /** own calls of outcome unknown: the bound of each, by call number */
  readonly unknowns: { readonly [n: string]: Amount }
  /** everything settled into it */
  readonly kids: Books
  /** number of sessions settled into it, groups not counted */
  readonly kidsSessions: number
  readonly seen: { readonly [ordinal: string]: Seen }
  /** version of the totals: raised by every settlement and correction */
  readonly v: number
  /** intent of call 0, when it rode on the claim */
  readonly first: Intent | null

  readonly createdAt: number
  readonly startedAt: number | null
  readonly updatedAt: number
  readonly finishedAt: number | null
  /** first 120 bytes of task and output, on leaves only */
  readonly taskPreview: string | null
  readonly outputPreview: string | null
  /** number of the call whose answer is the session's output */
  readonly finalTurn: number | null
}

export const isTerminal = (h: { readonly status: string }): boolean =>
  h.status === 'completed' || h.status === 'failed' || h.status === 'cancelled'

/** A session of a task of a list. One that was put for the books alone, because it was never born, has no agent. */
export const isTask = (h: Pick<SessionHeader, 'kind' | 'agent'>): boolean => h.kind === 'task' && h.agent !== null

/** Ended because its run's money did not reach: more of it could help. A pot of the team file stays as it is. */
export const isOutOfBudget = (h: SessionHeader): boolean =>
  h.status === 'failed' && h.stopReason === 'budget' && h.error?.code !== TEAM_BUDGET

/** Waits for nothing any more (or its time is up), or was never driven: whoever comes may claim it. */
export const isClaimable = (h: SessionHeader, now: number): boolean =>
  h.status === 'queued' || (h.status === 'waiting' && (isReady(h) || (h.wakeAt !== null && h.wakeAt < now)))

/** What a session asks for that waits for nothing but time: nobody answers it, the clock does. */
export const TIMER = 'timer'
/** What a session asks for that waits for money. */
export const MONEY = 'money'

/** Nothing left to wait for. */
const isReady = (h: SessionHeader): boolean =>
  h.waitingOn.size === 0 && !(h.waitAll && h.pending.size > 0) && h.asks.size === 0

/** Own calls and everything settled: what a settled session reports to its parent. */
export const subtreeBooks = (h: SessionHeader): Books => addBooks(booksOf(h.rows), h.kids)
/** Number of sessions in the subtree, itself included; groups are not counted. */
export const subtreeSessions = (h: SessionHeader): number => h.kidsSessions + (h.kind === 'group' ? 0 : 1)

/**
 * How many of a session's children may run at once. A session that runs, or is about to wake, counts itself; one that
 * waits for everything gives its own place away, since it wakes only when none of them runs any more; one that waits for
 * some, or until some time, keeps its place unless it is the only one. (A wait that ends by its time-out is the one case in
 * which a session of width 1 runs beside a child.)
 */
function childSlots(h: SessionHeader, childWidth: number): number {
  const asleep = h.status === 'waiting' && !isReady(h)
  const places = !asleep ? h.width - 1 : h.waitAll && h.wakeAt === null ? h.width : Math.max(h.width - 1, 1)
  return Math.floor(places / childWidth)
}

/** Pending children that are not held back for want of money. */
export const funded = (h: SessionHeader): number[] => [...h.pending].filter((o) => !h.needs.has(o))

/**
 * The children that may run now: the lowest pending ordinals that have money, as many as there is room for. Derived from
 * the header alone, so width costs no write: whoever changes the header sees whom his change lets in.
 */
export function mayRun(h: SessionHeader, childWidth: number): number[] {
  const slots = childSlots(h, childWidth)
  return slots < 1
    ? []
    : funded(h)
        .sort((a, b) => a - b)
        .slice(0, slots)
}

/** Places that are left for children without money, should there be some for them. */
export const freePlaces = (h: SessionHeader, childWidth: number): number =>
  Math.max(0, childSlots(h, childWidth) - funded(h).length)
