/** Corrections after the end, when more became known of a call that was booked as unknown. */
import type { SessionRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { BookRow } from '../domain/usage.ts'
import type { Store, Written } from '../ports.ts'
import { decodeHeader, encodeSeen, kidsAttributes } from './header-codec.ts'
import { sessionKey } from './keys.ts'
import { all, updateItem } from './statements.ts'
import { SEEN } from './table.ts'
import type { TableClient } from './table-client.ts'
import { encodeRows } from './value-codecs.ts'

type CorrectionWrites = Pick<Store, 'correctOwn' | 'correctParent'>

export function correctionWrites(table: TableClient): CorrectionWrites {
  return {
    /**
     * W21. protocol.md subtracts the bound and adds the cost; here the own rows, kept compactly by agent, model and
     * outcome, are written anew as they were computed from the log. So the write is bound to the version that was read,
     * else two corrections of different calls at once would undo each other.
     */
    correctOwn: (
      ref: SessionRef,
      seenV: number,
      n: number,
      rows: readonly BookRow[],
      now: number,
    ): Promise<Written<SessionHeader>> =>
      updateItem(
        table,
        sessionKey(ref),
        all('attribute_exists(#unknowns.#n)', '#v = :seen'),
        { set: ['#rows = :rows', '#v = #v + :one', '#updatedAt = :now'], remove: ['#unknowns.#n'] },
        { names: { '#n': String(n) }, values: { ':seen': seenV, ':rows': encodeRows(rows), ':now': now } },
        decodeHeader,
      ),

    /** W22. By comparison with what was seen: doing it twice changes nothing, and a skipped version is made up for. */
    correctParent(parent, ordinal, seenV, to): Promise<Written<SessionHeader>> {
      const kids = Object.entries(kidsAttributes(to.difference))
      return updateItem(
        table,
        sessionKey(parent),
        '#seen.#ordinal.#seenV = :seenV',
        {
          set: [
            '#seen.#ordinal = :seen',
            '#availUsd = #availUsd + :backUsd',
            '#availTok = #availTok + :backTok',
            '#v = #v + :one',
            '#updatedAt = :now',
          ],
          add: kids.map(([name]) => `#${name} :${name}`),
        },
        {
          names: {
            '#ordinal': String(ordinal),
            '#seenV': SEEN.v,
            ...Object.fromEntries(kids.map(([name]) => [`#${name}`, name])),
          },
          values: {
            ':seenV': seenV,
            ':seen': encodeSeen(to.seen),
            ':backUsd': to.back.usd,
            ':backTok': to.back.tok,
            ':now': to.now,
            ...Object.fromEntries(kids.map(([name, value]) => [`:${name}`, value])),
          },
        },
        decodeHeader,
      )
    },
  }
}
