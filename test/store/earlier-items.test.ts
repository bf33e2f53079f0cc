/** Items that an earlier version has stored are read, and changed, as they are. */
import { expect, test } from 'vitest'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import { aRun, money, T0 as NOW, runRef } from '../support/builders.ts'

test('a run whose budget was never changed has no number for it', async () => {
  const table = memoryTable()
  const store = createStore(table)
  const run = aRun()
  await store.createRun(run)
  expect(table.items()[0]).not.toHaveProperty('bq')
  expect(await store.getRun(run)).toMatchObject({ budgetSeq: 0 })
  const to = { seen: run, limit: money(9), resume: null, now: NOW }
  expect(await store.changeLimit(run, to)).toMatchObject({ written: true, item: { budgetSeq: 1 } })
  expect((await store.warnBudget(run, 0, NOW)).written).toBe(false)
  expect((await store.warnBudget(run, 1, NOW)).written).toBe(true)
  // nothing is made of a run that is not there
  expect((await store.warnBudget(runRef(2), 0, NOW)).written).toBe(false)
  expect(table.items()).toHaveLength(1)
})
