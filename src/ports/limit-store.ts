import type { Amount } from '../domain/money.ts'
import type { Grant, Shortage } from '../domain/outer-limit.ts'
import type { Run, RunRef, SessionRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { Put, Written } from '../ports.ts'

/** A limit over time: of a UTC day (`2026-11-30`) or month (`2026-11`) of a tenant; `name` says of whom, and may be any text. */
export interface PeriodRef {
  readonly tenant: string
  readonly period: string
  readonly name: string
}

/** A limit that many share. */
export type LimitRef =
  | PeriodRef
  /** a pot of one run */
  | (RunRef & { readonly pot: string })

/** What one holder holds. */
export interface Hold extends Amount {
  /** orders the holder's own writes; left out: it does not number them */
  readonly seq?: number
  /** the holder waits for more: nothing of this comes back by itself */
  readonly waits?: true
}

/** What is left of it: limit = spent + held + available, at every look. */
export interface SharedLimit {
  readonly limit: Amount
  /** may go below zero where the limit was lowered, or where a call cost more than was held for it */
  readonly avail: Amount
  readonly spent: Amount
  /** by holder: a run, or a session, as its user names them */
  readonly held: { readonly [holder: string]: Hold }
  /** rises with every hold that is settled */
  readonly v: number
}

/** W26: holds on limits that many share, and what they grant to a run. Each write is one conditional write on one item; every read is consistent. */
export interface LimitStore {
  getLimit(ref: LimitRef): Promise<SharedLimit | undefined>
  /** nothing spent, nothing held */
  putLimit(ref: LimitRef, limit: Amount): Promise<Put>
  /** another limit from now on, if it still is what was seen */
  moveLimit(ref: LimitRef, seen: Amount, limit: Amount): Promise<Written<SharedLimit>>
  /**
   * The holder holds `hold` in all from now on, if what it held is what was seen (null: nothing), no hold has been settled
   * since, and as much more is available. One that shrinks asks for nothing.
   */
  hold(ref: LimitRef, holder: string, seen: HoldSeen, hold: Hold): Promise<Written<SharedLimit>>
  /**
   * The holder holds nothing any more and has spent `spent`; the rest is available. Where it holds nothing (null) only `v`
   * rises, so that no late hold of it is written any more.
   */
  settleHold(ref: LimitRef, holder: string, seen: Hold | null, spent: Amount): Promise<Written<SharedLimit>>

  /**
   * W26b: what a run notes before it holds, and what it is granted when it does; `due` when the sweep looks at it next (at
   * null: never), where that changes
   */
  moveGrants(
    ref: RunRef,
    seen: Pick<Run, 'limitSeq' | 'status' | 'round'>,
    to: {
      granted: Amount
      grants: readonly Grant[]
      short?: Shortage | null
      due?: { at: number | null }
      now: number
    },
  ): Promise<Written<Run>>
  /** W26c: an ended root gives up what it has not spent */
  giveUp(
    root: SessionRef,
    from: { seenGiven: Amount; given: Amount; seenOwn: Amount; own: Amount; avail: Amount },
  ): Promise<Written<SessionHeader>>
}

/** What was read of a limit by whoever wants to hold something of it. */
export interface HoldSeen {
  readonly hold: Hold | null
  readonly v: number
}
