import { describe, expect, test } from 'vitest'
import { sumReport, type UsageDayRef, type UsageItem } from '../../../src/domain/report.ts'
import { NO_TOTALS } from '../../../src/domain/usage.ts'
import { DRIVER, noise, OTHER_DRIVER, row, runRef } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { bench } from './write-cases.ts'

const AT = Date.UTC(2026, 2, 1, 7, 30)
const HOUR = 3_600_000

export function usageContract(open: () => Promise<TestTable>): void {
  const at = bench(open)
  let tenants = 0
  /** a day that no other test uses */
  const newDay = (): UsageDayRef => ({ tenant: `t${++tenants}`, day: '2026-03-01' })
  const anItem = (day: UsageDayRef, of: Partial<UsageItem> = {}): UsageItem => ({
    ...runRef(1, day.tenant),
    round: 1,
    at: AT,
    from: null,
    v: 3,
    team: 'crew',
    tags: { customer: 'Ä & Ö', empty: '' },
    rows: [row(2), row(1, { agent: 'root', outcome: 'unknown' })],
    base: [],
    before: null,
    seal: false,
    ...of,
  })
  const put = (item: UsageItem) => at.store.putUsage(item, DRIVER)

  describe('W27 a usage item', () => {
    test('reads back what was written, to the last digit and below zero', async () => {
      const day = newDay()
      const cost = -123_456_789_012_345_678_901n
      const rows = [
        row(2),
        row(0, { outcome: 'unknown', totals: { ...NO_TOTALS, calls: -1, cost, unpricedCalls: -2 } }),
      ]
      const item = anItem(day, { round: 2, from: 7, rows, base: [row(5, { outcome: 'failed' })], before: AT - 1 })
      expect(await put(item)).toBe('written')
      expect(await at.store.getUsage(item)).toEqual(item)
      expect(await at.store.getUsage({ ...item, from: null })).toBeUndefined()
      expect(await at.store.getUsage({ ...item, round: 1 })).toBeUndefined()
    })

    test('is put once, by one of 50, and never overwritten', async () => {
      const day = newDay()
      const items = Array.from({ length: 50 }, (_, v) => anItem(day, { v }))
      const puts = await Promise.all(items.map((item) => put(item)))
      expect(puts.filter((p) => p === 'written')).toHaveLength(1)
      expect(await at.store.getUsage(items[0]!)).toEqual(items[puts.indexOf('written')])
    })

    test('of more agents than an item holds is read back whole', async () => {
      const day = newDay()
      const rows = Array.from({ length: 6_000 }, (_, i) => row(i + 1, { agent: noise(120, `agent ${i}`) }))
      const item = anItem(day, { rows })
      await put(item)
      expect(await at.store.getUsage(item)).toEqual(item)
      expect((await at.store.readUsage(day)).length).toBe(6_000)
    })

    test('stands in its hour', async () => {
      const day = newDay()
      const [first, last] = [anItem(day), anItem(day, { ...runRef(2, day.tenant), at: AT + HOUR / 2 - 1 })]
      const next = anItem(day, { ...runRef(3, day.tenant), at: AT + HOUR / 2 })
      for (const item of [next, last, first]) await put(item)
      expect(await at.store.listUsage(day, 7)).toEqual([first, last])
      expect(await at.store.listUsage(day, 8)).toEqual([next])
      expect(await at.store.listUsage(day, 9)).toEqual([])
      expect(await at.store.listUsage({ ...day, tenant: 'nobody' }, 7)).toEqual([])
    })
  })

  describe('a day', () => {
    test('W28 is opened once, and found when it is due', async () => {
      const day = newDay()
      expect(await at.store.getUsageDay(day)).toBeUndefined()
      expect(await at.store.openUsageDay(day, AT)).toBe('written')
      expect(await at.store.openUsageDay(day, AT + 1)).toBe('already')
      expect(await at.store.getUsageDay(day)).toEqual({ ...day, closing: 0, folded: 0, dueAt: AT })
      const due = async (now: number) => (await at.store.dueUsageDays(now, { limit: 100 })).items
      expect(await due(AT)).toContainEqual(day)
      expect(await due(AT - 1)).not.toContainEqual(day)
    })

    test('due ones come page by page, earliest first', async () => {
      const days = [newDay(), newDay(), newDay()]
      for (const [i, day] of days.entries()) await at.store.openUsageDay(day, 1_000 - i)
      const found: UsageDayRef[] = []
      let after: string | undefined
      do {
        const page = await at.store.dueUsageDays(1_000, { limit: 2, ...(after !== undefined && { after }) })
        found.push(...page.items)
        after = page.next
      } while (after !== undefined)
      expect(found).toEqual(days.reverse())
      await expect(at.store.dueUsageDays(1_000, { limit: 2, after: 'x' })).rejects.toThrow('cursor')
    })

    test('W29 and W33 only move forward', async () => {
      const day = newDay()
      expect(await at.store.closeUsageHours(day, 3)).toEqual({ written: false })
      await at.store.openUsageDay(day, AT)
      expect(await at.store.closeUsageHours(day, 3)).toMatchObject({ written: true, item: { closing: 3, folded: 0 } })
      expect(await at.store.closeUsageHours(day, 3)).toEqual({ written: false })
      expect(await at.store.closeUsageHours(day, 2)).toEqual({ written: false })
      const to = { folded: 3, dueAt: AT + 5 }
      expect(await at.store.moveUsageFolded(day, to)).toEqual({ written: true, item: { ...day, closing: 3, ...to } })
      expect(await at.store.moveUsageFolded(day, to)).toEqual({ written: false })
      expect(await at.store.moveUsageFolded(day, { folded: 24, dueAt: null })).toMatchObject({ item: { dueAt: null } })
      expect((await at.store.dueUsageDays(AT * 2, { limit: 100 })).items).not.toContainEqual(day)
      await expect(async () => at.store.moveUsageFolded(day, { folded: 24, dueAt: AT })).rejects.toThrow(RangeError)
    })

    test('W30: one of two folds of an hour is decided on, and with it what is in it', async () => {
      const day = newDay()
      const [in1, in2] = [anItem(day), anItem(day, { ...runRef(2, day.tenant), from: 4 })]
      const fold = (items: UsageItem[]) => ({
        rows: sumReport(items.flatMap((i) => i.rows.map((r) => ({ ...r, team: i.team, tags: i.tags })))),
        taken: items,
      })
      expect(await at.store.hasUsageHour(day, 7)).toBe(false)
      expect(await at.store.isUsageTaken(in1)).toBeUndefined()
      expect(await at.store.putUsageHour(day, 7, fold([in1]), DRIVER)).toBe('written')
      expect(await at.store.putUsageHour(day, 7, fold([in1, in2]), OTHER_DRIVER)).toBe('already')
      expect(await at.store.hasUsageHour(day, 7)).toBe(true)
      expect(await at.store.isUsageTaken(in1)).toBe(true)
      expect(await at.store.isUsageTaken(in2)).toBe(false)
      expect(await at.store.isUsageTaken({ ...in2, from: null })).toBe(false)
    })
  })

  describe('a report', () => {
    const says = async (day: UsageDayRef) => {
      const rows = await at.store.readUsage(day)
      return rows.reduce((n, r) => n + r.totals.calls, 0)
    }
    const folded = async (day: UsageDayRef, hours: number) => {
      for (let hour = 0; hour < hours; hour++) {
        const items = await at.store.listUsage(day, hour)
        const rows = items.flatMap((i) => i.rows.map((r) => ({ ...r, team: i.team, tags: i.tags })))
        await at.store.putUsageHour(day, hour, { rows, taken: items }, DRIVER)
      }
    }

    test('counts items by themselves, then in the fold of their hour, then in that of the day', async () => {
      const day = newDay()
      await put(anItem(day))
      await put(anItem(day, { ...runRef(2, day.tenant), at: AT + 5 * HOUR }))
      expect(await says(day)).toBe(6)
      await at.store.openUsageDay(day, AT)
      await at.store.closeUsageHours(day, 8)
      await folded(day, 8)
      expect(await says(day)).toBe(6)
      await at.store.moveUsageFolded(day, { folded: 8, dueAt: AT })
      expect(await says(day)).toBe(6)
      await folded(day, 24)
      const rows = sumReport(await at.store.readUsageHours(day, 24))
      expect(await at.store.putUsageDay(day, rows, DRIVER)).toBe('written')
      expect(await at.store.putUsageDay(day, [], OTHER_DRIVER)).toBe('already')
      expect(await says(day)).toBe(6)
      await at.store.moveUsageFolded(day, { folded: 24, dueAt: null })
      expect(await says(day)).toBe(6)
      expect((await at.store.readUsage(day))[0]).toMatchObject({ team: 'crew', tags: { customer: 'Ä & Ö', empty: '' } })
    })

    test('W31: a late item counts beside the fold, and not while its hour is read item by item', async () => {
      const day = newDay()
      const late = anItem(day, { rows: [row(5)] })
      await at.store.openUsageDay(day, AT)
      await folded(day, 8)
      await put(late)
      expect(await at.store.hasLateUsage(late)).toBe(false)
      expect(await at.store.putLateUsage(late, DRIVER)).toBe('written')
      expect(await at.store.putLateUsage(late, DRIVER)).toBe('already')
      expect(await at.store.hasLateUsage(late)).toBe(true)
      expect(await says(day)).toBe(5)
      await at.store.moveUsageFolded(day, { folded: 8, dueAt: AT })
      expect(await says(day)).toBe(5)
    })

    test('of more runs and more kinds of rows than an item holds is read back whole', async () => {
      const day = newDay()
      await at.store.openUsageDay(day, AT)
      const taken = Array.from({ length: 12_000 }, (_, n) => anItem(day, { ...runRef(n * 7_919, day.tenant) }))
      const rows = Array.from({ length: 5_000 }, (_, i) => ({
        ...row(i + 1),
        team: 'crew',
        tags: { ticket: noise(100, `ticket ${i}`) },
      }))
      for (let hour = 0; hour < 24; hour++)
        await at.store.putUsageHour(day, hour, hour === 7 ? { rows, taken } : { rows: [], taken: [] }, DRIVER)
      expect(await at.store.isUsageTaken(taken.at(-1)!)).toBe(true)
      expect(await at.store.isUsageTaken(anItem(day, { ...runRef(1, day.tenant) }))).toBe(false)
      expect(await at.store.readUsageHours(day, 24)).toEqual(rows)
      await at.store.putUsageDay(day, rows, DRIVER)
      await at.store.moveUsageFolded(day, { folded: 24, dueAt: null })
      expect(await at.store.readUsage(day)).toEqual(rows)
    })

    test('with a fold missing is an error, and not a smaller sum', async () => {
      const day = newDay()
      await at.store.openUsageDay(day, AT)
      await folded(day, 3)
      await at.store.moveUsageFolded(day, { folded: 8, dueAt: AT })
      await expect(at.store.readUsage(day)).rejects.toThrow('only 3 have their fold')
    })
  })
}
