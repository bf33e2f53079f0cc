/** Schedules that are ticked from outside: nothing ticks without its item, and none is left that does not tick. */
import { beforeEach, describe, expect, test } from 'vitest'
import { SubledgerError } from '../../src/domain/errors.ts'
import type { Schedule } from '../../src/domain/schedule.ts'
import { makeSchedule, removeSchedule } from '../../src/engine/schedule.ts'
import { runDueSchedules, tick } from '../../src/engine/tick.ts'
import type { ScheduleTimer } from '../../src/ports/schedule-timer.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { systemClock } from '../../src/system.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'

const HOUR = 3_600_000
const echo = scriptedTeam('echo', [{ agent: agent('root'), steps: [{ text: 'yes' }] }])
const ref = { tenant: 'local', id: '0123456789abcdef' }

let now: number
let table: TableClient
let engine: TestEngine
let draft: Schedule
/** what ticks outside */
let outside: Set<string>
const timer: ScheduleTimer = {
  async start(_tenant, { id }) {
    outside.add(id)
  },
  async stop({ id }) {
    outside.delete(id)
  },
}
const ctx = (on: TableClient = table, scheduleTimer = timer) => ({
  ...engine.ctx,
  store: createStore(on, clock.now),
  scheduleTimer,
})
const clock = { now: () => now, sleep: systemClock.sleep }
const make = (c = ctx()) => makeSchedule(c, 'local', draft, draft.createdAt + HOUR)
const stored = () => engine.ctx.store.getSchedule(ref)
const runs = async () => (await engine.ctx.store.listRuns('local', { limit: 100 })).items
const due = () => runDueSchedules(ctx(), { deadlineAt: now + HOUR })

function open(): void {
  now = systemClock.now()
  table = memoryTable()
  engine = testEngine({ table, teams: [echo], clock })
  outside = new Set()
  const run = { team: 'echo', input: 'go', budget: { tokens: 1_000_000 } }
  draft = { id: ref.id, expression: 'rate(1 hour)', timezone: 'UTC', overlap: 'skip', run, createdAt: now }
}
beforeEach(open)

/** Everything that changes something dies at its `at`th time, before it or behind it. */
function dying(at: number, how: 'before' | 'after') {
  let count = 0
  const dies = async <T>(apply: () => Promise<T>): Promise<T> => {
    if (++count === at && how === 'before') throw new Error('the process is gone')
    const result = await apply()
    if (count === at) throw new Error('the process is gone')
    return result
  }
  const on: TableClient = {
    ...table,
    put: (r) => dies(() => table.put(r)),
    update: (r) => dies(() => table.update(r)),
    delete: (r) => dies(() => table.delete(r)),
  }
  const dyingTimer = {
    start: (...args: Parameters<ScheduleTimer['start']>) => dies(() => timer.start(...args)),
    stop: (r: Parameters<ScheduleTimer['stop']>[0]) => dies(() => timer.stop(r)),
  }
  return { ctx: ctx(on, dyingTimer), count: () => count }
}

describe.each(['before', 'after'] as const)('whose maker dies %s any of his writes', (how) => {
  test('a schedule that is made is there if it ticks, ticks if it is there, and is finished by a retry', async () => {
    let at = 1
    for (; ; at++) {
      open()
      const attempt = dying(at, how)
      await make(attempt.ctx).catch(() => undefined)
      if (attempt.count() < at) break
      if (outside.size > 0) expect([at, await stored()]).toEqual([at, expect.anything()])
      if (await stored()) {
        // nobody tries again: it ticks all the same, from outside or by the table's timer
        const { dueAt } = (await stored())!.state
        expect([at, outside.size > 0 || dueAt === draft.createdAt + HOUR]).toEqual([at, true])
      }
      await make()
      expect((await stored())!.state).toMatchObject({ outside: true, dueAt: null })
      expect([...outside]).toEqual([ref.id])
    }
    expect(at).toBe(4)
  })

  test('a schedule that is ended does not tick without its item, and is ended by a retry', async () => {
    let at = 1
    for (; ; at++) {
      open()
      await make()
      const attempt = dying(at, how)
      await removeSchedule(attempt.ctx, ref).catch(() => undefined)
      if (attempt.count() < at) break
      if (outside.size > 0) expect([at, await stored()]).toEqual([at, expect.anything()])
      await removeSchedule(ctx(), ref)
      expect([outside.size, await stored()]).toEqual([0, undefined])
    }
    expect(at).toBe(3)
  })
})

test('what ends a schedule while it is made leaves nothing that ticks', async () => {
  const c = ctx(table, {
    ...timer,
    async start(...args) {
      await removeSchedule(ctx(), ref)
      await timer.start(...args)
    },
  })
  await make(c)
  expect([outside.size, await stored()]).toEqual([0, undefined])
})

test('what the timer outside does not take is not there', async () => {
  const c = ctx(table, {
    ...timer,
    start: () => Promise.reject(new SubledgerError('bad_request', 'it does not take it')),
  })
  await expect(make(c)).rejects.toThrow('it does not take it')
  expect(await stored()).toBeUndefined()
})

test('two who make one schedule at once make one', async () => {
  await Promise.all([make(), make(), make()])
  expect([...outside]).toEqual([ref.id])
  expect((await stored())!.state).toMatchObject({ outside: true, dueAt: null })
})

describe('the timer of the table', () => {
  test('leaves alone what is ticked from outside', async () => {
    await make()
    now += 5 * HOUR
    expect(await due()).toEqual({ started: 0, failed: 0 })
    expect(await runs()).toEqual([])
  })

  test('ticks what nobody ticks from outside yet, until the first tick from there', async () => {
    const first = dying(2, 'after')
    await make(first.ctx).catch(() => undefined)
    now += HOUR + 1
    expect(await due()).toEqual({ started: 1, failed: 0 })
    await engine.invoker.drain()
    // the one outside is there after all
    await tick(ctx(), ref, now - 1_000, true)
    await engine.invoker.drain()
    expect((await stored())!.state.outside).toBe(true)
    expect(await runs()).toHaveLength(2)
    now += 5 * HOUR
    expect(await due()).toEqual({ started: 0, failed: 0 })
    expect((await stored())!.state.dueAt).toBeNull()
  })

  test('and the one outside at the same time start one run', async () => {
    const first = dying(2, 'after')
    await make(first.ctx).catch(() => undefined)
    now += HOUR + 1
    await Promise.all([due(), tick(ctx(), ref, draft.createdAt + HOUR, true)])
    expect(await runs()).toHaveLength(1)
  })

  test('starts what waits in a queue of a schedule that is ticked from outside, when the run before it has ended', async () => {
    draft = { ...draft, overlap: 'queue' }
    await make()
    engine.lose = () => true
    await tick(ctx(), ref, now, true)
    expect(await tick(ctx(), ref, now + 1_000, true)).toMatchObject({ outcome: 'queued' })
    engine.lose = () => false
    await engine.invoker.invoke(engine.events[0]!)
    await engine.invoker.drain()
    now += 2 * 60_000
    expect(await due()).toEqual({ started: 1, failed: 0 })
    await engine.invoker.drain()
    now += 2 * 60_000
    expect(await due()).toEqual({ started: 0, failed: 0 })
    expect((await stored())!.state).toMatchObject({ queued: [], dueAt: null, outside: true })
  })
})
