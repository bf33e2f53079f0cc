/** Writes by which a session is driven: claim, release, heartbeat, suspend, stop, finish, and a new round of the root. */
import type { SessionRef } from '../domain/run.ts'
import { MONEY, type SessionHeader, TIMER } from '../domain/session.ts'
import type { Claim, Put, Store, Written } from '../ports.ts'
import { decodeHeader, encodeHeader } from './header-codec.ts'
import { sessionKey } from './keys.ts'
import { all, type Clauses, ENDED, type Extras, LIVE, putNew, updateItem } from './statements.ts'
import type { TableClient } from './table-client.ts'
import { encodeAmounts, encodeError, encodeIntent, encodeRows } from './value-codecs.ts'

type SessionWrites = Pick<
  Store,
  | 'putHeader'
  | 'claim'
  | 'release'
  | 'heartbeat'
  | 'suspend'
  | 'unask'
  | 'stop'
  | 'cancelUnclaimed'
  | 'finish'
  | 'reopenRoot'
>

/** I drive it: nobody has claimed it since. */
const MINE = all('#status = :running', '#attempt = :mine')

/** The ways in which nobody drives a session. A wait for all is over when nothing is pending, however it is written. */
const WAYS = [
  ['#status = :queued'],
  ['#status = :running', '#lease < :now'],
  ['#status = :waiting', '#wakeAt < :now'],
  ...['#waitAll', '#pending'].map((absent) => [
    '#status = :waiting',
    'attribute_not_exists(#waitingOn)',
    `attribute_not_exists(${absent})`,
    'attribute_not_exists(#asks)',
  ]),
]
/**
 * Somebody may claim it who read it as it is. A wait that has a time ends by time whatever it waits for, not only an
 * approval: protocol.md asks for the time beside `asks` alone, which would leave a wait for children with a time-out to
 * the children. Written out way by way, without parentheses: the embedded emulator needs 150 ms to read them nested, and
 * 0.2 ms to read this.
 */
const CLAIMABLE = WAYS.map((way) => all('#attempt = :seen', ...way)).join(' OR ')

export function sessionWrites(table: TableClient): SessionWrites {
  const update = (
    ref: SessionRef,
    condition: string,
    clauses: Clauses,
    values: Extras['values'],
  ): Promise<Written<SessionHeader>> => updateItem(table, sessionKey(ref), condition, clauses, { values }, decodeHeader)

  return {
    /** W2 */
    putHeader: (header: SessionHeader): Promise<Put> => putNew(table, encodeHeader(header)),

    /** W3. `attempt = :seen` makes what the claimer read a part of the write: the first intent is computed from it. */
    claim: (ref: SessionRef, claim: Claim): Promise<Written<SessionHeader>> =>
      update(
        ref,
        CLAIMABLE,
        {
          set: [
            '#status = :running',
            '#attempt = #attempt + :one',
            '#driver = :driver',
            '#lease = :lease',
            // a session starts once, however often it is claimed
            '#startedAt = if_not_exists(#startedAt, :now)',
            '#updatedAt = :now',
            ...(claim.first ? ['#first = :first'] : []),
          ],
          // a wait is over when somebody comes; what people were asked, and what they said, stands beside it
          remove: ['#waitingOn', '#waitAll', '#wakeAt', '#asks'],
        },
        {
          ':seen': claim.seenAttempt,
          ':driver': claim.driver,
          ':lease': claim.lease,
          ':now': claim.now,
          ':first': claim.first ? encodeIntent(claim.first) : undefined,
        },
      ),

    /** W4 */
    release: (ref, attempt, to): Promise<Written<SessionHeader>> =>
      update(
        ref,
        MINE,
        {
          set: [
            '#status = :queued',
            '#updatedAt = :now',
            ...(to.continues ? ['#continuations = #continuations + :one'] : []),
          ],
          remove: ['#lease', '#driver'],
        },
        { ':mine': attempt, ':now': to.now },
      ),

    /** W4b */
    heartbeat: (ref, attempt, to): Promise<Written<SessionHeader>> =>
      update(
        ref,
        MINE,
        { set: ['#lease = :lease', '#rows = :rows', '#updatedAt = :now'] },
        { ':mine': attempt, ':lease': to.lease, ':rows': encodeRows(to.rows), ':now': to.now },
      ),

    /**
     * W12. True only of what was read: for all, while anything is pending; for some, while nothing has settled since.
     * It carries the time at which the wait ends by itself, and the own totals as they are known: nobody heartbeats a
     * session that waits, so its figures would stay as old as its last heartbeat.
     */
    async suspend(ref, attempt, until): Promise<Written<SessionHeader>> {
      const { on, wakeAt, rows, closed, now } = until
      const some = typeof on === 'object' && 'ordinals' in on ? on : undefined
      const ordinals = some?.ordinals
      const asks =
        typeof on === 'object' && 'asks' in on
          ? on.asks
          : on === 'time'
            ? [TIMER]
            : on === 'money'
              ? [MONEY]
              : undefined
      if (ordinals?.length === 0 || asks?.length === 0)
        throw new RangeError('a session cannot wait for nothing: give the ordinals or asks it waits for, or `all`')
      if (asks !== undefined && wakeAt === null)
        throw new RangeError('a wait for time, money or an approval needs the time at which it ends')
      return update(
        ref,
        all(
          MINE,
          on === 'all' && 'attribute_exists(#pending)',
          ordinals !== undefined && '#settled = :settled',
          !closed && 'attribute_not_exists(#stop)',
        ),
        {
          set: [
            '#status = :waiting',
            '#waits = #waits + :one',
            '#rows = :rows',
            '#updatedAt = :now',
            ...(on === 'all' ? ['#waitAll = :one'] : []),
            ...(ordinals ? ['#waitingOn = :ordinals'] : []),
            ...(wakeAt === null ? [] : ['#wakeAt = :wakeAt']),
          ],
          remove: ['#lease', '#driver'],
          add: asks === undefined ? [] : ['#asks :asks'],
        },
        {
          ':mine': attempt,
          ':settled': some?.settled,
          ':ordinals': ordinals && new Set(ordinals),
          ':asks': asks && new Set(asks),
          ':rows': encodeRows(rows),
          ':wakeAt': wakeAt ?? undefined,
          ':now': now,
        },
      )
    },

    /** W40. A wait for money is over, since there may be some or nothing is left to wait for; or a question is answered. */
    unask: (ref: SessionRef, now: number, ask = MONEY): Promise<Written<SessionHeader>> =>
      update(
        ref,
        all('#status = :waiting', 'contains(#asks, :ask)'),
        { set: ['#updatedAt = :now'], delete: ['#asks :asks'] },
        { ':ask': ask, ':asks': new Set([ask]), ':now': now },
      ),

    /** W13. A waiting session has nothing left to wait for by it, not even an approval, so that it can be claimed. */
    stop: (ref, { reason, round, now }): Promise<Written<SessionHeader>> =>
      update(
        ref,
        all('attribute_not_exists(#stop)', '#round = :round', LIVE),
        { set: ['#stop = :reason', '#updatedAt = :now'], remove: ['#waitingOn', '#waitAll', '#asks'] },
        { ':reason': reason, ':round': round, ':now': now },
      ),

    /**
     * W13b. A session that nobody ever claimed has an empty log, so it can be ended without closing one; and a claim
     * needs status queued, so nobody can start it afterwards. It saves an invocation for each session that is still
     * queued when a run is cancelled.
     */
    cancelUnclaimed: (ref, { reason, round, now }): Promise<Written<SessionHeader>> =>
      update(
        ref,
        all('#status = :queued', '#attempt = :zero', '#round = :round'),
        {
          set: [
            '#status = :cancelled',
            '#stop = :reason',
            '#stopReason = :reason',
            '#rows = :rows',
            '#unknowns = :unknowns',
            '#finishedAt = :now',
            '#updatedAt = :now',
          ],
        },
        { ':zero': 0, ':round': round, ':reason': reason, ':rows': [], ':unknowns': {}, ':now': now },
      ),

    /**
     * W15. The log is closed and nothing is pending; `round` fences a driver of an earlier round. What the session says
     * of its end is replaced as a whole: nothing of an earlier round's end is left.
     */
    finish(ref, to): Promise<Written<SessionHeader>> {
      const optional = {
        '#error': to.error && encodeError(to.error),
        '#finalTurn': to.finalTurn,
        '#outputPreview': to.outputPreview,
      }
      const given = Object.entries(optional).filter(([, value]) => value !== null)
      return update(
        ref,
        all('#status = :running', 'attribute_not_exists(#pending)', '#round = :round'),
        {
          set: [
            '#status = :status',
            '#stopReason = :stopReason',
            '#rows = :rows',
            '#unknowns = :unknowns',
            '#finishedAt = :now',
            '#updatedAt = :now',
            ...given.map(([name]) => `${name} = :${name.slice(1)}`),
          ],
          remove: [
            '#lease',
            '#driver',
            ...Object.keys(optional).filter((name) => !given.some(([other]) => other === name)),
          ],
        },
        {
          ':round': to.round,
          ':status': to.status,
          ':stopReason': to.stopReason,
          ':rows': encodeRows(to.rows),
          ':unknowns': encodeAmounts(to.unknowns),
          ':now': to.now,
          ...Object.fromEntries(given.map(([name, value]) => [`:${name.slice(1)}`, value])),
        },
      )
    },

    /** A new round of the root; the log goes on behind the slot that closed it. */
    reopenRoot: (ref: SessionRef, seenRound: number, now: number): Promise<Written<SessionHeader>> =>
      update(
        ref,
        all('#round = :seen', ENDED),
        {
          set: [
            '#status = :queued',
            '#round = :next',
            '#updatedAt = :now',
            // the bound of continuations is one of a round
            '#continuationsBefore = #continuations',
          ],
          remove: ['#stop', '#stopReason', '#error', '#finishedAt', '#driver', '#lease'],
        },
        { ':seen': seenRound, ':next': seenRound + 1, ':now': now },
      ),
  }
}
