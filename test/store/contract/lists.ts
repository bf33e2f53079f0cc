import { describe, expect, test } from 'vitest'
import { DUE_SHARDS } from '../../../src/domain/limits.ts'
import type { Run } from '../../../src/domain/run.ts'
import { dueShard } from '../../../src/store/keys.ts'
import {
  aChild,
  aHeader,
  anUnknown,
  aRequest,
  aResponse,
  aRun,
  aToolResult,
  childRef,
  DRIVER,
  rootRef,
  runRef,
  T0,
} from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { bench } from './write-cases.ts'

interface Page<T> {
  readonly items: readonly T[]
  readonly next?: string
}

/** Every page of a list. */
async function pages<T>(list: (after: string | undefined) => Promise<Page<T>>): Promise<(readonly T[])[]> {
  const all: (readonly T[])[] = []
  let after: string | undefined
  do {
    const page = await list(after)
    all.push(page.items)
    after = page.next
  } while (after !== undefined)
  return all
}

const from = (after: string | undefined) => (after === undefined ? {} : { after })

export function listsContract(open: () => Promise<TestTable>): void {
  const at = bench(open)

  describe('runs of a tenant', () => {
    const STATUSES: Run['status'][] = ['running', 'completed', 'failed']

    test('newest first, by pages, without those of others', async () => {
      const runs = Array.from({ length: 7 }, (_, i) =>
        aRun({ ...runRef(100 + i, 'lister'), status: STATUSES[i % 3]!, team: `t${i % 2}` }),
      )
      for (const run of [...runs].reverse()) await at.store.createRun(run)
      await at.store.createRun(aRun(runRef(200, 'listers')))
      await at.store.createRun(aRun(runRef(200, 'liste')))
      const newest = [...runs].reverse()

      expect(await pages((after) => at.store.listRuns('lister', { limit: 3, ...from(after) }))).toEqual([
        newest.slice(0, 3),
        newest.slice(3, 6),
        newest.slice(6),
      ])
      expect(await at.store.listRuns('lister', { limit: 7 })).toEqual({ items: newest })
      expect(await at.store.listRuns('nobody', { limit: 7 })).toEqual({ items: [] })

      const completed = newest.filter((run) => run.status === 'completed')
      expect(
        await pages((after) => at.store.listRuns('lister', { limit: 1, status: 'completed', ...from(after) })),
      ).toEqual(completed.map((run) => [run]))
      expect((await at.store.listRuns('lister', { limit: 9, team: 't1' })).items).toEqual(
        newest.filter((run) => run.team === 't1'),
      )
      expect((await at.store.listRuns('lister', { limit: 9, team: 't1', status: 'running' })).items).toEqual(
        newest.filter((run) => run.team === 't1' && run.status === 'running'),
      )
    })

    test('a filter that few runs pass still fills its pages', async () => {
      for (let i = 0; i < 60; i++)
        await at.store.createRun(aRun({ ...runRef(i, 'sparse'), team: i % 20 === 0 ? 'rare' : 'common' }))
      expect(
        await pages((after) => at.store.listRuns('sparse', { limit: 2, team: 'rare', ...from(after) })),
      ).toMatchObject([[{ runId: runRef(40).runId }, { runId: runRef(20).runId }], [{ runId: runRef(0).runId }]])
    })

    test.each(['', 'x', '{}', 'TURN#x'])('a cursor %j is refused', async (after) => {
      await expect(async () => at.store.listRuns('lister', { limit: 1, after })).rejects.toMatchObject({
        code: 'bad_cursor',
      })
    })
  })

  describe('runs that are due', () => {
    test('earliest first, of one shard, until now, and gone when they are due no more', async () => {
      const shard = dueShard(runRef(300).runId)
      const runs = Array.from({ length: 200 }, (_, i) =>
        aRun({ ...runRef(300 + i, 'due'), dueAt: T0 + ((i * 7) % 200) }),
      )
      for (const run of runs) await at.store.createRun(run)
      const now = T0 + 150
      const due = runs
        .filter((run) => dueShard(run.runId) === shard && run.dueAt! <= now)
        .sort((a, b) => a.dueAt! - b.dueAt!)
        .map(({ tenant, runId }) => ({ tenant, runId }))
      const found = await pages((after) => at.store.dueRuns(shard, now, { limit: 4, ...from(after) }))
      expect(found.flat().filter((ref) => ref.tenant === 'due')).toEqual(due)
      expect(due.length).toBeGreaterThan(8)
      expect(found.slice(0, -1).every((page) => page.length === 4)).toBe(true)

      const first = runs.find((run) => run.runId === due[0]!.runId)!
      await at.store.pushDue(first, first, now + 1_000)
      const second = runs.find((run) => run.runId === due[1]!.runId)!
      const end = {
        round: 1,
        status: 'completed',
        stopReason: 'end_turn',
        error: null,
        books: {},
        sessions: 1,
        v: 0,
        reportedAt: now,
      } as const
      await at.store.finishRun(second, { ...end, dueAt: null, now })
      const left = await pages((after) => at.store.dueRuns(shard, now, { limit: 50, ...from(after) }))
      expect(left.flat().filter((ref) => ref.tenant === 'due')).toEqual(due.slice(2))
    })

    test('every run is in one shard', async () => {
      const shards = new Set(Array.from({ length: 200 }, (_, i) => dueShard(runRef(i).runId)))
      expect([...shards].sort()).toEqual(Array.from({ length: DUE_SHARDS }, (_, i) => i))
    })

    test.each(['', '[]', '[1]', '["x","y"]', '[1,"T#a#IDEM"]'])('a cursor %j is refused', async (after) => {
      await expect(async () => at.store.dueRuns(0, T0, { limit: 1, after })).rejects.toMatchObject({
        code: 'bad_cursor',
      })
    })
  })

  describe('one run', () => {
    test('a run and its headers come in one query, and nothing else does', async () => {
      const ref = at.newRun()
      const root = rootRef(ref)
      const run = aRun(ref)
      const headers = [aHeader(root), ...Array.from({ length: 30 }, (_, i) => aChild(i, childRef(root, i)))]
      await at.store.putInput(ref, 1, DRIVER, { input: 'hello' })
      await at.store.createRun(run)
      for (const header of headers) await at.store.putHeader(header)
      await at.store.putRequest(root, aRequest(), DRIVER)
      const sorted = [...headers].sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1))

      expect(await at.store.getRunWithSessions(ref)).toEqual({ run, headers: sorted })
      expect(await at.store.listHeaders(ref, {})).toEqual({ items: sorted })
      expect(await at.store.listHeaders(ref, { consistent: false })).toEqual({ items: sorted })
      const paged = await pages((after) => at.store.listHeaders(ref, { limit: 10, ...from(after) }))
      expect(paged.map((page) => page.length)).toEqual([10, 10, 10, 1])
      expect(paged.flat()).toEqual(sorted)
      await expect(async () => at.store.listHeaders(ref, { limit: 1, after: 'x' })).rejects.toMatchObject({
        code: 'bad_cursor',
      })
    })

    test('a run that is not there has no sessions', async () => {
      expect(await at.store.getRunWithSessions(at.newRun())).toEqual({ run: undefined, headers: [] })
    })

    test('calls of all sessions in the order of their keys, without bodies and without what was never called', async () => {
      const ref = at.newRun()
      const sessions = [0, 1, 2]
        .map((i) => childRef(rootRef(ref), i))
        .sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1))
      for (const session of sessions) {
        for (let n = 0; n < 4; n++) {
          await at.store.putRequest(session, aRequest(n), DRIVER)
          await at.store.putToolResult(session, aToolResult(n, 0), DRIVER)
        }
        await at.store.putResponse(session, aResponse(0), DRIVER)
        await at.store.putResponse(session, aResponse(1, { outcome: 'none', cost: 0n }), DRIVER)
        await at.store.putResponse(session, anUnknown(2), DRIVER)
        await at.store.putResponse(session, aResponse(3, { outcome: 'duplicate', cost: null, price: null }), DRIVER)
      }
      const rows = sessions.flatMap(({ sessionId }) =>
        [aResponse(0), anUnknown(2), aResponse(3, { outcome: 'duplicate', cost: null, price: null })].map(
          ({ message: _, ...slot }) => ({ ...slot, sessionId }),
        ),
      )
      const found = await pages((after) => at.store.listCalls(ref, { limit: 2, ...from(after) }))
      expect(found.flat()).toEqual(rows)
      expect(found.map((page) => page.length)).toEqual([2, 2, 2, 2, 1])
      expect(await at.store.listCalls(ref, { limit: 9 })).toEqual({ items: rows })
    })

    test.each(['', 'RUN', 'TURN#x', `TURN#${'0'.repeat(20)}#000001#0`])('a cursor %j is refused', async (after) => {
      await expect(async () => at.store.listCalls(runRef(), { limit: 1, after })).rejects.toMatchObject({
        code: 'bad_cursor',
      })
    })
  })
}
