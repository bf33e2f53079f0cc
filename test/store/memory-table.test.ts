import { describe, expect, test } from 'vitest'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { Attribute, Item } from '../../src/store/table-client.ts'
import { aChild, aHeader, aRun, childRef, rootRef, runRef, T0 } from '../support/builders.ts'

describe('copies', () => {
  test('neither what was put nor what was read can change what is stored', async () => {
    const table = memoryTable()
    const item = { pk: 'p', sk: 's', map: { list: [1] }, set: new Set([1]), bytes: new Uint8Array([1]) }
    await table.put({ item })
    const spoil = (it: { [name: string]: unknown }) => {
      ;(it as typeof item).map.list.push(2)
      ;(it as typeof item).set.add(2)
      ;(it as typeof item).bytes[0] = 9
    }
    spoil(item)
    const read = async () => (await table.get({ key: { pk: 'p', sk: 's' }, consistent: true })).item!
    spoil(await read())
    spoil(table.items()[0]! as { [name: string]: unknown })
    expect(await read()).toEqual({
      pk: 'p',
      sk: 's',
      map: { list: [1] },
      set: new Set([1]),
      bytes: new Uint8Array([1]),
    })
  })
})

describe('what a client would drop or refuse is refused here', () => {
  test.each([
    ['undefined', undefined],
    ['undefined within', { a: [undefined] }],
    ['a function', () => {}],
  ])('D12: %s in an item', async (_what, value) => {
    await expect(
      memoryTable().put({ item: { pk: 'p', sk: 's', value: value as unknown as Attribute } }),
    ).rejects.toThrow('cannot be stored')
  })

  test.each([
    ['no sort key', { pk: 'p' }],
    ['an empty key', { pk: '', sk: 's' }],
    ['a partition key beyond 2,048 bytes', { pk: 'ä'.repeat(1025), sk: 's' }],
    ['a sort key beyond 1,024 bytes', { pk: 'p', sk: 'ä'.repeat(513) }],
    ['an index key of another type', { pk: 'p', sk: 's', da: 'x' }],
  ])('an item with %s', async (_what, item) => {
    await expect(memoryTable().put({ item: item as Item })).rejects.toThrow()
  })

  test('a bare attribute name, reserved or not', async () => {
    const table = memoryTable()
    await expect(table.put({ item: { pk: 'p', sk: 's' }, condition: 'attribute_not_exists(pk)' })).rejects.toThrow(
      'pk stands bare',
    )
  })
})

describe('stale reads', () => {
  const stale = () => true

  test('a reader that need not be consistent sees the item before its last write', async () => {
    const store = createStore(memoryTable({ stale }))
    const ref = rootRef()
    await store.putHeader(aHeader(ref))
    const read = async (consistent: boolean) => store.getHeader(ref, { consistent })
    expect(await read(false)).toBeUndefined()
    expect(await read(true)).toMatchObject({ stop: null })
    await store.stop(ref, { reason: 'cancelled', round: 1, now: T0 })
    expect(await read(false)).toMatchObject({ stop: null })
    expect(await read(true)).toMatchObject({ stop: 'cancelled' })
  })

  test('so does a query, and one that is consistent does not', async () => {
    const store = createStore(memoryTable({ stale }))
    const run = runRef()
    await store.createRun(aRun(run))
    await store.cancelRun(run, { now: T0 })
    await store.putHeader(aChild(0, childRef(rootRef(run), 0)))
    expect(await store.getRunWithSessions(run)).toMatchObject({ run: { stop: null }, headers: [] })
    expect((await store.listHeaders(run, { consistent: true })).items).toHaveLength(1)
    expect((await store.listRuns('local', { limit: 1 })).items).toMatchObject([{ stop: null }])
  })

  test('which items are stale can be chosen, read by read', async () => {
    const seen: string[] = []
    const table = memoryTable({ stale: ({ sk }) => seen.push(sk) > 1 })
    const store = createStore(table)
    await store.createRun(aRun())
    expect(await store.getRun(runRef(), { consistent: false })).toBeDefined()
    expect(await store.getRun(runRef(), { consistent: false })).toBeUndefined()
    expect(seen).toEqual(['RUN', 'RUN'])
  })

  test('a write is decided by the item as it is', async () => {
    const store = createStore(memoryTable({ stale }))
    await store.putHeader(aHeader())
    expect(await store.putHeader(aHeader())).toBe('already')
    expect((await store.stop(rootRef(), { reason: 'cancelled', round: 1, now: T0 })).written).toBe(true)
    expect((await store.stop(rootRef(), { reason: 'cancelled', round: 1, now: T0 })).written).toBe(false)
  })
})

test('keys sort by their bytes in UTF-8, not by UTF-16 units', async () => {
  const table = memoryTable()
  const sks = ['a', 'z', 'ä', '\uffee', '🧾']
  for (const sk of [...sks].reverse()) await table.put({ item: { pk: 'p', sk } })
  expect(table.items().map((item) => item.sk)).toEqual(sks)
})

test('a partition of ten thousand sessions is still looked up in its order', async () => {
  const table = memoryTable()
  for (let i = 0; i < 10_000; i++) await table.put({ item: { pk: 'p', sk: `S#${(i * 7919) % 10_000}#x` } })
  const query = {
    keyCondition: '#pk = :pk AND begins_with(#sk, :s)',
    names: { '#pk': 'pk', '#sk': 'sk' },
    consistent: true,
  }
  const found = await table.query({ ...query, values: { ':pk': 'p', ':s': 'S#777' } })
  expect(found.items.map((item) => item.sk)).toEqual([
    ...Array.from({ length: 1 }, () => 'S#777#x'),
    ...Array.from({ length: 10 }, (_, i) => `S#777${i}#x`),
  ])
})
