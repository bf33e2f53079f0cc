/** What a report costs to read: folds, and the items that are not folded yet, in place of every run of the day. */
import { beforeAll, describe, expect, test } from 'vitest'
import { foldUsage } from '../../src/engine/fold-usage.ts'
import { settleUp } from '../../src/engine/settle.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { type MeteredTable, meteredTable } from '../../src/store/metered-table.ts'
import { rootRef, row, runRef } from '../support/builders.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'
import { endedRun, type World, worldOn } from './support.ts'

const HOUR = 3_600_000
const MIDNIGHT = Date.UTC(2026, 2, 1)
const FOLDED = 1_900
const OPEN = 100

/** 2,000 runs of three agents: 1,900 until 19:00, 100 after it; and it is 20:30. */
async function aDay(tags: (n: number) => { [name: string]: string }): Promise<{ world: World; meter: MeteredTable }> {
  const meter = meteredTable(memoryTable())
  const world = worldOn(meter, createVirtualClock(MIDNIGHT + 20.5 * HOUR))
  for (let n = 1; n <= FOLDED + OPEN; n++) {
    const at = n <= FOLDED ? MIDNIGHT + Math.floor((n * 19 * HOUR) / (FOLDED + 1)) : MIDNIGHT + 19 * HOUR + n * 1_000
    const rows = ['root', 'reader', 'writer'].map((agent) => row(2, { agent }))
    await endedRun(world.store, runRef(n), { run: { tags: tags(n) }, root: { rows, finishedAt: at } })
    await settleUp(world.ctx, rootRef(runRef(n)))
  }
  await foldUsage(world.ctx, { deadlineAt: world.clock.now() + HOUR })
  return { world, meter }
}

describe.each([
  { name: 'of few tags', tags: (n: number) => ({ customer: `c${n % 10}`, stage: 'production' }) },
  { name: 'each with a tag of its own', tags: (n: number) => ({ ticket: `TICKET-${n * 7919}` }) },
])('the report of a day of 2,000 finished runs $name, 1,900 folded and 100 not', ({ tags }) => {
  let world: World
  let meter: MeteredTable
  beforeAll(async () => {
    ;({ world, meter } = await aDay(tags))
  }, 120_000)

  const read = async () => {
    meter.reset()
    const rows = await world.store.readUsage({ tenant: 'local', day: '2026-03-01' })
    return { calls: rows.reduce((n, r) => n + r.totals.calls, 0), units: meter.snapshot().readUnits }
  }

  test('reads fewer than 100 read units, and counts every run', async () => {
    const folded = await world.store.getUsageDay({ tenant: 'local', day: '2026-03-01' })
    expect(folded).toMatchObject({ folded: 19 })
    const { calls, units } = await read()
    expect(calls).toBe((FOLDED + OPEN) * 6)
    expect(units).toBeLessThan(100)
  })

  test('reads less still when the whole day is folded', async () => {
    const before = await read()
    const day = { tenant: 'local', day: '2026-03-01' }
    await world.clock.advance(6 * HOUR)
    await foldUsage(world.ctx, { deadlineAt: world.clock.now() + HOUR })
    expect(await world.store.getUsageDay(day)).toEqual({ ...day, closing: 24, folded: 24, dueAt: null })
    const after = await read()
    expect(after.calls).toBe(before.calls)
    expect(after.units).toBeLessThan(before.units)
  })

  test('control: without folds it would read more than 100', async () => {
    meter.reset()
    for (let hour = 0; hour < 24; hour++) await world.store.listUsage({ tenant: 'local', day: '2026-03-01' }, hour)
    expect(meter.snapshot().readUnits).toBeGreaterThan(100)
  })
})
