/** Schedules over the API and from a file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFileSchedules, readSchedules } from '../../src/compose-schedules.ts'
import { NO_STATE } from '../../src/domain/schedule.ts'
import { tick } from '../../src/engine/tick.ts'
import { createApp } from '../../src/http/app.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { readStartEvent, SCHEDULED_TIME } from '../../src/invoke/tick-event.ts'
import { type Api, expectProblem, openApi } from './api.ts'

interface ScheduleView {
  readonly scheduleId: string
  readonly source: string
  readonly expression: string
  readonly nextAt: string | null
}
interface List {
  readonly schedules: readonly ScheduleView[]
}
const budget = { tokens: 1_000_000 }
const good = { cron: '0 3 * * ? *', timezone: 'Europe/Berlin', team: 'echo', input: 'go', budget, tags: { a: 'b' } }
const bounds = { budget: { usd: '2.50', tokens: 1000 }, maxConcurrency: 3 }

describe('over the API', () => {
  let api: Api
  beforeEach(() => {
    api = openApi()
  })
  afterEach(() => api.close())

  test('a schedule is made, listed and ended', async () => {
    const made = await api.post<ScheduleView>('/v1/schedules', good)
    expect([made.status, made.headers.get('location')]).toEqual([201, `/v1/schedules/${made.body.scheduleId}`])
    expect(made.body).toMatchObject({ source: 'api', expression: 'cron(0 3 * * ? *)', overlap: 'skip', team: 'echo' })
    expect((await api.get<List>('/v1/schedules')).body.schedules).toEqual([made.body])
    expect((await api.get(made.headers.get('location')!)).body).toEqual(made.body)
    expect((await api.send(`/v1/schedules/${made.body.scheduleId}`, { method: 'DELETE' })).status).toBe(204)
    expect((await api.get<List>('/v1/schedules')).body.schedules).toEqual([])
    expectProblem(
      await api.send(`/v1/schedules/${made.body.scheduleId}`, { method: 'DELETE' }),
      404,
      'unknown_schedule',
    )
  })

  test('its runs have the budget and the concurrency that it says', async () => {
    const { body } = await api.post<ScheduleView>('/v1/schedules', { ...good, ...bounds })
    expect(body).toMatchObject(bounds)
    expect((await api.post('/v1/schedules', { ...good, budget: { usd: 1 } })).body).toMatchObject({
      budget: { usd: '1', tokens: null },
      maxConcurrency: null,
    })
    const { at } = { at: Math.floor(api.ctx.clock.now() / 60_000) * 60_000 }
    const { runId } = await tick(api.ctx, { tenant: 'local', id: body.scheduleId }, at)
    await api.invoker.drain()
    expect((await api.get<RunView>(`/v1/runs/${runId}`)).body).toMatchObject({
      budget: { usd: '2.5', tokens: 1000 },
      maxConcurrency: 3,
    })
  })

  test('a budget that says nothing is refused', async () => {
    const problem = expectProblem(await api.post('/v1/schedules', { ...good, budget: {} }), 400, 'bad_request')
    expect(problem.errors).toMatchObject([{ path: '/budget' }])
  })

  test('with one Idempotency-Key it is made once', async () => {
    const headers = { 'idempotency-key': 'k' }
    const all = await Promise.all([1, 2, 3].map(() => api.post<ScheduleView>('/v1/schedules', good, headers)))
    expect(new Set(all.map((a) => a.body.scheduleId)).size).toBe(1)
    expect((await api.get<List>('/v1/schedules')).body.schedules).toHaveLength(1)
  })

  test("another tenant's is neither listed nor ended", async () => {
    const { body } = await api.post<ScheduleView>('/v1/schedules', good)
    const foreign = createApp(api.ctx, { tenantOf: () => 'foreign' })
    expect(await (await foreign.request('/v1/schedules')).json()).toEqual({ schedules: [] })
    for (const method of ['GET', 'DELETE'])
      expect((await foreign.request(`/v1/schedules/${body.scheduleId}`, { method })).status).toBe(404)
  })

  test.each<[string, object, string]>([
    ['neither cron nor rate', { team: 'echo', input: 'x', budget }, ''],
    ['both cron and rate', { ...good, rate: '1 day' }, ''],
    ['a bad cron', { ...good, cron: '0 3 * * * *' }, '/cron'],
    ['a cron of the past', { ...good, cron: '0 0 1 1 ? 2001' }, '/cron'],
    ['a bad rate', { rate: '1 days', team: 'echo', input: 'x', budget }, '/rate'],
    ['a time zone that is not known', { ...good, timezone: 'Europe/Nowhere' }, '/timezone'],
    ['a time zone of a rate', { rate: '1 day', timezone: 'UTC', team: 'echo', input: 'x', budget }, ''],
    ['an overlap that is none', { ...good, overlap: 'maybe' }, '/overlap'],
    ['neither input nor tasks', { cron: good.cron, team: 'echo', budget }, ''],
    ['one without a budget', { ...good, budget: undefined }, '/budget'],
  ])('%s is refused', async (_, body, path) => {
    const problem = expectProblem(await api.post('/v1/schedules', body), 400, 'bad_request')
    expect(problem.errors!.map((e) => e.path)).toContain(path)
  })

  test.each(['1 minutes', 'rate(5 minutes)', '5'])('a rate is told in the form that it has here: %s', async (rate) => {
    const body = { rate, team: 'echo', input: 'x', budget }
    const problem = expectProblem(await api.post('/v1/schedules', body), 400, 'bad_request')
    expect(problem.errors).toEqual([{ path: '/rate', message: 'must be such as "5 minutes", "1 hour" or "1 day"' }])
  })

  test('what could never start is refused', async () => {
    expectProblem(await api.post('/v1/schedules', { ...good, team: 'nobody' }), 404, 'unknown_team')
    expectProblem(await api.post('/v1/schedules', { ...good, agent: 'nobody' }), 400, 'unknown_agent')
    const input = 'x'.repeat(310_000)
    expectProblem(await api.post('/v1/schedules', { ...good, input }), 413, 'too_large')
  })

  test('a tenant has a hundred at most', async () => {
    for (let i = 1; i < 100; i++) expect((await api.post('/v1/schedules', good)).status).toBe(201)
    const last = { 'idempotency-key': 'the hundredth'.replaceAll(' ', '-') }
    expect((await api.post('/v1/schedules', good, last)).status).toBe(201)
    expect((await api.post('/v1/schedules', good, last)).status).toBe(201)
    expectProblem(await api.post('/v1/schedules', good), 400, 'bad_request')
  })

  test('what schedules of a file have done does not count among them', async () => {
    const { v: _, ...done } = NO_STATE
    for (let i = 0; i < 100; i++) await api.ctx.store.moveSchedule({ tenant: 'local', id: `file-${i}` }, 0, done)
    expect((await api.post('/v1/schedules', good)).status).toBe(201)
  })
})

describe('in a file', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'subledger-'))
  })
  afterEach(() => rm(folder, { recursive: true }))
  const write = (text: string | Uint8Array) => writeFile(join(folder, 'schedules.yaml'), text)

  test('they are what the file says; one that is not enabled does not tick', async () => {
    await write(`
schedules:
  nightly: { cron: 0 3 * * ? *, timezone: Europe/Berlin, team: crew, input: go, overlap: queue, tags: { a: b },
    budget: { usd: 2.50, tokens: 1000 }, maxConcurrency: 3 }
  hourly: { rate: 1 hour, team: crew, tasks: [{ agent: worker, task: a }], budget: { usd: 1 }, enabled: false }
`)
    expect(await readSchedules(folder)).toMatchObject([
      {
        id: 'nightly',
        expression: 'cron(0 3 * * ? *)',
        timezone: 'Europe/Berlin',
        overlap: 'queue',
        enabled: true,
        run: { budget: { usd: '2.5', tokens: 1000 }, maxConcurrency: 3 },
      },
      { id: 'hourly', expression: 'rate(1 hour)', overlap: 'skip', enabled: false },
    ])
    const schedules = createFileSchedules(folder, 'ours')
    expect((await schedules.list('ours')).map((s) => s.id)).toEqual(['nightly'])
    expect(await schedules.list('theirs')).toEqual([])
    expect(await schedules.get({ tenant: 'theirs', id: 'nightly' })).toBeUndefined()
    expect(await schedules.get({ tenant: 'ours', id: 'hourly' })).toBeUndefined()
  })

  test('which may have a byte order mark, and is UTF-8', async () => {
    await write('\ufeffschedules: { a: { rate: 1 day, team: x, input: y, budget: { usd: 1 } } }')
    expect(await readSchedules(folder)).toHaveLength(1)
    await write(Uint8Array.of(0x23, 0xfc))
    await expect(readSchedules(folder)).rejects.toThrow(
      'schedules.yaml is not UTF-8 text: see byte 1; save it as UTF-8',
    )
  })

  test('one is told by its name, with what it has done, and is not ended over the API', async () => {
    await write('schedules: { nightly: { rate: 1 day, team: echo, input: go, budget: { tokens: 1000 } } }')
    const api = openApi()
    const schedules = createFileSchedules(folder, 'local')
    const ctx = { ...api.ctx, schedules }
    const app = createApp(ctx, { tenantOf: () => 'local' })
    await tick(ctx, { tenant: 'local', id: 'nightly' }, api.ctx.clock.now())
    await api.invoker.drain()
    const one = await (await app.request('/v1/schedules/nightly')).json()
    expect(one).toMatchObject({ scheduleId: 'nightly', source: 'file', lastTicks: [{ outcome: 'started' }] })
    expect(await (await app.request('/v1/schedules')).json()).toEqual({ schedules: [one] })
    for (const id of ['weekly', 'a b', '..%2f', '%00'])
      expect(await (await app.request(`/v1/schedules/${id}`)).json()).toMatchObject({ code: 'unknown_schedule' })
    expect((await app.request('/v1/schedules/nightly', { method: 'DELETE' })).status).toBe(404)
    await api.close()
  })

  test('there are none without it', async () => {
    expect(await readSchedules(folder)).toEqual([])
  })

  test.each([
    ['schedules: [1]', /schedules must be a map/],
    ['other: {}', /the key "other" is not known/],
    ['schedules: { "a b": {} }', /schedules.a b: a name has/],
    ['schedules: { a: { rate: 1 day, team: x, budget: { usd: 1 } } }', /schedules.a: .*neither input nor tasks/],
    [
      'schedules: { a: { cron: "1 2", team: x, input: y, budget: { usd: 1 } } }',
      /schedules.a: cron must have six fields/,
    ],
    ['schedules: { a: { rate: 1 day, team: x, input: y } }', /schedules.a: budget must be an object/],
    ['schedules: { a: { rate: 1 day, team: x, input: y, enabled: maybe } }', /enabled must be true or false/],
    ['schedules: { a: { rate: 1 day, team: x, input: y, budget: { usd: much } } }', /budget.usd must be an amount/],
    [
      'schedules: { a: { rate: 1 day, team: x, input: y, maxConcurrency: 0 } }',
      /maxConcurrency must be a whole number/,
    ],
    ['schedules: { a: { rate: 1 day, team: x, input: y, colour: red } }', /colour is not known here/],
  ])('%s is refused, with its place', async (text, message) => {
    await write(text)
    await expect(readSchedules(folder)).rejects.toThrow(message)
  })
})

describe('an event', () => {
  const now = Date.parse('2026-01-31T12:34:56.789Z')

  test('of a tick says which schedule and when; nothing else of it is taken', () => {
    const event = { schedule: 'nightly', scheduledTime: '2026-01-31T03:00:00Z', team: 'evil', input: 'evil' }
    const tick = { kind: 'tick', id: 'nightly', at: Date.parse('2026-01-31T03:00:00Z') }
    expect(readStartEvent(event, now)).toEqual(tick)
    // whose it is, where it was made over the API
    expect(readStartEvent({ ...event, tenant: 'acme' }, now)).toEqual({ ...tick, tenant: 'acme' })
    for (const tenant of ['a#RUN#b', '', null, { S: 'acme' }])
      expect(() => readStartEvent({ ...event, tenant }, now)).toThrow('The tenant of a tick')
  })

  test('whose placeholder nobody has replaced takes the minute', () => {
    expect(readStartEvent({ schedule: 'a', scheduledTime: SCHEDULED_TIME }, now)).toMatchObject({
      at: Date.parse('2026-01-31T12:34:00Z'),
    })
  })

  test.each([
    { schedule: 'a' },
    { schedule: 7, scheduledTime: SCHEDULED_TIME },
    { schedule: 'a', scheduledTime: 'soon' },
  ])('%j is no tick', (event) => {
    expect(() => readStartEvent(event, now)).toThrow('A tick needs')
  })

  test('may be the minute of the timer, or a direct invocation', () => {
    expect(readStartEvent({ due: true }, now)).toEqual({ kind: 'due' })
    expect(readStartEvent({ team: 'a' }, now)).toEqual({ kind: 'start', body: { team: 'a' } })
    expect(readStartEvent(null, now)).toEqual({ kind: 'start', body: null })
  })
})
