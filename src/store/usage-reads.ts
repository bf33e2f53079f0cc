/** Reads of what tenants have spent. All are consistent: what is counted once depends on them. */
import { SubledgerError } from '../domain/errors.ts'
import {
  HOURS,
  type ReportRow,
  reportRows,
  type UsageDayRef,
  type UsageItem,
  type UsageItemRef,
  usageDayOf,
} from '../domain/report.ts'
import type { UsageStore } from '../ports/usage-store.ts'
import type { Page } from '../ports.ts'
import { inlineBody, joinParts, partBytes, partsOf } from './bodies.ts'
import { BadItemError, ItemReader } from './item-reader.ts'
import {
  FOLD_SHARD,
  foldKey,
  type Key,
  LATE_PREFIX,
  lateItemKey,
  parseUsageItemKey,
  parseUsagePartition,
  usageDayKey,
  usageHourPrefix,
  usageItemKey,
  usageItemName,
  usagePartition,
  usagePartKey,
  usageSumKey,
  usageTakenKey,
} from './keys.ts'
import { between, collect } from './log-reads.ts'
import { placeholders } from './statements.ts'
import { A, DUE_INDEX } from './table.ts'
import type { Item, TableClient } from './table-client.ts'
import { decodeUsageDay, decodeUsageItem, readFold, readNames } from './usage-codec.ts'

type UsageReads = Pick<
  UsageStore,
  | 'getUsage'
  | 'getUsageDay'
  | 'dueUsageDays'
  | 'listUsage'
  | 'hasUsageHour'
  | 'isUsageTaken'
  | 'hasLateUsage'
  | 'readUsageHours'
  | 'readUsage'
>

/** Sorts behind every key that begins with the prefix. */
const END = '~'
/** The first hour is at the front, what is behind the last one sorts behind it. */
const LAST_HOUR = HOURS - 1

export function usageReads(table: TableClient): UsageReads {
  const get = async (key: Key): Promise<Item | undefined> => (await table.get({ key, consistent: true })).item
  const skOf = (item: Item): string => String(item[A.sk])

  async function bodyOf(ref: UsageDayRef, item: Item): Promise<string | undefined> {
    const where = `${item[A.pk]} ${item[A.sk]}`
    const parts = partsOf(item, where)
    if (!parts) return inlineBody(item, where)
    const pieces: Uint8Array[] = []
    for (let i = 0; i < parts.count; i++) {
      const key = usagePartKey(ref, parts.slot, parts.driver, i)
      const part = await get(key)
      if (!part) throw new BadItemError(`${where}: part ${i} of ${parts.count} of its body is missing (${key.sk})`)
      pieces.push(partBytes(part, key.sk))
    }
    return joinParts(pieces, parts.bytes, where)
  }

  const itemOf = async (ref: UsageDayRef, item: Item): Promise<UsageItem> =>
    decodeUsageItem(item, await bodyOf(ref, item))
  const foldOf = async (ref: UsageDayRef, item: Item): Promise<ReportRow[]> =>
    readFold(await bodyOf(ref, item), `${item[A.pk]} ${item[A.sk]}`)

  async function rowsOf(ref: UsageDayRef, items: readonly Item[]): Promise<ReportRow[]> {
    return (await Promise.all(items.map((item) => itemOf(ref, item)))).flatMap(reportRows)
  }

  async function readUsageHours(ref: UsageDayRef, hours: number): Promise<readonly ReportRow[]> {
    if (hours === 0) return []
    const [from, to] = [usageSumKey(ref, 0), usageSumKey(ref, hours - 1)]
    const folds = await collect(table, between(from.pk, from.sk, to.sk, true))
    if (folds.length !== hours)
      throw new BadItemError(`${from.pk}: of ${hours} folded hours only ${folds.length} have their fold`)
    return (await Promise.all(folds.map((item) => foldOf(ref, item)))).flat()
  }

  return {
    async getUsage(ref: UsageItemRef): Promise<UsageItem | undefined> {
      const item = await get(usageItemKey(ref))
      return item && itemOf(usageDayOf(ref), item)
    },

    async getUsageDay(ref: UsageDayRef) {
      const item = await get(foldKey(ref))
      return item && decodeUsageDay(item)
    },

    async dueUsageDays(now, { limit, after }): Promise<Page<UsageDayRef>> {
      const keyCondition = '#dueShard = :shard AND #dueAt <= :now'
      const page = await table.query({
        index: DUE_INDEX,
        keyCondition,
        ...placeholders([keyCondition], { values: { ':shard': FOLD_SHARD, ':now': now } }),
        consistent: false,
        limit,
        ...(after !== undefined && { startAfter: afterDay(after) }),
      })
      const items = page.items.map((item) => parseUsagePartition(String(item[A.pk])))
      return { items, ...(page.last && { next: JSON.stringify([page.last[A.dueAt], page.last[A.pk]]) }) }
    },

    async listUsage(ref: UsageDayRef, hour: number): Promise<readonly UsageItem[]> {
      const prefix = usageHourPrefix(hour)
      const items = await collect(table, between(usagePartition(ref), prefix, prefix + END, true))
      return Promise.all(items.map((item) => itemOf(ref, item)))
    },

    hasUsageHour: async (ref: UsageDayRef, hour: number): Promise<boolean> =>
      (await get(usageSumKey(ref, hour))) !== undefined,

    async isUsageTaken(ref: UsageItemRef): Promise<boolean | undefined> {
      const day = usageDayOf(ref)
      const { hour } = parseUsageItemKey(usageItemKey(ref).sk)
      const fold = await get(usageSumKey(day, hour))
      if (!fold) return undefined
      const nonce = new ItemReader(fold, A, `${fold[A.pk]} ${fold[A.sk]}`).text('taken')
      const key = usageTakenKey(day, hour, nonce)
      const list = await get(key)
      if (!list) throw new BadItemError(`${key.pk} ${key.sk}: the list of what is in a fold is missing`)
      return readNames(await bodyOf(day, list), `${key.pk} ${key.sk}`).has(usageItemName(ref))
    },

    hasLateUsage: async (ref: UsageItemRef): Promise<boolean> => (await get(lateItemKey(ref))) !== undefined,

    readUsageHours,

    /**
     * How far the day is folded is read first. Items stay where they are when they are folded, so what is folded while
     * this goes on is still read by itself; and a late item counts only where its hour was read from the fold.
     */
    async readUsage(ref: UsageDayRef): Promise<readonly ReportRow[]> {
      const pk = usagePartition(ref)
      const front = await collect(table, between(pk, usageDayKey(ref).sk, LATE_PREFIX + END, true))
      const state = front.find((item) => skOf(item) === foldKey(ref).sk)
      const folded = state ? decodeUsageDay(state).folded : 0
      const late = front.filter(
        (item) => skOf(item).startsWith(LATE_PREFIX) && parseUsageItemKey(skOf(item)).hour < folded,
      )
      if (folded < HOURS) {
        const open = between(pk, usageHourPrefix(folded), usageHourPrefix(LAST_HOUR) + END, true)
        const [sums, items] = await Promise.all([readUsageHours(ref, folded), collect(table, open)])
        return [...sums, ...(await rowsOf(ref, [...items, ...late]))]
      }
      // the fold of the day may have been put after its place had been passed
      const day = front.find((item) => skOf(item) === usageDayKey(ref).sk) ?? (await get(usageDayKey(ref)))
      if (!day) throw new BadItemError(`${pk}: all hours are folded, and the fold of the day is missing`)
      return [...(await foldOf(ref, day)), ...(await rowsOf(ref, late))]
    },
  }
}

function afterDay(cursor: string): Item {
  try {
    const [dueAt, pk] = JSON.parse(cursor)
    if (Number.isSafeInteger(dueAt) && typeof pk === 'string')
      return { [A.dueShard]: FOLD_SHARD, [A.dueAt]: dueAt, ...foldKey(parseUsagePartition(pk)) }
  } catch {
    // no cursor of ours
  }
  throw new SubledgerError('bad_cursor', 'The cursor was not made for this list. Start without one.')
}
