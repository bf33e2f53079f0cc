/** Schedules of a tenant, and what they have done. */
import { NO_STATE, type Schedule, type ScheduleState } from '../domain/schedule.ts'
import type { ScheduleRef, ScheduleStore } from '../ports/schedule-store.ts'
import { ItemReader, present } from './item-reader.ts'
import { parseSchedulePartition, SCHEDULE_SHARD, scheduleKey, schedulePartition } from './keys.ts'
import { collect } from './log-reads.ts'
import { placeholders, putNew, updateItem } from './statements.ts'
import { A, DUE_INDEX, ITEM_VERSION } from './table.ts'
import type { Item, TableClient } from './table-client.ts'

type Stored = Omit<ScheduleState, 'v' | 'dueAt'>
const { v: _, dueAt: __, ...EMPTY } = NO_STATE

export function schedules(table: TableClient): ScheduleStore {
  const read = (item: Item): { id: string; schedule: Schedule | null; state: ScheduleState } => {
    const r = new ItemReader(item, A, `${item[A.pk]} ${item[A.sk]}`)
    return {
      id: r.text('sk'),
      schedule: r.has('body') ? (JSON.parse(r.text('body')) as Schedule) : null,
      state: {
        ...EMPTY,
        ...(JSON.parse(r.text('state')) as Partial<Stored>),
        v: r.whole('v'),
        dueAt: r.wholeOrNull('dueAt'),
      },
    }
  }
  const itemOf = (ref: ScheduleRef, state: Stored, dueAt: number | null, body?: string): Item => ({
    ...scheduleKey(ref.tenant, ref.id),
    ...present({
      [A.version]: ITEM_VERSION,
      [A.v]: 1,
      [A.state]: JSON.stringify(state),
      [A.body]: body,
      [A.dueAt]: dueAt,
      [A.dueShard]: dueAt === null ? null : SCHEDULE_SHARD,
    }),
  })

  return {
    putSchedule: (tenant, schedule, dueAt) =>
      putNew(table, itemOf({ tenant, id: schedule.id }, EMPTY, dueAt, JSON.stringify(schedule))),

    async getSchedule({ tenant, id }) {
      const { item } = await table.get({ key: scheduleKey(tenant, id), consistent: true })
      return item && read(item)
    },

    async listSchedules(tenant) {
      const keyCondition = '#pk = :pk'
      const values = { ':pk': schedulePartition(tenant) }
      const items = await collect(table, {
        keyCondition,
        ...placeholders([keyCondition], { values }),
        consistent: true,
      })
      return items.map(read)
    },

    async moveSchedule(ref, seenV, { dueAt, ...state }) {
      if (seenV === 0) return putNew(table, itemOf(ref, state, dueAt))
      const due = dueAt !== null
      const { written } = await updateItem(
        table,
        scheduleKey(ref.tenant, ref.id),
        '#v = :seen',
        {
          set: ['#v = #v + :one', '#state = :state', ...(due ? ['#dueAt = :dueAt', '#dueShard = :dueShard'] : [])],
          remove: due ? [] : ['#dueAt', '#dueShard'],
        },
        {
          values: {
            ':seen': seenV,
            ':state': JSON.stringify(state),
            ...(dueAt !== null && { ':dueAt': dueAt, ':dueShard': SCHEDULE_SHARD }),
          },
        },
        () => undefined,
      )
      return written ? 'written' : 'already'
    },

    async deleteSchedule({ tenant, id }) {
      await table.delete({ key: scheduleKey(tenant, id) })
    },

    async dueSchedules(now, { limit, after }) {
      const keyCondition = '#dueShard = :shard AND #dueAt <= :now'
      const page = await table.query({
        index: DUE_INDEX,
        keyCondition,
        ...placeholders([keyCondition], { values: { ':shard': SCHEDULE_SHARD, ':now': now } }),
        consistent: false,
        limit,
        ...(after !== undefined && { startAfter: JSON.parse(after) as Item }),
      })
      const items = page.items.map((item) => ({
        tenant: parseSchedulePartition(String(item[A.pk])),
        id: String(item[A.sk]),
      }))
      return { items, ...(page.last && { next: JSON.stringify(page.last) }) }
    },
  }
}
