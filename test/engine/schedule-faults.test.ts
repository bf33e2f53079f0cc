/** Faults around the ticks of schedules: a tick is made up for soon, and one schedule never holds up another. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readSchedule, type Schedule } from '../../src/domain/schedule.ts'
import { fileTicks, runDueSchedules, tick } from '../../src/engine/tick.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

const MINUTE = 60_000
const echo = scriptedTeam('echo', [{ agent: agent('root'), steps: [{ text: 'you said {input}' }] }])
const ref = { tenant: 'local', id: 'abcdefgh12345678' }
let clock: VirtualClock
let table: TableClient
let engine: TestEngine
let schedule: Schedule
let inFile: Schedule | undefined
const ctx = (on: TableClient = table) => ({
  ...engine.ctx,
  store: createStore(on, clock.now),
  schedules: { list: async () => (inFile ? [inFile] : []), get: async () => inFile },
})
const minute = async (on?: TableClient) => {
  await clock.advance(MINUTE)
  const report = await runDueSchedules(ctx(on), { deadlineAt: clock.now() + MINUTE })
  await clock.advance(100)
  return report
}
const runs = async () => (await engine.ctx.store.listRuns('local', { limit: 100 })).items

beforeEach(() => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1, 8, 55, 30))
  table = memoryTable()
  engine = testEngine({ table, teams: [echo], clock })
  inFile = undefined
  schedule = {
    id: ref.id,
    expression: 'cron(0 9 * * ? *)',
    timezone: 'UTC',
    overlap: 'skip',
    run: { team: 'echo', input: 'go', budget: { usd: '1' } },
    createdAt: clock.now(),
  }
})
afterEach(() => engine.invoker.close())

test.each([0, 1, 2, 3, 4])('a daily tick during which request %i failed once is made up for soon', async (at) => {
  const first = readSchedule(schedule.expression, schedule.timezone, clock.now())(clock.now())!
  await engine.ctx.store.putSchedule('local', schedule, first)
  let [n, failed] = [0, false]
  const once = <A, R>(f: (request: A) => Promise<R>) => {
    return async (request: A) => {
      if (!failed && clock.now() >= first && n++ === at) {
        failed = true
        throw new Error('the table is busy')
      }
      return f(request)
    }
  }
  const flaky: TableClient = { ...table, get: once(table.get), put: once(table.put), update: once(table.update) }
  for (let i = 0; i < 15; i++) await minute(flaky)
  expect(failed).toBe(true)
  expect(await runs()).toHaveLength(1)
})

test('a schedule that is taken out of the file while ticks are queued is not looked at for ever', async () => {
  inFile = { ...schedule, id: 'nightly', expression: 'rate(1 minute)', overlap: 'queue' }
  const nightly = { tenant: 'local', id: 'nightly' }
  engine.lose = () => true // its first run goes on
  await tick(ctx(), nightly, clock.now())
  await clock.advance(MINUTE)
  await tick(ctx(), nightly, clock.now())
  inFile = undefined
  let failed = 0
  for (let i = 0; i < 60; i++) failed += (await minute()).failed
  expect(failed).toBeLessThan(3)
})

test('of two schedules of a file one that cannot start its run does not keep the other waiting', async () => {
  const { ctx } = engine
  const teams = {
    ...ctx.teams,
    get: async (name: string) => (name === 'bad' ? Promise.reject(new Error('EIO')) : ctx.teams.get(name)),
  }
  const of = (id: string, team: string): Schedule => ({
    id,
    expression: 'rate(1 minute)',
    timezone: 'UTC',
    overlap: 'skip',
    run: { team, input: 'go', budget: { usd: '1' } },
    createdAt: clock.now() - 60_000,
  })
  const all = [of('a', 'bad'), of('b', 'echo')]
  const files = { list: async () => all, get: async ({ id }: { id: string }) => all.find((s) => s.id === id) }
  const look = fileTicks({ ...ctx, teams, schedules: files }, 'local', clock.now())
  for (let i = 0; i < 30; i++) {
    await clock.advance(MINUTE)
    await look()
  }
  expect((await runs()).length).toBeGreaterThan(10)
})

test('a file that is away for one look, because it is being saved, loses no tick that waits', async () => {
  const nightly = { tenant: 'local', id: 'nightly' }
  const there = { ...schedule, id: 'nightly', expression: 'rate(1 minute)', overlap: 'queue' as const }
  inFile = there
  engine.lose = () => true // its first run goes on
  await tick(ctx(), nightly, clock.now())
  await clock.advance(MINUTE)
  await tick(ctx(), nightly, clock.now())
  const queued = async () => (await engine.ctx.store.getSchedule(nightly))!.state.queued.length
  expect(await queued()).toBe(1)
  inFile = undefined
  await minute()
  expect(await queued()).toBe(1)
  // a day later nobody waits for it any more
  await clock.advance(25 * 60 * MINUTE)
  await minute()
  expect(await engine.ctx.store.getSchedule(nightly)).toMatchObject({
    state: {
      queued: [],
      skipped: 1,
      dueAt: null,
      ticks: [{ outcome: 'skipped', runId: null }, { outcome: 'started' }],
    },
  })
})

test('a tick whose run has begun is told so, also when its schedule is taken out of the file', async () => {
  const nightly = { tenant: 'local', id: 'nightly' }
  inFile = { ...schedule, id: 'nightly', expression: 'rate(1 minute)' }
  const at = clock.now()
  let moves = 0
  const { store } = engine.ctx
  const dying: typeof store = {
    ...store,
    moveSchedule: async (...args) => {
      if (moves++ > 0) throw new Error('killed')
      return store.moveSchedule(...args)
    },
  }
  await expect(tick({ ...ctx(), store: dying }, nightly, at)).rejects.toThrow('killed')
  const [started] = await runs()
  expect(started).toBeDefined()
  inFile = undefined
  await minute()
  await minute()
  expect((await store.getSchedule(nightly))!.state).toMatchObject({
    starting: null,
    dueAt: null,
    ticks: [{ at, outcome: 'started', runId: started!.runId }],
  })
})
