/** Places of a tenant's runs: within a limit, once each, whoever repeats or races. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Place } from '../../../src/ports/place-store.ts'
import type { Store } from '../../../src/ports.ts'
import { createStore } from '../../../src/store/store.ts'
import { runId } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'

export function placesContract(open: () => Promise<TestTable>): void {
  let table: TestTable
  let store: Store
  beforeAll(async () => {
    table = await open()
    store = createStore(table.table)
  })
  afterAll(() => table.close())
  const place = (n: number, sessions = 1): Place => ({ runId: runId(n), sessions })
  const sorted = (places: readonly Place[]) => places.toSorted((a, b) => (a.runId < b.runId ? -1 : 1))

  test('places are taken as far as the limit goes, and what is there is told', async () => {
    expect(await store.takePlace('a', place(1, 6), 10)).toEqual({ taken: true, places: [place(1, 6)] })
    expect(await store.takePlace('a', place(2, 5), 10)).toEqual({ taken: false, places: [place(1, 6)] })
    expect(await store.takePlace('a', place(3, 4), 10)).toMatchObject({ taken: true })
    expect(await store.takePlace('a', place(4), 10)).toMatchObject({ taken: false })
    expect(await store.takePlace('b', place(4, 10), 10)).toEqual({ taken: true, places: [place(4, 10)] })
  })

  test('a place counts once, however often it is taken or given back', async () => {
    for (let i = 0; i < 3; i++) await store.takePlace('c', place(1, 6), 10)
    for (let i = 0; i < 3; i++) await store.takePlace('c', place(2, 4), 10)
    for (let i = 0; i < 3; i++) await store.givePlaceBack('c', place(1, 6))
    const { taken, places } = await store.takePlace('c', place(3, 6), 10)
    expect([taken, sorted(places)]).toEqual([true, [place(2, 4), place(3, 6)]])
    await store.givePlaceBack('c', place(2, 4))
    await store.givePlaceBack('c', place(3, 6))
    expect(await store.takePlace('c', place(4, 10), 10)).toEqual({ taken: true, places: [place(4, 10)] })
  })

  test('of many at once as many are let in as there is room for', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => store.takePlace('d', place(n, 2), 10)))
    expect(answers.filter((a) => a.taken)).toHaveLength(5)
  })
}
