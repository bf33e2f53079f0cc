/** Writes of what tenants have spent: usage items, and how they are folded. Each is put once, or only moves forward. */
import { HOURS, type ReportRow, type UsageDay, type UsageDayRef, type UsageItem, usageDayOf } from '../domain/report.ts'
import type { UsageStore } from '../ports/usage-store.ts'
import type { Put, Written } from '../ports.ts'
import { type PackedBody, packBody } from './bodies.ts'
import { itemSize } from './item-size.ts'
import {
  FOLD_SHARD,
  foldKey,
  type Key,
  lateItemKey,
  usageDayKey,
  usageItemKey,
  usageItemName,
  usagePartKey,
  usageSumKey,
  usageTakenKey,
} from './keys.ts'
import { putNew, updateItem } from './statements.ts'
import { A, ITEM_VERSION } from './table.ts'
import type { Item, TableClient } from './table-client.ts'
import { decodeUsageDay, encodeUsageItem, foldBody, usageItemBody } from './usage-codec.ts'

type UsageWrites = Pick<
  UsageStore,
  'putUsage' | 'openUsageDay' | 'closeUsageHours' | 'putUsageHour' | 'putLateUsage' | 'putUsageDay' | 'moveUsageFolded'
>

export function usageWrites(table: TableClient): UsageWrites {
  /** Parts first, then the item that names them: what can be read can be read whole. */
  async function put(ref: UsageDayRef, key: Key, attributes: Item, text: string, nonce: string): Promise<Put> {
    const base = { ...key, ...attributes }
    const slot = key.sk.replaceAll('#', '-')
    const packed: PackedBody = packBody(itemSize(base), text, {
      driver: nonce,
      slot,
      key: (part) => usagePartKey(ref, slot, nonce, part),
    })
    await Promise.all(packed.parts.map((item) => table.put({ item })))
    return putNew(table, { ...base, ...packed.attributes })
  }

  const putItem = (key: Key, item: UsageItem, nonce: string): Promise<Put> =>
    put(usageDayOf(item), key, encodeUsageItem(item), usageItemBody(item), nonce)

  return {
    /** W27 */
    putUsage: (item: UsageItem, nonce: string): Promise<Put> => putItem(usageItemKey(item), item, nonce),

    /** W28 */
    openUsageDay: (ref: UsageDayRef, dueAt: number): Promise<Put> =>
      putNew(table, {
        ...foldKey(ref),
        [A.version]: ITEM_VERSION,
        [A.closing]: 0,
        [A.folded]: 0,
        [A.dueShard]: FOLD_SHARD,
        [A.dueAt]: dueAt,
      }),

    /** W29 */
    closeUsageHours: (ref: UsageDayRef, hours: number): Promise<Written<UsageDay>> =>
      updateItem(
        table,
        foldKey(ref),
        '#closing < :hours',
        { set: ['#closing = :hours'] },
        { values: { ':hours': hours } },
        decodeUsageDay,
      ),

    /** W30. The list of what is in the fold is put first, under a name that the fold decides on. */
    async putUsageHour(ref, hour, fold, nonce): Promise<Put> {
      const names = JSON.stringify(fold.taken.map(usageItemName))
      await put(ref, usageTakenKey(ref, hour, nonce), { [A.version]: ITEM_VERSION }, names, nonce)
      const attributes = { [A.version]: ITEM_VERSION, [A.taken]: nonce }
      return put(ref, usageSumKey(ref, hour), attributes, foldBody(fold.rows), nonce)
    },

    /** W31 */
    putLateUsage: (item: UsageItem, nonce: string): Promise<Put> => putItem(lateItemKey(item), item, nonce),

    /** W32. All hours are folded, so whoever folds them comes to the same. */
    putUsageDay: (ref: UsageDayRef, rows: readonly ReportRow[], nonce: string): Promise<Put> =>
      put(ref, usageDayKey(ref), { [A.version]: ITEM_VERSION }, foldBody(rows), nonce),

    /** W33 */
    moveUsageFolded(ref, { folded, dueAt }): Promise<Written<UsageDay>> {
      if ((folded === HOURS) !== (dueAt === null))
        throw new RangeError('a day is looked at again until all its hours are folded, and not after that')
      return updateItem(
        table,
        foldKey(ref),
        '#folded < :folded',
        {
          set: ['#folded = :folded', ...(dueAt === null ? [] : ['#dueAt = :dueAt'])],
          remove: dueAt === null ? ['#dueAt', '#dueShard'] : [],
        },
        { values: { ':folded': folded, ':dueAt': dueAt ?? undefined } },
        decodeUsageDay,
      )
    },
  }
}
