/** Schedules: one tick starts one run, whatever is repeated and wherever a process dies; overlaps as the schedule says. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Overlap, readSchedule, type Schedule } from '../../src/domain/schedule.ts'
import { fileTicks, runDueSchedules, tick } from '../../src/engine/tick.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { systemClock } from '../../src/system.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'

const MINUTE = 60_000
const echo = scriptedTeam('echo', [
  { agent: agent('root'), steps: [{ text: 'you said {input}', usage: { input: 10, output: 5 } }] },
])
let ahead = 0
const clock = { now: () => systemClock.now() + ahead, sleep: systemClock.sleep }
const ref = { tenant: 'local', id: 'nightly' }
const begun = Math.floor(systemClock.now() / MINUTE) * MINUTE - 10 * MINUTE
/** a time on the minute, a little before now; counted from one moment, so that no test sees the minute change */
const minute = (n = 0) => begun + n * MINUTE

let table: ReturnType<typeof memoryTable>
let engine: TestEngine
let schedule: Schedule
const open = (
  overlap: Overlap = 'skip',
  run: Schedule['run'] = { team: 'echo', input: 'go', budget: { tokens: 1_000_000 } },
) => {
  schedule = { id: 'nightly', expression: 'rate(1 minute)', timezone: 'UTC', overlap, run, createdAt: minute(-60) }
}
const ctx = (on: TableClient = table) => ({
  ...engine.ctx,
  store: createStore(on, clock.now),
  schedules: {
    list: async () => [schedule],
    get: async ({ id }: { id: string }) => (id === 'nightly' ? schedule : undefined),
  },
})
beforeEach(() => {
  ahead = 0
  table = memoryTable()
  engine = testEngine({ table, teams: [echo], clock })
  open()
})
afterEach(() => engine.invoker.close())
const runs = async () => (await engine.ctx.store.listRuns('local', { limit: 100 })).items
const outcomes = async () => (await engine.ctx.store.getSchedule(ref))!.state.ticks.map((t) => t.outcome)
const due = () => runDueSchedules(ctx(), { deadlineAt: clock.now() + 3_600_000 })

describe('a tick', () => {
  test('delivered three times at once starts one run', async () => {
    const told = await Promise.all([1, 2, 3].map(() => tick(ctx(), ref, minute())))
    expect(new Set(told.map((t) => `${t.outcome} ${t.runId}`)).size).toBe(1)
    expect((await runs()).map((r) => r.runId)).toEqual([told[0]!.runId])
    await engine.invoker.drain()
    expect(engine.scripted.bill).toHaveLength(1)
    // and once more, when its run has long ended
    expect(await tick(ctx(), ref, minute())).toEqual(told[0])
    expect(await runs()).toHaveLength(1)
  })

  test('control: two ticks start two runs', async () => {
    for (const n of [0, 1]) {
      await tick(ctx(), ref, minute(n))
      await engine.invoker.drain()
    }
    expect(await runs()).toHaveLength(2)
  })

  test.each(['before', 'after'] as const)(
    'whose process dies %s any of its writes starts one run when it is repeated',
    async (how) => {
      let writes = 1
      for (let at = 1; at <= writes; at++) {
        table = memoryTable()
        await engine.invoker.close()
        engine = testEngine({ table, teams: [echo], clock })
        let count = 0
        const write = async <T>(apply: () => Promise<T>): Promise<T> => {
          if (++count === at && how === 'before') throw new Error('the process is gone')
          const result = await apply()
          if (count === at) throw new Error('the process is gone')
          return result
        }
        const dying: TableClient = {
          ...table,
          put: (request) => write(() => table.put(request)),
          update: (request) => write(() => table.update(request)),
        }
        const first = await tick(ctx(dying), ref, minute()).catch(() => undefined)
        writes = Math.max(writes, count + 1)
        const again = await tick(ctx(), ref, minute())
        if (first) expect(again).toEqual(first)
        expect([how, at, (await runs()).map((r) => r.runId)]).toEqual([how, at, [again.runId]])
        if (count < at) break
      }
      expect(writes).toBeGreaterThan(6)
    },
  )

  test('of a schedule that is not there, or of a time that nobody has scheduled, is not taken', async () => {
    await expect(tick(ctx(), { ...ref, id: 'nobody' }, minute())).rejects.toMatchObject({ code: 'unknown_schedule' })
    for (const at of [Number.NaN, clock.now() + 3_600_000, clock.now() - 3 * 86_400_000])
      await expect(tick(ctx(), ref, at)).rejects.toMatchObject({ code: 'bad_request' })
    expect(await runs()).toEqual([])
  })

  test('of a team that is not there has failed, and the next one is not kept waiting', async () => {
    open('skip', { team: 'nobody', input: 'x', budget: { tokens: 1_000_000 } })
    expect(await tick(ctx(), ref, minute())).toMatchObject({ outcome: 'failed', runId: null })
    open()
    expect(await tick(ctx(), ref, minute(1))).toMatchObject({ outcome: 'started' })
  })
})

describe('a tick while the run before goes on', () => {
  beforeEach(() => {
    engine.lose = () => true
  })
  /** The run that goes on ends. */
  async function end(): Promise<void> {
    engine.lose = () => false
    for (const run of await runs())
      if (run.status === 'running')
        await engine.invoker.invoke({
          ...ref,
          runId: run.runId,
          sessionId: engine.events.findLast((e) => e.runId === run.runId)!.sessionId,
        })
    await engine.invoker.drain()
    engine.lose = () => true
  }

  test('is skipped, and that is written down', async () => {
    await tick(ctx(), ref, minute())
    expect(await tick(ctx(), ref, minute(1))).toEqual({ at: minute(1), outcome: 'skipped', runId: null })
    // a repeated delivery changes nothing, also when the run has ended since
    await end()
    expect(await tick(ctx(), ref, minute(1))).toMatchObject({ outcome: 'skipped' })
    expect(await outcomes()).toEqual(['skipped', 'started'])
    expect((await engine.ctx.store.getSchedule(ref))!.state.skipped).toBe(1)
    expect(await tick(ctx(), ref, minute(2))).toMatchObject({ outcome: 'started' })
    expect(await runs()).toHaveLength(2)
  })

  test('is queued, and its run starts when the one before has ended', async () => {
    open('queue')
    await tick(ctx(), ref, minute())
    for (const n of [1, 2]) expect(await tick(ctx(), ref, minute(n))).toMatchObject({ outcome: 'queued' })
    ahead = 2 * MINUTE
    expect(await due()).toEqual({ started: 0, failed: 0 })
    expect(await runs()).toHaveLength(1)
    await end()
    ahead = 4 * MINUTE
    expect(await due()).toEqual({ started: 1, failed: 0 })
    expect(await runs()).toHaveLength(2)
    // one after the other: the second goes on
    ahead = 6 * MINUTE
    expect(await due()).toEqual({ started: 0, failed: 0 })
    await end()
    ahead = 8 * MINUTE
    expect(await due()).toEqual({ started: 1, failed: 0 })
    await end()
    ahead = 10 * MINUTE
    expect(await due()).toEqual({ started: 0, failed: 0 })
    expect((await runs()).map((r) => r.status)).toEqual(['completed', 'completed', 'completed'])
    expect(await outcomes()).toEqual(['started', 'started', 'started'])
  })

  test('starts all the same where that is allowed', async () => {
    open('allow')
    for (const n of [0, 1, 2]) expect(await tick(ctx(), ref, minute(n))).toMatchObject({ outcome: 'started' })
    expect(await runs()).toHaveLength(3)
  })
})

describe('the timer', () => {
  test('ticks a stored schedule at its times, and those that were missed once', async () => {
    const now = clock.now()
    const stored = { ...schedule, id: 'stored', expression: 'rate(10 minutes)', createdAt: now }
    await engine.ctx.store.putSchedule('local', stored, now + 10 * MINUTE)
    expect(await due()).toEqual({ started: 0, failed: 0 })
    ahead = 10 * MINUTE + 1_000
    expect(await Promise.all([due(), due(), due()])).toContainEqual({ started: 1, failed: 0 })
    expect(await runs()).toHaveLength(1)
    await engine.invoker.drain()
    ahead = 60 * MINUTE + 1_000
    await due()
    expect(await runs()).toHaveLength(2)
    expect((await engine.ctx.store.getSchedule({ tenant: 'local', id: 'stored' }))!.state.dueAt).toBe(now + 70 * MINUTE)
  })
})

test('a schedule of every minute that was missed for a day ticks once, and its clocks are hardly asked', async () => {
  const stored = { ...schedule, id: 'stored', expression: 'cron(* * * * ? *)', timezone: 'America/Anchorage' }
  await engine.ctx.store.putSchedule('local', { ...stored, createdAt: clock.now() }, clock.now())
  ahead = 26 * 60 * MINUTE
  const asked = vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts')
  onTestFinished(() => void asked.mockRestore())
  expect(await due()).toEqual({ started: 1, failed: 0 })
  expect(await runs()).toHaveLength(1)
  expect(asked.mock.calls.length).toBeLessThan(300)
})

test('a schedule of the file of every minute that was missed for a month ticks once', async () => {
  schedule = { ...schedule, expression: 'cron(* * * * ? *)', timezone: 'America/Anchorage' }
  const asked = vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts')
  onTestFinished(() => void asked.mockRestore())
  await fileTicks(ctx(), 'local', clock.now() - 30 * 24 * 60 * MINUTE)()
  expect(await runs()).toHaveLength(1)
  expect(asked.mock.calls.length).toBeLessThan(300)
})

describe('an expression', () => {
  const at = (text: string) => Date.parse(text)
  test.each<[string, string, string, string]>([
    ['rate(5 minutes)', 'UTC', '2026-01-01T00:07:00Z', '2026-01-01T00:10:00Z'],
    ['rate(1 day)', 'UTC', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'],
    ['cron(0 3 * * ? *)', 'UTC', '2026-01-31T03:00:00Z', '2026-02-01T03:00:00Z'],
    ['cron(0 3 * * ? *)', 'Europe/Berlin', '2026-07-01T00:00:00Z', '2026-07-01T01:00:00Z'],
    ['cron(0 3 * * ? *)', 'Europe/Berlin', '2026-01-01T00:00:00Z', '2026-01-01T02:00:00Z'],
    // 02:30 is left out on the last Sunday of March
    ['cron(30 2 * * ? *)', 'Europe/Berlin', '2026-03-28T12:00:00Z', '2026-03-30T00:30:00Z'],
    ['cron(0/15 8-9 ? * MON-FRI *)', 'UTC', '2026-01-02T09:45:00Z', '2026-01-05T08:00:00Z'],
    ['cron(0 0 L * ? *)', 'UTC', '2028-02-01T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['cron(0 0 29 2 ? *)', 'UTC', '2026-03-01T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['cron(0 12 ? * 6L *)', 'UTC', '2026-01-01T00:00:00Z', '2026-01-30T12:00:00Z'],
    ['cron(0 12 ? * TUE#2 *)', 'UTC', '2026-01-01T00:00:00Z', '2026-01-13T12:00:00Z'],
  ])('%s in %s after %s comes at %s', (expression, timezone, after, next) => {
    const from = at('2026-01-01T00:00:00Z')
    expect(new Date(readSchedule(expression, timezone, from)(at(after))!).toISOString()).toBe(
      new Date(next).toISOString(),
    )
  })

  test('that never comes again has no next time', () => {
    expect(readSchedule('cron(0 0 1 1 ? 2026)', 'UTC', 0)(at('2026-06-01T00:00:00Z'))).toBeUndefined()
  })

  test.each([
    'every day',
    'rate(0 minutes)',
    'rate(1 minutes)',
    'rate(2 minute)',
    'rate(5 weeks)',
    'cron(0 3 * * *)',
    'cron(0 3 * * * *)',
    'cron(60 3 * * ? *)',
    'cron(0 3 ? * ? *)',
    'cron(5-1 3 * * ? *)',
    'cron(*/0 3 * * ? *)',
    'cron(0 3 15W * ? *)',
  ])('%s is refused', (expression) => {
    expect(() => readSchedule(expression, 'UTC', 0)).toThrow(RangeError)
  })

  test('in a time zone that is not known is refused', () => {
    expect(() => readSchedule('cron(0 3 * * ? *)', 'Europe/Nowhere', 0)).toThrow('is not known')
  })
})
