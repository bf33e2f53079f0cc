import type { Amount } from '../domain/money.ts'
import type { Run, RunRef, SessionRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { EndOfRun, Written } from '../ports.ts'

/** How money moves in a run: down to those who need it, back to where others can have it, and in where a limit is raised. */
export interface MoneyStore {
  /** W18. `place`: the child takes a place as well, beside what is said here of the parent as it was read */
  lend(
    parent: SessionRef,
    ordinal: number,
    seenLent: Amount | null,
    more: Amount,
    place?: { avail: Amount; next: number; attempt: number },
  ): Promise<Written<SessionHeader>>
  /** W19 */
  takeLoan(ref: SessionRef, seenTaken: Amount, lent: Amount, into: 'own' | 'avail'): Promise<Written<SessionHeader>>
  /** W20 */
  raiseOwn(ref: SessionRef, seenOwn: Amount, more: Amount): Promise<Written<SessionHeader>>
  /** W36: the child is held back for want of money, or somebody below it waits for some */
  need(parent: SessionRef, ordinal: number, into: 'needs' | 'wants'): Promise<Written<SessionHeader>>
  /**
   * W37: `given` in all from now on; `avail` is what comes out of what it may give, `own` what becomes of its own.
   * Attempt 0: of a session that was never claimed
   */
  giveBack(
    ref: SessionRef,
    from: {
      seenGiven: Amount
      given: Amount
      avail: Amount
      own: { seen: Amount; to: Amount; attempt: number } | null
    },
  ): Promise<Written<SessionHeader>>
  /** W38: `needs`: the child is held back from now on */
  takeBack(
    parent: SessionRef,
    ordinal: number,
    seenReturned: Amount | null,
    given: Amount,
    needs: boolean,
  ): Promise<Written<SessionHeader>>
  /** W39 */
  takeLimit(
    root: SessionRef,
    seenSeq: number,
    to: { seq: number; limit: Amount; more: Amount; now: number },
  ): Promise<Written<SessionHeader>>
  /** W40: a wait for money is over, or `ask` is answered */
  unask(ref: SessionRef, now: number, ask?: string): Promise<Written<SessionHeader>>
  /**
   * W41: `resume`: a run that waits for its budget goes on in a new round; `raised`: one that runs has more from now on;
   * `dueAt`: of one that has ended, so that the sweep sees to the rest where the caller dies
   */
  changeLimit(
    ref: RunRef,
    to: {
      seen: Pick<Run, 'limit' | 'limitSeq' | 'status' | 'round' | 'inputRound'>
      limit: Amount
      resume: { dueAt: number } | null
      raised?: boolean
      dueAt?: number
      now: number
    },
  ): Promise<Written<Run>>
  /** W43: the run's limit, named by its `budgetSeq`, is nearly spent; not written where that is known, or it has another */
  warnBudget(ref: RunRef, budgetSeq: number, now: number): Promise<Written<Run>>
  /** W42 */
  failWaiting(ref: RunRef, seenRound: number, to: EndOfRun): Promise<Written<Run>>
}
