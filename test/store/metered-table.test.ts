import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { itemSize } from '../../src/store/item-size.ts'
import { type MeteredTable, meteredTable } from '../../src/store/metered-table.ts'
import { createStore } from '../../src/store/store.ts'
import {
  aChild,
  aHeader,
  aRequest,
  aResponse,
  aRun,
  books,
  childRef,
  DRIVER,
  rootRef,
  runRef,
  T0,
} from '../support/builders.ts'
import { TABLES, type TestTable } from '../support/tables.ts'

const NOTHING = {
  gets: 0,
  puts: 0,
  updates: 0,
  queries: 0,
  refused: 0,
  readUnits: 0,
  writeUnits: 0,
  indexUnits: 0,
  bytesWritten: 0,
}

describe.each(TABLES)('the meter on $name', ({ open }) => {
  let opened: TestTable
  let meter: MeteredTable
  let runs = 0
  beforeAll(async () => {
    opened = await open()
    meter = meteredTable(opened.table)
  })
  afterAll(() => opened?.close())
  const fresh = () => {
    meter.reset()
    return runRef(++runs)
  }

  test('starts at nothing, and again after a reset', () => {
    expect(meter.snapshot()).toEqual(NOTHING)
  })

  test('counts requests by kind, refusals, and units', async () => {
    const store = createStore(meter)
    const ref = rootRef(fresh())
    await store.putHeader(aHeader(ref))
    await store.putHeader(aHeader(ref))
    await store.putRequest(ref, aRequest(0), DRIVER)
    await store.stop(ref, { reason: 'cancelled', round: 1, now: T0 })
    await store.stop(ref, { reason: 'cancelled', round: 1, now: T0 })
    await store.getHeader(ref)
    await store.getHeader(ref, { consistent: false })
    await store.getHeader(childRef(ref, 1), { consistent: false })
    await store.readLog(ref)
    expect(meter.snapshot()).toMatchObject({
      gets: 3,
      puts: 3,
      updates: 2,
      queries: 1,
      refused: 2,
      readUnits: 1 + 0.5 + 0.5 + 1,
      writeUnits: 5,
      indexUnits: 0,
    })
  })

  test('counts the bytes of what was written', async () => {
    const store = createStore(meter)
    const ref = rootRef(fresh())
    await store.putHeader(aHeader(ref))
    const [item] = (await opened.items()).filter((i) => String(i.pk).endsWith(ref.runId))
    expect(meter.snapshot().bytesWritten).toBe(itemSize(item!))
  })

  test('an update of a large item costs the whole item, a large read too', async () => {
    fresh()
    const key = { pk: `T#large`, sk: 'x' }
    await meter.put({ item: { ...key, b: 'x'.repeat(50 * 1024) } })
    const change = { condition: 'attribute_exists(#pk)', update: 'SET #c = :c', names: { '#pk': 'pk', '#c': 'c' } }
    await meter.update({ key, ...change, values: { ':c': 1 } })
    await meter.get({ key, consistent: true })
    expect(meter.snapshot()).toMatchObject({ writeUnits: 51 + 51, readUnits: 13 })
  })

  test('writes of RUN write the indexes: `runs` each time, `due` when the time appears, moves or goes', async () => {
    const store = createStore(meter)
    const ref = fresh()
    const indexUnits = async (write: () => Promise<unknown>) => {
      meter.reset()
      await write()
      const { indexUnits, writeUnits } = meter.snapshot()
      expect(writeUnits).toBe(1)
      return indexUnits
    }
    const end = {
      round: 1,
      status: 'completed',
      stopReason: 'end_turn',
      error: null,
      books: books(1),
      sessions: 1,
      v: 1,
      reportedAt: T0,
    } as const
    expect(await indexUnits(() => store.createRun(aRun({ ...ref, dueAt: T0 })))).toBe(1 + 1)
    expect(await indexUnits(() => store.pushDue(ref, { dueAt: T0, updatedAt: T0 }, T0 + 1))).toBe(1 + 2)
    expect(await indexUnits(() => store.cancelRun(ref, { now: T0 + 3 }))).toBe(1 + 2)
    expect(await indexUnits(() => store.finishRun(ref, { ...end, dueAt: T0 + 2, now: T0 }))).toBe(1 + 2)
    expect(await indexUnits(() => store.undueRun(ref, { v: 1, dueAt: T0 + 2 }))).toBe(1 + 1)
    expect(await indexUnits(() => store.correctRun(ref, 1, { v: 2, books: books(2), now: T0 }))).toBe(1)
    expect(await indexUnits(() => store.correctRun(ref, 1, { v: 2, books: books(2), now: T0 }))).toBe(0)
    const round = { seenRound: 1, inputRef: 'x', dueAt: T0 + 3, now: T0 }
    expect(await indexUnits(() => store.openRound(ref, round))).toBe(1 + 1)
  })

  test('a meter that never saw the run before takes a due time that is set to have moved', async () => {
    const ref = fresh()
    await createStore(opened.table).createRun(aRun({ ...ref, dueAt: T0 }))
    const other = meteredTable(opened.table)
    await createStore(other).pushDue(ref, { dueAt: T0, updatedAt: T0 }, T0 + 1)
    expect(other.snapshot().indexUnits).toBe(1 + 2)
  })

  test('a leaf of one turn costs what the protocol says: header, claim, request, response, finish, settlement', async () => {
    const store = createStore(meter)
    const run = fresh()
    const [root, leaf] = [rootRef(run), childRef(rootRef(run), 0)]
    await store.putHeader(aHeader({ ...root, pending: new Set([0]) }))
    meter.reset()
    await store.putHeader(aChild(0, leaf))
    await store.claim(leaf, { seenAttempt: 0, driver: DRIVER, now: T0, lease: T0, first: null })
    await store.putRequest(leaf, aRequest(0), DRIVER)
    await store.putResponse(leaf, aResponse(0), DRIVER)
    const end = { round: 1, status: 'completed', stopReason: 'end_turn', error: null, unknowns: {}, now: T0 } as const
    await store.finish(leaf, { ...end, rows: [], finalTurn: 0, outputPreview: 'worker done' })
    const back = { usd: 0n, tok: 0n }
    await store.settle(root, { ordinal: 0, books: books(1), sessions: 1, lent: null, back, seen: null }, T0)
    expect(meter.snapshot()).toMatchObject({ writeUnits: 6, refused: 0, indexUnits: 0 })
  })
})
