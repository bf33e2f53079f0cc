/** Writes of the run's own item. */
import { same } from '../domain/money.ts'
import type { Run, RunRef } from '../domain/run.ts'
import type { Put, Store, Written } from '../ports.ts'
import { dueShard, runKey } from './keys.ts'
import { decodeRun, encodeRun, ttlOf } from './run-codec.ts'
import { all, type Clauses, ENDED, type Extras, putNew, updateItem } from './statements.ts'
import type { TableClient } from './table-client.ts'
import { encodeBooks, encodeError } from './value-codecs.ts'

type RunWrites = Pick<
  Store,
  | 'createRun'
  | 'cancelRun'
  | 'finishRun'
  | 'correctRun'
  | 'undueRun'
  | 'pushDue'
  | 'openRound'
  | 'changeLimit'
  | 'failWaiting'
  | 'warnBudget'
  | 'deleteRun'
>

const NOT_DUE = ['#dueAt', '#dueShard']
const DUE = ['#dueAt = :dueAt', '#dueShard = :dueShard']
const EXPIRES = '#expiresAt = :expiresAt'
const expiry = (expiresAt: number | undefined): Extras['values'] =>
  expiresAt === undefined ? {} : { ':expiresAt': ttlOf(expiresAt) }

export function runWrites(table: TableClient): RunWrites {
  const update = (ref: RunRef, condition: string, clauses: Clauses, values: Extras['values']): Promise<Written<Run>> =>
    updateItem(table, runKey(ref), condition, clauses, { values }, decodeRun)

  return {
    /** W1 */
    createRun: (run: Run): Promise<Put> => putNew(table, encodeRun(run)),

    /**
     * W14. A run that waits for its budget has nobody who could end it, so the same request ends it at once: conditions
     * have no branches, hence a second write where the first finds no running run. A running one is due at once: its
     * sessions may all wait for something that is days away, and the events that tell them to stop may be lost.
     */
    async cancelRun(ref, { now, expiresAt }): Promise<Written<Run>> {
      const set = ['#stop = :cancelled', '#cancelRequestedAt = :now', '#updatedAt = :now']
      const running = await update(
        ref,
        all('#status = :running', 'attribute_not_exists(#stop)'),
        { set: [...set, '#dueAt = :now', '#dueShard = :dueShard'] },
        { ':now': now, ':dueShard': dueShard(ref.runId) },
      )
      if (running.written) return running
      const ended = ['#status = :cancelled', '#stopReason = :cancelled', '#finishedAt = :now']
      return update(
        ref,
        all('#status = :waiting', 'attribute_not_exists(#stop)'),
        { set: [...set, ...ended, ...(expiresAt === undefined ? [] : [EXPIRES])], remove: ['#error'] },
        { ':now': now, ...expiry(expiresAt) },
      )
    },

    /** W17. `round` fences a late finisher of an earlier round. The due time goes, or moves, in the same write. */
    finishRun(ref, to): Promise<Written<Run>> {
      const due = to.dueAt !== null
      return update(
        ref,
        all(
          '#status = :running',
          '#round = :round',
          to.status === 'waiting' && 'attribute_not_exists(#stop)',
          // under limits outside of it nothing is held beside what was read; and one that waits has not been given more since
          to.seenLimitSeq !== undefined && '#limitSeq = :seenSeq',
        ),
        {
          set: [
            '#status = :status',
            '#stopReason = :stopReason',
            '#books = :books',
            '#sessions = :sessions',
            '#v = :v',
            '#reportedAt = :reportedAt',
            ...(to.status === 'waiting' ? [] : ['#finishedAt = :now']),
            '#updatedAt = :now',
            ...(to.error ? ['#error = :error'] : []),
            ...(due ? DUE : []),
            ...(to.expiresAt !== undefined ? [EXPIRES] : []),
          ],
          remove: [...(to.error ? [] : ['#error']), ...(due ? [] : NOT_DUE)],
        },
        {
          ':round': to.round,
          ':status': to.status,
          ':stopReason': to.stopReason,
          ':error': to.error ? encodeError(to.error) : undefined,
          ':books': encodeBooks(to.books),
          ':sessions': to.sessions,
          ':v': to.v,
          ':reportedAt': to.reportedAt,
          ':seenSeq': to.seenLimitSeq,
          ':now': to.now,
          ...(to.dueAt !== null && { ':dueAt': to.dueAt, ':dueShard': dueShard(ref.runId) }),
          ...expiry(to.expiresAt),
        },
      )
    },

    /** W23 */
    correctRun: (ref, seenV, to): Promise<Written<Run>> =>
      update(
        ref,
        all('#v = :seen', '#status <> :running'),
        { set: ['#v = :v', '#books = :books', '#updatedAt = :now'] },
        { ':seen': seenV, ':v': to.v, ':books': encodeBooks(to.books), ':now': to.now },
      ),

    /** W24 */
    undueRun: (ref, seen, next): Promise<Written<Run>> =>
      update(
        ref,
        all('#v = :v', '#status <> :running', '#dueAt = :dueAt'),
        next === undefined ? { remove: NOT_DUE } : { set: ['#dueAt = :next'] },
        { ':v': seen.v, ':dueAt': seen.dueAt, ...(next !== undefined && { ':next': next }) },
      ),

    /** W25. Whatever else somebody has changed meanwhile may be a reason to look: two due times may be the same. */
    pushDue: (ref, seen, dueAt): Promise<Written<Run>> =>
      update(
        ref,
        all('#status IN (:running, :waiting)', '#dueAt = :seen', '#updatedAt = :updatedAt'),
        { set: ['#dueAt = :dueAt'] },
        { ':seen': seen.dueAt, ':updatedAt': seen.updatedAt, ':dueAt': dueAt },
      ),

    /** Opens the next round of an ended run. What the last one ended with goes; its totals stay until this one ends. */
    openRound(ref, { seenExpiresAt = null, ...to }): Promise<Written<Run>> {
      const starts =
        'inputRef' in to
          ? ['#inputRef = :inputRef']
          : ['#inputRound = :inputRound', '#retryRound = :next', '#retryRef = :retryRef']
      return update(
        ref,
        all(
          '#round = :seen',
          ENDED,
          // it is in the list: one that was deleted is not, also where the caller's clock is behind
          'attribute_exists(#runsTenant)',
          'attribute_not_exists(#grants)',
          seenExpiresAt === null ? 'attribute_not_exists(#expiresAt)' : '#expiresAt = :expiresAt',
        ),
        {
          set: ['#status = :running', '#round = :next', ...starts, '#updatedAt = :now', ...DUE],
          remove: [
            ...('inputRef' in to ? ['#inputRound'] : []),
            ...['#stop', '#stopReason', '#error', '#finishedAt', '#cancelRequestedAt', '#expiresAt', '#short'],
          ],
        },
        {
          ':seen': to.seenRound,
          ':next': to.seenRound + 1,
          ...('inputRef' in to
            ? { ':inputRef': to.inputRef }
            : { ':inputRound': to.inputRound, ':retryRef': to.retryRef }),
          ':dueAt': to.dueAt,
          ':dueShard': dueShard(ref.runId),
          ':now': to.now,
          ...(seenExpiresAt !== null && { ':expiresAt': ttlOf(seenExpiresAt) }),
        },
      )
    },

    /** From now on nobody finds it: it is out of the list, and its time is over. The sweep removes it when it is due. */
    deleteRun: (ref, to): Promise<Written<Run>> =>
      update(
        ref,
        ENDED,
        { set: ['#expiresAt = :expiresAt', ...DUE], remove: ['#runsTenant', '#runsId'] },
        {
          ':expiresAt': ttlOf(Math.floor(to.now / 1000)),
          ':dueAt': to.dueAt,
          ':dueShard': dueShard(ref.runId),
        },
      ),

    /**
     * W41. The new limit; the root takes it in afterwards (W39). A run that waits for its budget goes on in a new round by
     * the same write: nobody else could open it.
     */
    changeLimit: (ref, to): Promise<Written<Run>> =>
      update(
        ref,
        all(
          '#limitSeq = :seenSeq',
          '#status = :seen',
          '#round = :round',
          to.resume !== null && 'attribute_not_exists(#grants)',
        ),
        {
          set: [
            '#limitUsd = :limitUsd',
            '#limitTok = :limitTok',
            '#limitSeq = #limitSeq + :one',
            '#updatedAt = :now',
            ...(to.raised ? ['#raisedRound = :round'] : []),
            ...(to.resume ? ['#status = :running', '#round = #round + :one', '#inputRound = :inputRound'] : []),
            ...(to.resume || to.dueAt !== undefined ? DUE : []),
          ],
          remove: to.resume ? ['#stopReason', '#error', '#short'] : [],
          add: same(to.limit, to.seen.limit) ? [] : ['#budgetSeq :one'],
        },
        {
          ':seenSeq': to.seen.limitSeq,
          ':seen': to.seen.status,
          ':round': to.seen.round,
          ':limitUsd': to.limit.usd,
          ':limitTok': to.limit.tok,
          ':now': to.now,
          ...(to.resume && {
            ':inputRound': to.seen.inputRound,
            ':dueAt': to.resume.dueAt,
            ':dueShard': dueShard(ref.runId),
          }),
          ...(to.dueAt !== undefined && { ':dueAt': to.dueAt, ':dueShard': dueShard(ref.runId) }),
        },
      ),

    /** W43. Once for each limit. Way by way, as W3 is. */
    warnBudget: (ref, budgetSeq, now): Promise<Written<Run>> =>
      update(
        ref,
        ['attribute_not_exists(#budgetWarnedSeq)', '#budgetWarnedSeq < :seq']
          .map((way) =>
            all(
              'attribute_exists(#pk)',
              budgetSeq === 0 ? 'attribute_not_exists(#budgetSeq)' : '#budgetSeq = :seq',
              way,
            ),
          )
          .join(' OR '),
        { set: ['#budgetWarnedAt = :now', '#budgetWarnedSeq = :seq'] },
        { ':seq': budgetSeq, ':now': now },
      ),

    /** W42. Nobody has raised the limit of a run that waits for it. Where runs are not kept for ever it is due at its end. */
    failWaiting: (ref, seenRound, { now, expiresAt }): Promise<Written<Run>> =>
      update(
        ref,
        all('#status = :waiting', '#round = :round'),
        {
          set: [
            ...['#status = :failed', '#finishedAt = :now', '#updatedAt = :now'],
            ...(expiresAt === undefined ? [] : [EXPIRES, '#dueAt = :dueAt']),
          ],
          remove: expiresAt === undefined ? NOT_DUE : [],
        },
        {
          ':round': seenRound,
          ':now': now,
          ...expiry(expiresAt),
          ...(expiresAt !== undefined && { ':dueAt': expiresAt * 1000 }),
        },
      ),
  }
}
