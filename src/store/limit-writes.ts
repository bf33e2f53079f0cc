/** Limits that many share: what is available, what is spent, and who holds how much, in one item. */
import { type Amount, covers, sub, ZERO } from '../domain/money.ts'
import type { Hold, LimitRef, LimitStore, SharedLimit } from '../ports/limit-store.ts'
import { ItemReader } from './item-reader.ts'
import { limitKey } from './keys.ts'
import { all, type Clauses, type Extras, putNew, updateItem } from './statements.ts'
import { A, HOLD, ITEM_VERSION } from './table.ts'
import type { Attribute, Item, TableClient } from './table-client.ts'
import { mapReader } from './value-codecs.ts'

function decodeHold(value: Attribute, where: string): Hold {
  const r = mapReader(value, HOLD, where)
  return {
    usd: r.big('usd'),
    tok: r.big('tok'),
    ...(r.has('seq') && { seq: r.whole('seq') }),
    ...(r.has('waits') && { waits: true }),
  }
}

const encodeHold = (hold: Hold): Item => ({
  [HOLD.usd]: hold.usd,
  [HOLD.tok]: hold.tok,
  ...(hold.seq !== undefined && { [HOLD.seq]: hold.seq }),
  ...(hold.waits && { [HOLD.waits]: 1 }),
})

/** @throws BadItemError naming what is missing or of the wrong type */
export function decodeLimit(item: Item): SharedLimit {
  const where = `${item[A.pk]} ${item[A.sk]}`
  const r = new ItemReader(item, A, where)
  return {
    limit: { usd: r.big('limitUsd'), tok: r.big('limitTok') },
    avail: { usd: r.big('availUsd'), tok: r.big('availTok') },
    spent: { usd: r.big('spentUsd'), tok: r.big('spentTok') },
    held: Object.fromEntries(
      Object.entries(r.map('holds')).map(([holder, value]) => [holder, decodeHold(value, `${where}.${holder}`)]),
    ),
    v: r.whole('v'),
  }
}

/**
 * What the holder holds is what was read. Its numbers are compared, not the map that holds them: the embedded emulator
 * finds no two maps equal.
 */
const holdIs = (seen: Hold | null): string =>
  seen
    ? all(
        '#holds.#holder.#usd = :seenUsd',
        '#holds.#holder.#tok = :seenTok',
        seen.seq !== undefined && '#holds.#holder.#seq = :seenSeq',
      )
    : 'attribute_not_exists(#holds.#holder)'
const holdNames = (holder: string, seen: Hold | null) => ({
  '#holder': holder,
  ...(seen && { '#usd': HOLD.usd, '#tok': HOLD.tok }),
  ...(seen?.seq !== undefined && { '#seq': HOLD.seq }),
})
const pair = (value: string, amount: Amount): { [placeholder: string]: Attribute } => ({
  [`:${value}Usd`]: amount.usd,
  [`:${value}Tok`]: amount.tok,
})
const seenValues = (seen: Hold | null) =>
  seen ? { ...pair('seen', seen), ...(seen.seq !== undefined && { ':seenSeq': seen.seq }) } : {}

export function limitWrites(table: TableClient): Omit<LimitStore, 'moveGrants' | 'giveUp'> {
  const update = (ref: LimitRef, condition: string, clauses: Clauses, extras: Extras) =>
    updateItem(table, limitKey(ref), condition, clauses, extras, decodeLimit)

  return {
    async getLimit(ref) {
      const { item } = await table.get({ key: limitKey(ref), consistent: true })
      return item && decodeLimit(item)
    },

    /** W26, first */
    putLimit: (ref, limit) =>
      putNew(table, {
        ...limitKey(ref),
        [A.version]: ITEM_VERSION,
        ...('pot' in ref ? {} : { [A.name]: ref.name }),
        [A.limitUsd]: limit.usd,
        [A.limitTok]: limit.tok,
        [A.availUsd]: limit.usd,
        [A.availTok]: limit.tok,
        [A.spentUsd]: 0,
        [A.spentTok]: 0,
        [A.holds]: {},
        [A.v]: 0,
      }),

    /** W26, another limit. */
    moveLimit: (ref, seen, limit) =>
      update(
        ref,
        all('#limitUsd = :seenUsd', '#limitTok = :seenTok'),
        {
          set: [
            '#limitUsd = :limitUsd',
            '#limitTok = :limitTok',
            '#availUsd = #availUsd + :moreUsd',
            '#availTok = #availTok + :moreTok',
          ],
        },
        { values: { ...pair('seen', seen), ...pair('limit', limit), ...pair('more', sub(limit, seen)) } },
      ),

    /**
     * W26, hold. The sum is written, so a repeat after a lost answer is seen by reading. The version fences a hold that comes
     * after its holder was settled: nobody would give it back any more.
     */
    hold(ref, holder, seen, hold) {
      const more = sub(hold, seen.hold ?? ZERO)
      const grows = !covers(ZERO, more)
      return update(
        ref,
        all(holdIs(seen.hold), ...(grows ? ['#availUsd >= :moreUsd', '#availTok >= :moreTok'] : []), '#v = :v'),
        {
          set: ['#holds.#holder = :hold', '#availUsd = #availUsd - :moreUsd', '#availTok = #availTok - :moreTok'],
        },
        {
          names: holdNames(holder, seen.hold),
          values: { ...seenValues(seen.hold), ...pair('more', more), ':hold': encodeHold(hold), ':v': seen.v },
        },
      )
    },

    /** W26, settle. Once or not at all: the hold is gone the second time. */
    settleHold: (ref, holder, seen, spent) =>
      update(
        ref,
        // the emulators find that nothing has no holds as well: without this a limit would come to be
        all(holdIs(seen), ...(seen ? [] : ['attribute_exists(#pk)'])),
        {
          set: [
            ...(seen
              ? [
                  '#spentUsd = #spentUsd + :spentUsd',
                  '#spentTok = #spentTok + :spentTok',
                  '#availUsd = #availUsd + :backUsd',
                  '#availTok = #availTok + :backTok',
                ]
              : []),
            '#v = #v + :one',
          ],
          remove: seen ? ['#holds.#holder'] : [],
        },
        {
          names: holdNames(holder, seen),
          values: seen ? { ...seenValues(seen), ...pair('spent', spent), ...pair('back', sub(seen, spent)) } : {},
        },
      ),
  }
}
