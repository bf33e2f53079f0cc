/** What outer limits grant to a run: written on RUN before and after its holds are put, and given up by its root. */
import { isZero } from '../domain/money.ts'
import type { LimitStore } from '../ports/limit-store.ts'
import { decodeHeader } from './header-codec.ts'
import { dueShard, runKey, sessionKey } from './keys.ts'
import { decodeRun, encodeGrants, encodeShortage } from './run-codec.ts'
import { all, ENDED, updateItem } from './statements.ts'
import type { TableClient } from './table-client.ts'

export function grantWrites(table: TableClient): Pick<LimitStore, 'moveGrants' | 'giveUp'> {
  return {
    /** W26b. The sequence of the limit orders all that is decided about it: each holds against what was read. */
    moveGrants(ref, seen, to) {
      const [due, granted] = [to.due, to.granted]
      return updateItem(
        table,
        runKey(ref),
        all('#limitSeq = :seenSeq', '#status = :seen', '#round = :round'),
        {
          set: [
            '#grantedUsd = :grantedUsd',
            '#grantedTok = :grantedTok',
            '#limitSeq = #limitSeq + :one',
            '#updatedAt = :now',
            ...(to.grants.length > 0 ? ['#grants = :grants'] : []),
            ...(to.short ? ['#short = :short'] : []),
            ...(due?.at ? ['#dueAt = :dueAt', '#dueShard = :dueShard'] : []),
          ],
          remove: [...(to.grants.length > 0 ? [] : ['#grants']), ...(due?.at === null ? ['#dueAt', '#dueShard'] : [])],
        },
        {
          values: {
            ':seenSeq': seen.limitSeq,
            ':seen': seen.status,
            ':round': seen.round,
            ':grantedUsd': granted.usd,
            ':grantedTok': granted.tok,
            ':grants': to.grants.length > 0 ? encodeGrants(to.grants) : undefined,
            ':short': to.short ? encodeShortage(to.short) : undefined,
            ':now': to.now,
            ...(due?.at && { ':dueAt': due.at, ':dueShard': dueShard(ref.runId) }),
          },
        },
        decodeRun,
      )
    },

    /** W26c */
    giveUp: (root, from) =>
      updateItem(
        table,
        sessionKey(root),
        all(
          ...(isZero(from.seenGiven)
            ? ['attribute_not_exists(#givenUsd)']
            : ['#givenUsd = :seenUsd', '#givenTok = :seenTok']),
          '#ownUsd = :seenOwnUsd',
          '#ownTok = :seenOwnTok',
          ENDED,
        ),
        {
          set: [
            '#givenUsd = :givenUsd',
            '#givenTok = :givenTok',
            '#ownUsd = :ownUsd',
            '#ownTok = :ownTok',
            '#availUsd = #availUsd - :lessUsd',
            '#availTok = #availTok - :lessTok',
          ],
        },
        {
          values: {
            ...(isZero(from.seenGiven) ? {} : { ':seenUsd': from.seenGiven.usd, ':seenTok': from.seenGiven.tok }),
            ':seenOwnUsd': from.seenOwn.usd,
            ':seenOwnTok': from.seenOwn.tok,
            ':givenUsd': from.given.usd,
            ':givenTok': from.given.tok,
            ':ownUsd': from.own.usd,
            ':ownTok': from.own.tok,
            ':lessUsd': from.avail.usd,
            ':lessTok': from.avail.tok,
          },
        },
        decodeHeader,
      ),
  }
}
