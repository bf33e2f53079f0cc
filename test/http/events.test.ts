import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createApp } from '../../src/http/app.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { pollsKey } from '../../src/store/keys.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { A } from '../../src/store/table.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { bySession, parseEvents, type Told, told, typesOf } from '../support/events.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'
import { type Api, desk, echo, expectProblem, openApi } from './api.ts'

const tasks = scriptedTeam('tasks', [
  { agent: agent('worker'), steps: [{ text: 'done', usage: { input: 1, output: 1 } }] },
])
const taskList = (count: number) => ({
  team: 'tasks',
  tasks: Array.from({ length: count }, (_, i) => ({ agent: 'worker', task: `task ${i}` })),
})

describe('the events of a run that has ended', () => {
  let api: Api
  let run: RunView
  beforeAll(async () => {
    api = openApi({ teams: [desk, echo, tasks] })
    run = await api.run({ team: 'desk', input: 'go' })
  })
  afterAll(() => api.close())

  test('are those of its sessions, each in its order, and the end', async () => {
    const all = await told(api, run.runId)
    expect(all.end).toEqual({ status: 'completed', stopReason: 'end_turn', round: 1 })
    const ids = new Set(all.events.map((e) => e.data.sessionId))
    expect(ids.size).toBe(4)
    for (const id of ids) expect(typesOf(all, id)).toEqual(['session.created', 'session.started', 'session.finished'])
    expect(all.events[0]!.data).toMatchObject({ kind: 'root', agent: 'root', parentSessionId: null, depth: 0 })
    expect(all.events.every((e) => e.data.type === e.event)).toBe(true)
    const position = (id: string, type: string) =>
      all.events.findIndex((e) => e.data.sessionId === id && e.event === type)
    for (const { data } of all.events.filter((e) => e.data.parentSessionId))
      expect(position(data.parentSessionId, 'session.created')).toBeLessThan(
        position(data.sessionId, 'session.created'),
      )
  })

  test('with session= the turns and tool calls of that one too', async () => {
    const all = await told(api, run.runId, `?session=${run.rootSessionId}`)
    const turn = ['turn.started', 'turn.finished']
    expect(typesOf(all, run.rootSessionId)).toEqual([
      ...['session.created', 'session.started', ...turn, 'tool.result', ...turn, 'tool.result', ...turn],
      ...['tool.result', 'tool.result', ...turn, 'tool.result', ...turn, 'session.finished'],
    ])
    const { calls } = (
      await api.get<{ calls: { sessionId: string; turn: number; costUsd: string }[] }>(`/v1/runs/${run.runId}/calls`)
    ).body
    const finished = all.events.filter((e) => e.event === 'turn.finished')
    expect(finished.map((e) => [e.data.turn, e.data.costUsd])).toEqual(
      calls.filter((c) => c.sessionId === run.rootSessionId).map((c) => [c.turn, c.costUsd]),
    )
    expect(finished[2]!.data.toolCalls.map((t: { name: string }) => t.name)).toEqual(
      Array(2).fill('run_background_agent'),
    )
    expect(all.events.filter((e) => e.event === 'tool.result').map((e) => e.data.turn)).toEqual([0, 1, 2, 2, 3])
    const own = await told(api, run.runId)
    expect(all.events.filter((e) => e.event.startsWith('session.')).map((e) => e.data)).toEqual(
      own.events.map((e) => e.data),
    )
  })

  test.each(['', 'root', 'child'])('go on behind every cursor exactly where it stands (session: %s)', async (which) => {
    const { runId } = which === '' ? await api.run(taskList(19)) : run
    const first = await told(api, runId)
    const child = first.events.find((e) => e.data.kind === 'transfer')?.data.sessionId
    const query = which === '' ? '' : `session=${which === 'root' ? run.rootSessionId : child}`
    const all = await told(api, runId, `?${query}`)
    expect(all.events.length).toBeGreaterThanOrEqual(which === '' ? 60 : 14)
    for (const [i, { id }] of all.events.entries()) {
      const rest = await told(api, runId, `?${query}`, { 'last-event-id': id })
      expect(rest.events.map((e) => e.data)).toEqual(all.events.slice(i + 1).map((e) => e.data))
      expect(rest.end).toEqual(all.end)
    }
    expect((await told(api, runId, `?${query}&cursor=${all.cursor}`)).events).toEqual([])
  })

  test('of a list of more than a hundred tasks show no groups', async () => {
    const { runId, rootSessionId } = await api.run(taskList(230))
    const all = await told(api, runId)
    const created = all.events.filter((e) => e.event === 'session.created')
    expect(created).toHaveLength(231)
    expect(created.filter((e) => e.data.parentSessionId === rootSessionId).map((e) => e.data.ordinal)).toHaveLength(230)
    const middle = all.events[300]!
    const rest = await told(api, runId, `?cursor=${middle.id}`)
    expect(rest.events.map((e) => e.data)).toEqual(all.events.slice(301).map((e) => e.data))
  })

  test('go on with the next round, and the rounds before stay as they were', async () => {
    const { runId, rootSessionId } = await api.run({ team: 'echo', input: 'one' })
    const first = await told(api, runId)
    await api.post(`/v1/runs/${runId}/input`, { input: 'two' })
    await api.invoker.drain()
    const more = await told(api, runId, `?cursor=${first.cursor}`)
    expect(more.events.map((e) => [e.event, e.data.round])).toEqual([
      ['session.reopened', 2],
      ['session.finished', 2],
    ])
    expect(more.end).toMatchObject({ round: 2 })
    const all = await told(api, runId)
    expect(all.events.map((e) => e.data)).toEqual([...first.events, ...more.events].map((e) => e.data))
    expect(typesOf(await told(api, runId, `?session=${rootSessionId}`), rootSessionId)).toEqual([
      ...['session.created', 'session.started', 'turn.started', 'turn.finished', 'session.finished'],
      ...['session.reopened', 'turn.started', 'turn.finished', 'session.finished'],
    ])
  })

  test('of a root that was cancelled before it began and went on later', async () => {
    api.lose = () => true
    const { body } = await api.post<RunView>('/v1/runs', { team: 'echo', input: 'one' })
    await api.post(`/v1/runs/${body.runId}/cancel`, {})
    api.lose = () => false
    const first = await told(api, body.runId)
    expect(first.events.map((e) => [e.event, e.data.status])).toEqual([
      ['session.created', undefined],
      ['session.finished', 'cancelled'],
    ])
    await api.post(`/v1/runs/${body.runId}/retry`, {})
    await api.invoker.drain()
    const all = await told(api, body.runId)
    expect(all.events.slice(0, 2).map((e) => e.data)).toEqual(first.events.map((e) => e.data))
    expect(all.events.slice(2).map((e) => e.event)).toEqual(['session.reopened', 'session.started', 'session.finished'])
    expect((await told(api, body.runId, `?cursor=${first.cursor}`)).events.map((e) => e.data)).toEqual(
      all.events.slice(2).map((e) => e.data),
    )
  })

  test('are refused for runs, sessions, tenants and cursors that do not fit', async () => {
    const path = `/v1/runs/${run.runId}/events`
    expectProblem(await api.get('/v1/runs/01K74V2QHG0000000000000007/events'), 404, 'unknown_run')
    expectProblem(await api.get(`${path}?session=0123456789abcdefghjk`), 404, 'unknown_session')
    expectProblem(await api.get(`${path}?session=..`), 404, 'unknown_session')
    const { cursor } = await told(api, run.runId)
    const other = await api.run({ team: 'echo', input: 'x' })
    for (const query of ['?cursor=AAAA', `?session=${run.rootSessionId}&cursor=${cursor}`])
      expectProblem(await api.get(`${path}${query}`), 400, 'bad_cursor')
    expectProblem(await api.get(`/v1/runs/${other.runId}/events?cursor=${cursor}`), 400, 'bad_cursor')
    const { errors } = expectProblem(await api.get(path, { 'last-event-id': 'x y' }), 400, 'bad_cursor')
    expect(errors![0]!.path).toBe('Last-Event-ID')
    const elsewhere = createApp(api.ctx, { tenantOf: () => 'other' })
    expect((await elsewhere.request(path)).status).toBe(404)
  })

  test('HEAD has the headers and opens no stream', async () => {
    const app = createApp(api.ctx, { tenantOf: () => 'local', streams: 0 })
    const response = await app.request(`/v1/runs/${run.runId}/events`, { method: 'HEAD' })
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      200,
      'text/event-stream',
      '',
    ])
  })
})

/** A team whose root answers after so long. */
const slow = (delayMs: number) => scriptedTeam('slow', [{ agent: agent('root'), steps: [{ text: 'late', delayMs }] }])

describe('where the platform does not stream', () => {
  async function began(delayMs: number) {
    const clock = createVirtualClock()
    const table = memoryTable()
    const engine = testEngine({ table, teams: [slow(delayMs)], clock })
    const app = createApp(engine.ctx, { tenantOf: () => 'local' })
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ team: 'slow', input: 'x' })
    const run = (await (await app.request('/v1/runs', { method: 'POST', headers, body })).json()) as RunView
    await clock.advance(10)
    const ask = async (cursor?: string) => {
      const last = cursor === undefined ? {} : { 'last-event-id': cursor }
      return parseEvents(await (await app.request(`/v1/runs/${run.runId}/events`, { headers: last })).text())
    }
    /** answers that wait; undefined: none has ever waited */
    const polls = async () =>
      (await table.get({ key: pollsKey('local'), consistent: true })).item?.[A.held] as number | undefined
    return { clock, ask, polls }
  }

  test('an answer holds what there is and says where to go on', async () => {
    const { ask } = await began(600_000)
    const first = await ask()
    expect(first.events.map((e) => e.event)).toEqual(['session.created', 'session.started'])
    expect(first).toMatchObject({ end: undefined, retry: 1_000, cursor: first.events[1]!.id })
  })

  test('with nothing new it waits 20 s, and no longer', async () => {
    const { clock, ask } = await began(600_000)
    const { cursor } = await ask()
    let answer: Told | undefined
    const asked = ask(cursor).then((a) => {
      answer = a
    })
    await clock.advance(19_900)
    expect(answer).toBeUndefined()
    await clock.advance(100)
    await asked
    expect(answer).toEqual({ events: [], end: undefined, cursor, retry: 1_000 })
  })

  test('an answer that waits is counted while it does, and one that has something to tell is not', async () => {
    const { clock, ask, polls } = await began(600_000)
    const { cursor } = await ask()
    expect(await polls()).toBeUndefined()
    const asked = ask(cursor)
    await clock.advance(1_000)
    expect(await polls()).toBe(1)
    await clock.advance(20_000)
    await asked
    expect(await polls()).toBe(0)
  })

  test('what happens meanwhile is told at the next look', async () => {
    const { clock, ask } = await began(10_000)
    const { cursor } = await ask()
    let answer: Told | undefined
    void ask(cursor).then((a) => {
      answer = a
    })
    await clock.advance(9_000)
    expect(answer).toBeUndefined()
    await clock.advance(6_000)
    expect(answer).toMatchObject({ events: [{ event: 'session.finished' }], end: { status: 'completed' } })
  })
})

describe('a stream', () => {
  async function opened(team = slow(600_000), streams = 1, lose = false) {
    const clock = createVirtualClock()
    const engine = testEngine({ table: memoryTable(), teams: [team], clock })
    engine.lose = () => lose
    const app = createApp(engine.ctx, { tenantOf: () => 'local', streams })
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ team: team.name, input: 'x' })
    const run = (await (await app.request('/v1/runs', { method: 'POST', headers, body })).json()) as RunView
    await clock.advance(10)
    const path = `/v1/runs/${run.runId}/events`
    const open = async (last?: string) => {
      const response = await app.request(path, { headers: last === undefined ? {} : { 'last-event-id': last } })
      if (response.status !== 200)
        return { status: response.status, text: () => '', cancel: async () => {}, over: () => true }
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
      let [text, over] = ['', false]
      void (async () => {
        for (;;) {
          const { done, value } = await reader.read()
          if (done) break
          text += value
        }
        over = true
      })()
      return { status: 200, text: () => text, cancel: () => reader.cancel(), over: () => over }
    }
    return { clock, engine, app, run, open }
  }

  test('tells what happens as it happens, and ends with the run', async () => {
    const { clock, open } = await opened(slow(60_000))
    const stream = await open()
    await clock.advance(100)
    expect(parseEvents(stream.text()).events.map((e) => e.event)).toEqual(['session.created', 'session.started'])
    expect(stream.over()).toBe(false)
    await clock.advance(70_000)
    const told = parseEvents(stream.text())
    expect(told.events.map((e) => e.event)).toEqual(['session.created', 'session.started', 'session.finished'])
    expect(told.end).toMatchObject({ status: 'completed', round: 1 })
    expect(stream.over()).toBe(true)
    expect(stream.text()).toContain('\n:\n\n')
  })

  test('beyond the most is refused, until a client goes', async () => {
    const { clock, open } = await opened()
    const first = await open()
    await clock.advance(100)
    expect((await open()).status).toBe(429)
    await first.cancel()
    await clock.advance(100)
    const second = await open()
    expect(second.status).toBe(200)
    await second.cancel()
  })

  test('asks for little while nothing happens, and is closed after a quarter of an hour', async () => {
    const { clock, engine, open } = await opened(echo, 1, true)
    let looks = 0
    const { getRunWithSessions } = engine.ctx.store
    Object.assign(engine.ctx.store, {
      getRunWithSessions: (ref: never) => {
        looks++
        return getRunWithSessions(ref)
      },
    })
    const stream = await open()
    await clock.advance(899_000)
    expect(looks).toBeLessThan(200)
    expect(stream.over()).toBe(false)
    await clock.advance(2_000)
    expect(stream.over()).toBe(true)
    const told = parseEvents(stream.text())
    expect(told).toMatchObject({ end: undefined, cursor: told.events[0]!.id })
  })

  test('of a run that is deleted is closed', async () => {
    const { clock, app, run, open } = await opened()
    await app.request(`/v1/runs/${run.runId}/cancel`, { method: 'POST' })
    const stream = await open()
    await app.request(`/v1/runs/${run.runId}`, { method: 'DELETE' })
    await clock.advance(20_000)
    expect(stream.over()).toBe(true)
  })

  test('two readers are told the same of each session', async () => {
    const { clock, open } = await opened(desk, 2)
    const [a, b] = [await open(), await open()]
    await clock.advance(60_000)
    const [one, two] = [parseEvents(a.text()), parseEvents(b.text())]
    expect(one.end).toMatchObject({ status: 'completed' })
    expect(one.events).toHaveLength(12)
    expect(bySession(one.events.map((e) => e.data))).toEqual(bySession(two.events.map((e) => e.data)))
  })
})
