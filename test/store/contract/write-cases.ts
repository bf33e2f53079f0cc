import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Run, RunRef, SessionRef } from '../../../src/domain/run.ts'
import type { SessionHeader } from '../../../src/domain/session.ts'
import type { Store, Written } from '../../../src/ports.ts'
import { createStore } from '../../../src/store/store.ts'
import type { TableClient } from '../../../src/store/table-client.ts'
import { aRun, aRunningHeader, rootRef, runRef } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'

/** One table for a group of tests, each of which takes a run of its own. */
export interface Bench {
  readonly store: Store
  readonly table: TableClient
  /** a run that no other test uses */
  newRun(): RunRef
}

export function bench(open: () => Promise<TestTable>): Bench {
  let opened: TestTable
  let store: Store
  let runs = 0
  beforeAll(async () => {
    opened = await open()
    store = createStore(opened.table)
  })
  afterAll(() => opened?.close())
  return {
    get store() {
      return store
    },
    get table() {
      return opened.table
    },
    newRun: () => runRef(++runs),
  }
}

/** A state of an item and a write that must hold on it. Everything a refusal differs in is given, so that no part of a condition goes unseen. */
interface WriteCase<T, Ref> {
  readonly name: string
  /** what differs from a root that runs on its first claim, or from a running run */
  readonly from: Partial<T>
  readonly write: (store: Store, ref: Ref) => Promise<Written<T>>
  readonly becomes: Partial<T>
  /** each part of the condition: a state that differs from `from` in this alone */
  readonly refused: { readonly [why: string]: Partial<T> }
  /** may be repeated, and changes nothing more */
  readonly repeatable?: true
}

export type HeaderCase = WriteCase<SessionHeader, SessionRef>
export type RunCase = WriteCase<Run, RunRef>

export function headerCases(at: Bench, cases: readonly HeaderCase[]): void {
  writeCases(cases, {
    async put(state) {
      const ref = rootRef(at.newRun())
      const header = aRunningHeader({ ...ref, ...state })
      await at.store.putHeader(header)
      return { ref, item: header }
    },
    read: (ref) => at.store.getHeader(ref),
    store: () => at.store,
  })
}

export function runCases(at: Bench, cases: readonly RunCase[]): void {
  writeCases(cases, {
    async put(state) {
      const ref = at.newRun()
      const run = aRun({ ...ref, ...state })
      await at.store.createRun(run)
      return { ref, item: run }
    },
    read: (ref) => at.store.getRun(ref),
    store: () => at.store,
  })
}

function writeCases<T, Ref>(
  cases: readonly WriteCase<T, Ref>[],
  on: {
    put(state: Partial<T>): Promise<{ ref: Ref; item: T }>
    read(ref: Ref): Promise<T | undefined>
    store(): Store
  },
): void {
  describe.each(cases)('$name', (c) => {
    test('writes what it says, and nothing else', async () => {
      const { ref, item } = await on.put(c.from)
      const after = { ...item, ...c.becomes }
      expect(await c.write(on.store(), ref)).toEqual({ written: true, item: after })
      expect(await on.read(ref)).toEqual(after)
    })

    test.each(Object.entries(c.refused))('is refused: %s', async (_why, state) => {
      const { ref, item } = await on.put({ ...c.from, ...state })
      expect(await c.write(on.store(), ref)).toEqual({ written: false })
      expect(await on.read(ref)).toEqual(item)
    })

    test('is refused where there is no item', async () => {
      const { ref } = await on.put(c.from)
      const nowhere =
        'sessionId' in (ref as object) ? { ...ref, sessionId: '0'.repeat(20) } : { ...ref, tenant: 'nobody' }
      expect(await c.write(on.store(), nowhere)).toEqual({ written: false })
      expect(await on.read(nowhere)).toBeUndefined()
    })

    test(c.repeatable ? 'changes nothing more when repeated' : 'is refused the second time', async () => {
      const { ref, item } = await on.put(c.from)
      await c.write(on.store(), ref)
      expect((await c.write(on.store(), ref)).written).toBe(c.repeatable === true)
      expect(await on.read(ref)).toEqual({ ...item, ...c.becomes })
    })

    test(`${c.repeatable ? 'all' : 'one'} of 50 at once is written`, async () => {
      const { ref, item } = await on.put(c.from)
      const done = await Promise.all(Array.from({ length: 50 }, () => c.write(on.store(), ref)))
      expect(done.filter((d) => d.written)).toHaveLength(c.repeatable ? 50 : 1)
      expect(await on.read(ref)).toEqual({ ...item, ...c.becomes })
    })
  })
}
