import { describe, expect, test } from 'vitest'
import { decodeHeader, encodeHeader } from '../../src/store/header-codec.ts'
import { BadItemError } from '../../src/store/item-reader.ts'
import { PART_SLOT, partKey, responseKey } from '../../src/store/keys.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { decodeRun, encodeRun } from '../../src/store/run-codec.ts'
import { createStore } from '../../src/store/store.ts'
import { A, TOTALS } from '../../src/store/table.ts'
import type { Attribute, Item } from '../../src/store/table-client.ts'
import {
  aHeader,
  anIntent,
  aResponse,
  aRun,
  aToolResult,
  DRIVER,
  noise,
  rootRef,
  row,
  runRef,
} from '../support/builders.ts'

const without = (item: Item, name: string): Item =>
  Object.fromEntries(Object.entries(item).filter(([other]) => other !== name))

const OPTIONAL = {
  run: ['agent', 'stop', 'stopReason', 'error', 'tasks', 'dueAt', 'cancelRequestedAt', 'finishedAt', 'expiresAt'],
  header: [
    ...['parentId', 'agent', 'viaTurn', 'stop', 'stopReason', 'error', 'driver', 'lease', 'asks', 'wakeAt', 'pending'],
    ...[
      'waitingOn',
      'waitAll',
      'needs',
      'first',
      'startedAt',
      'finishedAt',
      'taskPreview',
      'outputPreview',
      'finalTurn',
    ],
  ],
}
const run = encodeRun(aRun())
const header = encodeHeader(
  aHeader({
    rows: [row(1)],
    seen: { 3: { v: 1, books: {} } },
    unknowns: { 2: { usd: 1n, tok: 1n } },
    first: anIntent(),
  }),
)
/** read from the key, or by nobody */
const ASIDE: readonly string[] = [A.pk, A.sk, A.version, A.runsTenant, A.runsId, A.dueShard]
const longName = (short: string) => Object.entries(A).find(([, s]) => s === short)![0]
const required = (item: Item, optional: readonly string[]) =>
  Object.keys(item)
    .filter((short) => !ASIDE.includes(short))
    .map(longName)
    .filter((name) => !optional.includes(name))
    .map((name) => [name])

describe('an item that does not say what it must', () => {
  test.each(required(run, OPTIONAL.run))('a run without %s is an error that names it', (name) => {
    const short = A[name as keyof typeof A]
    expect(() => decodeRun(without(run, short))).toThrow(
      `#RUN#${runRef().runId} RUN: attribute ${short} (${name}) is missing`,
    )
  })

  test.each(required(header, OPTIONAL.header))('a header without %s is an error that names it', (name) => {
    const short = A[name as keyof typeof A]
    expect(() => decodeHeader(without(header, short))).toThrow(`attribute ${short} (${name}) is missing`)
  })

  test.each([
    ['status', 'strange', 'which is none of'],
    ['status', 7, 'is not a string'],
    ['attempt', '1', 'is not a whole number'],
    ['attempt', 1.5, 'is not a whole number'],
    ['ownUsd', '12', 'is not a whole number'],
    ['ownTok', 0.5, 'is not a whole number'],
    ['pending', [1, 2], 'is not a set of whole numbers'],
    ['pending', new Set(['a']), 'is not a set of whole numbers'],
    ['asks', new Set([1]), 'is not a set of strings'],
    ['waitAll', 2, 'is neither 1 nor absent'],
    ['lent', 'x', 'is not a map'],
    ['lent', { 3: 5 }, 'lent.3 is not a map'],
    ['lent', { 3: { u: 1 } }, 'attribute t (tok) is missing'],
    ['rows', {}, 'is not a list'],
    ['rows', [{ a: 'x', k: 'm', x: 'z', t: {} }], 'attribute x (outcome) is no outcome'],
    ['seen', { 3: { v: 1 } }, 'attribute b (books) is missing'],
    ['first', { u: 1 }, 'attribute t (holdTok) is missing'],
    ['error', { c: 'x' }, 'attribute m (message) is missing'],
    ['stopReason', 'because', 'which is none of'],
  ] as [keyof typeof A, Attribute, string][])(
    'a header with %s %j is an error that says why',
    (name, value, message) => {
      expect(() => decodeHeader({ ...header, [A[name]]: value })).toThrow(BadItemError)
      expect(() => decodeHeader({ ...header, [A[name]]: value })).toThrow(message)
    },
  )

  test('a total of settled children that is no number is an error', () => {
    expect(() => decodeHeader({ ...header, kac: 'x' })).toThrow(
      'attribute kac (kids.accepted.calls) is not a whole number',
    )
  })

  test('an item of another kind is an error', () => {
    expect(() => decodeRun(header)).toThrow('is no item of a run')
    expect(() => decodeHeader(run)).toThrow('is no key of a session')
  })
})

test('attributes of a later version are left alone', () => {
  const later = { ...run, [A.version]: 2, zz9: 'new', zy: new Set([1]) }
  expect(decodeRun(later)).toEqual(decodeRun(run))
  expect(decodeHeader({ ...header, [A.version]: 2, zz9: { a: 1 } })).toEqual(decodeHeader(header))
})

describe('a damaged log', () => {
  const ref = rootRef()
  const damaged = async (change: (item: Item) => Item) => {
    const table = memoryTable()
    const store = createStore(table)
    const content = 'x'.repeat(100)
    await store.putResponse(ref, aResponse(0), DRIVER)
    await store.putToolResult(ref, aToolResult(0, 0, { content }), DRIVER)
    for (const item of table.items()) await table.put({ item: change(item) })
    return store
  }

  test.each([
    ['a body that is no JSON', (item: Item) => ({ ...item, [A.body]: '{' }), 'its body is not JSON'],
    ['a body of another type', (item: Item) => ({ ...item, [A.body]: 7 }), 'is neither text nor binary'],
    ['a deflated body that is cut', (item: Item) => ({ ...item, [A.body]: new Uint8Array([1, 2]) }), 'is damaged'],
    ['a body of another shape', (item: Item) => ({ ...item, [A.body]: '[]' }), 'its body is no'],
    ['no time', (item: Item) => without(without(item, A.at), A.startedAt), 'is missing'],
  ])('with %s is an error that names the slot', async (_what, change, message) => {
    const store = await damaged(change)
    await expect(store.readLog(ref)).rejects.toThrow(BadItemError)
    await expect(store.readLog(ref)).rejects.toThrow(message)
    await expect(store.getToolResult(ref, 0, 0)).rejects.toThrow(`TURN#${ref.sessionId}#000000#2#0000`)
  })

  test('without its usage, an outcome is an error and not a call that was free', async () => {
    const store = await damaged((item) => without(item, A.usage))
    await expect(store.getResponse(ref, 0)).rejects.toThrow('attribute u (usage) is missing')
    const noCost = await damaged((item) => without(item, A.cost))
    await expect(noCost.getResponse(ref, 0)).rejects.toThrow('attribute c (cost) is missing')
    const fraction = await damaged((item) => ({ ...item, [A.usage]: { [TOTALS.inputTokens]: 0.5 } }))
    await expect(fraction.getResponse(ref, 0)).rejects.toThrow('(inputTokens) is not a whole number')
  })

  test('whose part is missing, or short, is an error that says which', async () => {
    const table = memoryTable()
    const store = createStore(table)
    const content = noise(600_000, 'parts')
    await store.putResponse(ref, aResponse(0, { message: { role: 'assistant', content, toolCalls: [] } }), DRIVER)
    const slot = table.items().find((item) => item[A.sk] === responseKey(ref, 0).sk)!
    expect(slot[A.parts]).toBeDefined()

    const other = memoryTable()
    await other.put({ item: slot })
    await expect(createStore(other).readLog(ref)).rejects.toThrow(/part 0 of 2 of its body is missing/)
    await expect(createStore(other).getResponse(ref, 0)).rejects.toThrow(/part 0 of 2 of its body is missing/)

    for (const item of table.items()) await other.put({ item })
    const part = partKey(ref, 0, DRIVER, PART_SLOT.response, 1)
    await other.put({ item: { ...part, [A.raw]: new Uint8Array(3) } })
    await expect(createStore(other).getResponse(ref, 0)).rejects.toThrow(
      /its parts have \d+ bytes, they should have \d+/,
    )
  })

  test('an input whose part is missing is an error', async () => {
    const table = memoryTable()
    const store = createStore(table)
    await store.putInput(runRef(), 1, DRIVER, { input: 'x'.repeat(1_000_000) })
    const [first] = table.items()
    const other = memoryTable()
    await other.put({ item: first! })
    await expect(createStore(other).getInput(runRef(), 1, DRIVER)).rejects.toThrow('part 1 of 3 is missing')
  })
})
