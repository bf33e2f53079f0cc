import { describe, expect, test } from 'vitest'
import { booksOf, NO_TOTALS } from '../../src/domain/usage.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { createApp } from '../../src/http/app.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { decodeRun, encodeRun } from '../../src/store/run-codec.ts'
import { createStore } from '../../src/store/store.ts'
import { A } from '../../src/store/table.ts'
import type { Item } from '../../src/store/table-client.ts'
import { aRun, aRunningHeader, DRIVER, money, rootRef, row, runRef, T0 } from '../support/builders.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { TABLES } from '../support/tables.ts'

const team = scriptedTeam('echo', [{ agent: agent('root'), steps: [{ text: 'done', usage: { input: 1, output: 1 } }] }])
const NAMES = ['constructor', 'toString', 'hasOwnProperty', 'length', 'N', '__proto__']
const tagsOf = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, `of ${name}`]))

describe.each(TABLES)('tags of any name, on $name', ({ open }) => {
  test('are stored with the run, and are in its usage and its reports', async () => {
    const at = await open()
    try {
      const { ctx, invoker, complaints } = testEngine({ table: at.table, teams: [team] })
      const run = await startRun(ctx, { tenant: 'local', team: 'echo', input: 'go', tags: tagsOf(NAMES) })
      await invoker.drain()
      const stored = await ctx.store.getRun(run, { consistent: true })
      expect(stored!.status).toBe('completed')
      expect(Object.entries(stored!.tags).sort()).toEqual(Object.entries(tagsOf(NAMES)).sort())
      const rows = await ctx.store.readUsage({
        tenant: 'local',
        day: new Date(ctx.clock.now()).toISOString().slice(0, 10),
      })
      expect(rows.map((r) => Object.entries(r.tags).sort())).toEqual([Object.entries(tagsOf(NAMES)).sort()])
      expect(complaints.filter((line) => !line.includes('no price'))).toEqual([])
      await invoker.close()
    } finally {
      await at.close()
    }
  })

  test('come in by HTTP and go out again', async () => {
    const at = await open()
    try {
      const { ctx, invoker } = testEngine({ table: at.table, teams: [team] })
      const app = createApp(ctx, { tenantOf: () => 'local' })
      const tags = tagsOf(NAMES.filter((name) => name !== '__proto__'))
      const created = await app.request('/v1/runs', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ team: 'echo', input: 'go', tags }),
      })
      expect(created.status).toBe(202)
      const { runId } = (await created.json()) as { runId: string }
      await invoker.drain()
      const read = (await (await app.request(`/v1/runs/${runId}`)).json()) as { tags: object }
      expect(read).toMatchObject({ status: 'completed', tags })
      await invoker.close()
    } finally {
      await at.close()
    }
  })
})

test('tags that an earlier version stored as a map are read', () => {
  const tags = { customer: 'acme' }
  expect(decodeRun({ ...encodeRun(aRun()), [A.tags]: tags }).tags).toEqual(tags)
})

test.each([['[["a",1]]'], ['["a"]'], ['{}'], ['no JSON'], [7]])('tags stored as %s are an error', (stored) => {
  expect(() => decodeRun({ ...encodeRun(aRun()), [A.tags]: stored })).toThrow(/tag/)
})

test.each([
  ['constructor', { constructor: 'x' }],
  ['__proto__', JSON.parse('{"__proto__": "x"}') as object],
])('the table in memory refuses a map with %s, as the real client does', async (name, map) => {
  const put = (item: object) => memoryTable().put({ item: { pk: 'p', sk: 's', ...item } as Item })
  await expect(put({ map })).rejects.toThrow(`map has an attribute named ${name}`)
  await expect(put({ list: [map] })).rejects.toThrow(`list[0] has an attribute named ${name}`)
})

const MOST = Number.MAX_SAFE_INTEGER
const huge = { ...NO_TOTALS, calls: 1, inputTokens: MOST, outputTokens: MOST, cost: 10n ** 20n }

describe.each(TABLES)('totals beyond the safe integers, on $name', ({ open }) => {
  test('stay at the largest, and the run can be read, cancelled and ended', async () => {
    const at = await open()
    try {
      const store = createStore(at.table)
      const rows = [row(1, { totals: huge }), row(1, { agent: 'other', totals: huge })]
      await store.createRun(aRun())
      await store.putHeader(aRunningHeader({ next: 3, pending: new Set([0, 1, 2]), avail: money(4) }))
      for (const ordinal of [0, 1, 2]) {
        const books = booksOf([rows[0]!])
        const settled = await store.settle(
          rootRef(),
          { ordinal, books, sessions: 1, lent: null, back: money(0), seen: { v: ordinal, books } },
          T0,
        )
        expect(settled.written).toBe(true)
      }
      const header = await store.getHeader(rootRef(), { consistent: true })
      expect(header!.kids.accepted).toEqual({ ...huge, calls: 3, cost: 3n * huge.cost })
      expect((await store.cancelRun(runRef(), { now: T0 })).written).toBe(true)
      const finished = await store.finish(rootRef(), {
        round: 1,
        status: 'cancelled',
        stopReason: 'cancelled',
        error: null,
        rows,
        unknowns: {},
        finalTurn: null,
        outputPreview: null,
        now: T0,
      })
      expect(finished.written).toBe(true)
      const books = booksOf(rows)
      const to = { round: 1, status: 'cancelled', stopReason: 'cancelled', error: null, sessions: 4, v: 3 } as const
      await store.finishRun(runRef(), { ...to, books, reportedAt: T0, dueAt: null, now: T0 })
      const run = await store.getRun(runRef(), { consistent: true })
      expect(run!.books.accepted).toEqual({ ...huge, calls: 2, cost: 2n * huge.cost })
      const day = { tenant: runRef().tenant, day: '2026-03-01' }
      const fold = [{ ...rows[0]!, team: 't', tags: {} }]
      await store.putUsageHour(day, 0, { rows: fold, taken: [] }, DRIVER)
      expect(await store.readUsageHours(day, 1)).toEqual(fold)
    } finally {
      await at.close()
    }
  })
})
