/** Nobody can have more done than the deployment allows: each bound is a stored number with a refusal of its own. */
import { afterEach, describe, expect, test } from 'vitest'
import { readLimits } from '../../src/config-limits.ts'
import { DEFAULT_LIMITS, type Limits } from '../../src/domain/configured-limits.ts'
import type { TeamDefinition } from '../../src/domain/team.ts'
import { createApp } from '../../src/http/app.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { parseEvents } from '../support/events.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const echo: TeamDefinition = scriptedTeam('echo', [
  { agent: agent('root'), steps: [{ text: 'you said {input}', usage: { input: 10, output: 5 } }] },
])
const unpriced: TeamDefinition = scriptedTeam('unpriced', [
  { agent: agent('root'), steps: [{ text: 'x' }], model: { cost: undefined } as object },
])
const modest: TeamDefinition = { ...echo, name: 'modest', budget: { usd: '2' } }
/** Each hands its task on to itself, for as long as it may. */
const deep: TeamDefinition = scriptedTeam('deep', [
  {
    agent: agent('root', { subAgents: ['root'] }),
    steps: [
      {
        calls: [{ tool: 'transfer_task', args: { agent: 'root', task: 'go deeper' } }],
        usage: { input: 1, output: 1 },
      },
      { text: 'bottom', usage: { input: 1, output: 1 } },
    ],
  },
])
const wide: TeamDefinition = scriptedTeam('wide', [
  {
    agent: agent('root', { subAgents: ['worker'], toolsets: ['background_agents'] }),
    steps: [
      {
        calls: Array.from({ length: 5 }, () => ({
          tool: 'run_background_agent',
          args: { agent: 'worker', task: 'work' },
        })),
        usage: { input: 1, output: 1 },
      },
      { calls: [{ tool: 'wait_background_agents' }], usage: { input: 1, output: 1 } },
      { text: 'done', usage: { input: 1, output: 1 } },
    ],
  },
  { agent: agent('worker'), steps: [{ text: 'worked', usage: { input: 1, output: 1 } }] },
])
const endless: TeamDefinition = scriptedTeam('endless', [
  {
    agent: agent('root', { toolsets: ['think'] }),
    steps: Array.from({ length: 10 }, () => ({
      calls: [{ tool: 'think', args: { thought: 'hm' } }],
      usage: { input: 1, output: 1 },
    })),
  },
])
const stubborn: TeamDefinition = {
  ...endless,
  name: 'stubborn',
  agents: [{ ...endless.agents[0]!, maxIterations: 500 }],
}
/** It waits, so that its run goes on. */
const slow: TeamDefinition = scriptedTeam('slow', [
  { agent: agent('root'), steps: [{ text: 'late', delayMs: 600_000, usage: { input: 1, output: 1 } }] },
])

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

function api(limits: Partial<Limits>, more: { defaultBudgetUsd?: string } = {}) {
  const table = memoryTable()
  const engine = testEngine({ table, teams: [echo, unpriced, modest, deep, wide, endless, stubborn, slow] })
  const ctx = { ...engine.ctx, settings: { ...engine.ctx.settings, ...more, limits: { ...DEFAULT_LIMITS, ...limits } } }
  open.push(() => engine.invoker.close())
  let tenant = 'acme'
  const app = createApp(ctx, { tenantOf: () => tenant })
  const send = async (method: string, path: string, body?: object | string) => {
    const response = await app.request(path, {
      method,
      ...(body && {
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
    const answer: any = await response.json()
    return { status: response.status, headers: response.headers, body: answer }
  }
  const start = (body: object) => send('POST', '/v1/runs', body)
  return {
    engine,
    ctx,
    send,
    start,
    as: (name: string) => {
      tenant = name
    },
    async run(team: string): Promise<{ run: RunView; sessions: readonly SessionView[] }> {
      const { status, body } = await start({ team, input: 'go' })
      expect(status).toBe(202)
      await engine.invoker.drain()
      const { sessions } = (await send('GET', `/v1/runs/${body.runId}/sessions?limit=100`)).body
      return { run: (await send('GET', `/v1/runs/${body.runId}`)).body, sessions }
    },
  }
}

test('a body that is larger than the limit is refused before it is read whole', async () => {
  const { start, send, engine } = api({ bodyBytes: 1_000 })
  expect((await start({ team: 'echo', input: 'x'.repeat(800) })).status).toBe(202)
  const refused = await start({ team: 'echo', input: 'x'.repeat(1_000) })
  expect([refused.status, refused.body.code]).toEqual([413, 'too_large'])
  expect(refused.body.detail).toContain('larger than 1000 bytes')
  // it is not even JSON: nobody has looked
  expect((await send('POST', '/v1/runs', '{'.repeat(2_000))).status).toBe(413)
  await engine.invoker.drain()
})

test('more tasks than the limit are refused', async () => {
  const { start, engine } = api({ tasks: 3 })
  const tasks = (n: number) => Array.from({ length: n }, () => ({ agent: 'root', task: 'go' }))
  expect((await start({ team: 'echo', tasks: tasks(3) })).status).toBe(202)
  await engine.invoker.drain()
  const refused = await start({ team: 'echo', tasks: tasks(4) })
  expect([refused.status, refused.body.errors]).toEqual([400, [{ path: '/tasks', message: 'must hold 1 to 3 tasks' }]])
})

describe('a run that names no budget', () => {
  const budgetOf = async (team: string, more = {}) => {
    const { start, engine } = api({}, { defaultBudgetUsd: '10' })
    const { status, body } = await start({ team, input: 'go', ...more })
    await engine.invoker.drain()
    expect(status).toBe(202)
    return body.budget
  }

  test('has the one of the deployment', async () => {
    expect(await budgetOf('echo')).toMatchObject({ usd: '10', tokens: null })
  })

  test('whose team has a ceiling has that', async () => {
    expect(await budgetOf('modest')).toMatchObject({ usd: '2', tokens: null })
  })

  test('may name another one, which may be larger', async () => {
    expect(await budgetOf('echo', { budget: { usd: '25' } })).toMatchObject({ usd: '25', tokens: null })
    expect(await budgetOf('unpriced', { budget: { tokens: 1_000_000 } })).toMatchObject({
      usd: null,
      tokens: 1_000_000,
    })
  })

  test('is refused where a price is not known, and told what to do', async () => {
    const { start } = api({}, { defaultBudgetUsd: '10' })
    const { status, body } = await start({ team: 'unpriced', input: 'go' })
    expect([status, body.code]).toEqual([400, 'unpriced_model'])
    expect(body.detail).toMatch(
      /under the default budget of this deployment .* limit the run by a budget of "tokens"\.$/,
    )
  })

  test('has none where the deployment has none', async () => {
    const { start, engine } = api({})
    expect((await start({ team: 'echo', input: 'go' })).body.budget).toBeNull()
    await engine.invoker.drain()
  })
})

test.each([0, 2, 5])('agents lead agents over %i levels and no more, and the model is told', async (depth) => {
  const { run: start } = api({ depth })
  const { run, sessions } = await start('deep')
  expect(run.status).toBe('completed')
  expect(Math.max(...sessions.map((s) => s.depth))).toBe(depth)
})

test('an agent has no more children pending than the limit, and the model is told', async () => {
  const { run: start, send } = api({ width: 2 })
  const { run, sessions } = await start('wide')
  expect(run.status).toBe('completed')
  expect(sessions.filter((s) => s.kind === 'background')).toHaveLength(2)
  const { messages } = (await send('GET', `/v1/runs/${run.runId}/sessions/${run.rootSessionId}/messages?limit=100`))
    .body
  const told = messages.filter((m: { isError?: boolean }) => m.isError)
  expect(told).toHaveLength(3)
  expect(told[0].content).toContain('at most 2 agents may work for one session at once')
})

test('a session answers no more often than the limit', async () => {
  const { run: start } = api({ turns: 4 })
  const { run } = await start('endless')
  expect(run).toMatchObject({ status: 'failed', stopReason: 'max_iterations', usage: { calls: 4 } })
})

test('a team that asks for more turns than the limit is refused before anything is written', async () => {
  const { start, ctx } = api({ turns: 499 })
  const refused = await start({ team: 'stubborn', input: 'go' })
  expect([refused.status, refused.body.code]).toEqual([400, 'bad_request'])
  expect(refused.body.detail).toContain('the agent "root" has max_iterations 500, and 499 are the most here')
  expect((await ctx.store.listRuns('acme', { limit: 10 })).items).toEqual([])
})

test('a run goes on by the limits that it began with: they are stored with it', async () => {
  const { start, engine, ctx } = api({ depth: 1, width: 3 })
  const { body } = await start({ team: 'echo', input: 'go' })
  await engine.invoker.drain()
  const run = (await ctx.store.getRun({ tenant: 'acme', runId: body.runId }))!
  expect((await ctx.store.getDefinition(run, run.definition))?.limits).toEqual({ depth: 1, width: 3 })
})

describe('sessions at once', () => {
  test('a run may ask for as many as the limit', async () => {
    const { start, engine } = api({ concurrency: 20 })
    expect((await start({ team: 'echo', input: 'go', maxConcurrency: 20 })).status).toBe(202)
    await engine.invoker.drain()
    const refused = await start({ team: 'echo', input: 'go', maxConcurrency: 21 })
    expect([refused.status, refused.body.errors]).toEqual([
      400,
      [{ path: '/maxConcurrency', message: 'must be a whole number from 1 to 20' }],
    ])
  })

  test('of all runs of a tenant are bounded; another tenant has its own', async () => {
    const { start, as, ctx } = api({ tenantConcurrency: 10 })
    expect((await start({ team: 'slow', input: 'go', maxConcurrency: 6 })).status).toBe(202)
    const refused = await start({ team: 'slow', input: 'go', maxConcurrency: 5 })
    expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([429, 'too_many_runs', '1'])
    expect(refused.body.detail).toContain('10 sessions at once together, and this one asks for 5 more')
    expect((await ctx.store.listRuns('acme', { limit: 10 })).items).toHaveLength(1)
    expect((await start({ team: 'slow', input: 'go', maxConcurrency: 4 })).status).toBe(202)
    as('globex')
    expect((await start({ team: 'slow', input: 'go', maxConcurrency: 10 })).status).toBe(202)
  })

  test('fifty starts at once are let in as far as there is room, and no further', async () => {
    const { start, ctx } = api({ tenantConcurrency: 10 })
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => start({ team: 'slow', input: 'go', maxConcurrency: 1 })),
    )
    const by = (status: number) => answers.filter((a) => a.status === status).length
    expect([by(202), by(429)]).toEqual([10, 40])
    expect((await ctx.store.listRuns('acme', { limit: 100 })).items).toHaveLength(10)
  })

  test('a run that has ended makes room, whether it completed or was cancelled', async () => {
    const { start, send, engine } = api({ tenantConcurrency: 1 })
    for (let i = 0; i < 3; i++) {
      expect((await start({ team: 'echo', input: 'go' })).status).toBe(202)
      await engine.invoker.drain()
    }
    const { body } = await start({ team: 'slow', input: 'go' })
    expect((await start({ team: 'echo', input: 'go' })).status).toBe(429)
    await send('POST', `/v1/runs/${body.runId}/cancel`)
    await engine.invoker.drain()
    expect((await start({ team: 'echo', input: 'go' })).status).toBe(202)
    await engine.invoker.drain()
  })

  test('a new round takes a place as a new run does', async () => {
    const { start, send, engine } = api({ tenantConcurrency: 1 })
    const first = (await start({ team: 'echo', input: 'go' })).body.runId
    await engine.invoker.drain()
    const second = (await start({ team: 'slow', input: 'go' })).body.runId
    const refused = await send('POST', `/v1/runs/${first}/input`, { input: 'more' })
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_runs'])
    await send('POST', `/v1/runs/${second}/cancel`)
    await engine.invoker.drain()
    expect((await send('POST', `/v1/runs/${first}/input`, { input: 'more' })).status).toBe(202)
    expect((await start({ team: 'echo', input: 'go' })).status).toBe(429)
    await engine.invoker.drain()
  })

  test('the place of a start that never came to its run is taken back after a while', async () => {
    const { start, ctx, engine } = api({ tenantConcurrency: 1 })
    const take = (age: number) =>
      ctx.store.takePlace('acme', { runId: ctx.ids.runId(Date.now() - age), sessions: 1 }, 1)
    expect(await take(60_000)).toMatchObject({ taken: true })
    expect((await start({ team: 'echo', input: 'go' })).status).toBe(429)
    const [lost] = (await take(60_000)).places
    await ctx.store.givePlaceBack('acme', lost!)
    expect(await take(1_000_000)).toMatchObject({ taken: true })
    expect((await start({ team: 'echo', input: 'go' })).status).toBe(202)
    await engine.invoker.drain()
  })

  test('a place is taken and given back once, whoever repeats it', async () => {
    const { store } = api({}).ctx
    const place = { runId: '01JZZZZZZZZZZZZZZZZZZZZZZZ', sessions: 7 }
    for (let i = 0; i < 3; i++)
      expect(await store.takePlace('acme', place, 10)).toEqual({ taken: true, places: [place] })
    const other = { runId: '01JZZZZZZZZZZZZZZZZZZZZZZY', sessions: 3 }
    expect((await store.takePlace('acme', other, 10)).taken).toBe(true)
    for (let i = 0; i < 3; i++) await store.givePlaceBack('acme', place)
    expect((await store.takePlace('acme', { ...place, sessions: 8 }, 10)).taken).toBe(false)
    expect((await store.takePlace('acme', place, 10)).taken).toBe(true)
  })

  test('places of runs that are over do not pile up', async () => {
    const { start, engine, ctx } = api({})
    for (let i = 0; i < 40; i++) {
      expect((await start({ team: 'echo', input: 'go' })).status).toBe(202)
      await engine.invoker.drain()
    }
    const place = { runId: '01JZZZZZZZZZZZZZZZZZZZZZZZ', sessions: 1 }
    expect((await ctx.store.takePlace('acme', place, 10_000)).places.length).toBeLessThan(12)
  })
})

describe('answers that wait for events', () => {
  /** A run that goes on for long, and readers who have been told all that there is. */
  async function readers(polls: number, streams?: number) {
    const clock = createVirtualClock()
    const table = memoryTable()
    const engine = testEngine({ table, teams: [slow], clock })
    const ctx = { ...engine.ctx, settings: { ...engine.ctx.settings, limits: { ...DEFAULT_LIMITS, polls } } }
    const app = createApp(ctx, {
      tenantOf: (request) => request.headers.get('x-tenant') ?? 'acme',
      ...(streams !== undefined && { streams }),
    })
    const cursors = new Map<string, { path: string; cursor: string }>()
    for (const tenant of ['acme', 'globex']) {
      const started = await app.request('/v1/runs', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-tenant': tenant },
        body: JSON.stringify({ team: 'slow', input: 'go' }),
      })
      const path = `/v1/runs/${((await started.json()) as RunView).runId}/events`
      await clock.advance(100)
      const stream = await app.request(path, { headers: { 'x-tenant': tenant } })
      const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader()
      let text = ''
      while (!/^id: /m.test(text)) text += (await reader.read()).value ?? ''
      await reader.cancel()
      cursors.set(tenant, { path, cursor: parseEvents(text).cursor! })
      await clock.advance(100)
    }
    const ask = (tenant = 'acme', from = cursors.get(tenant)!.cursor) => {
      const { path } = cursors.get(tenant)!
      const state: { text: string; over: boolean; cancel: () => Promise<unknown> } = {
        text: '',
        over: false,
        cancel: async () => {},
      }
      void (async () => {
        const response = await app.request(path, { headers: { 'x-tenant': tenant, 'last-event-id': from } })
        expect(response.status).toBe(200)
        const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
        state.cancel = () => reader.cancel()
        for (let piece = await reader.read(); !piece.done; piece = await reader.read()) state.text += piece.value
        state.over = true
      })()
      return state
    }
    return { clock, ctx, ask, cursor: cursors.get('acme')!.cursor }
  }

  test('are bounded for each tenant: a further one is answered at once and comes back later', async () => {
    const { clock, ask, cursor } = await readers(2)
    const waiting = [ask(), ask()]
    await clock.advance(1_000)
    const further = ask()
    await clock.advance(100)
    expect(further.over).toBe(true)
    expect(parseEvents(further.text)).toEqual({ events: [], end: undefined, cursor, retry: 20_000 })
    // one that has something to tell would not have waited: nothing about it is different
    const late = ask('acme', '')
    await clock.advance(100)
    expect(parseEvents(late.text)).toMatchObject({ events: [{ event: 'session.created' }, {}], cursor, retry: 1_000 })
    const other = ask('globex')
    await clock.advance(1_000)
    expect([...waiting, other].map((a) => a.over)).toEqual([false, false, false])
    await clock.advance(20_000)
    expect(waiting.map((a) => a.over)).toEqual([true, true])
    const next = ask()
    await clock.advance(1_000)
    expect(next.over).toBe(false)
    await clock.advance(20_000)
  })

  test('ten at once find as many places as there are', async () => {
    const { clock, ask } = await readers(3)
    const all = Array.from({ length: 10 }, () => ask())
    await clock.advance(1_000)
    expect(all.filter((a) => !a.over)).toHaveLength(3)
    await clock.advance(20_000)
  })

  test('a place whose process was lost is taken by somebody else after a minute', async () => {
    const { clock, ctx, ask } = await readers(1)
    expect(await ctx.store.takePoll('acme', ctx.ids.runId(clock.now()), 1)).toMatchObject({ taken: true })
    const first = ask()
    await clock.advance(59_000)
    expect(parseEvents(first.text).retry).toBe(20_000)
    await clock.advance(2_000)
    const second = ask()
    await clock.advance(1_000)
    expect(second.over).toBe(false)
    await clock.advance(20_000)
  })

  test('where the table does not take the count, an answer does not wait', async () => {
    const { clock, ctx, ask } = await readers(5)
    Object.assign(ctx.store, { takePoll: () => Promise.reject(new Error('throttled')) })
    const answer = ask()
    await clock.advance(100)
    expect([answer.over, parseEvents(answer.text).retry]).toEqual([true, 20_000])
  })

  test('in one process a tenant has its share of the streams', async () => {
    const { clock, ask, cursor } = await readers(2, 10)
    const streams = [ask(), ask()]
    await clock.advance(1_000)
    const further = ask()
    await clock.advance(100)
    expect(parseEvents(further.text)).toEqual({ events: [], end: undefined, cursor, retry: 20_000 })
    expect([further, ...streams].map((a) => a.over)).toEqual([true, false, false])
    const other = ask('globex')
    await streams[0]!.cancel()
    await clock.advance(100)
    const next = ask()
    await clock.advance(1_000)
    expect([other, next].map((a) => a.over)).toEqual([false, false])
    for (const stream of [other, next, streams[1]!]) await stream.cancel()
  })
})

describe('the settings', () => {
  test('are those of the code where nothing is set', () => {
    expect(readLimits({ SUBLEDGER_MAX_DEPTH: '' })).toEqual(DEFAULT_LIMITS)
    expect(readLimits({ SUBLEDGER_MAX_DEPTH: '0', SUBLEDGER_TENANT_CONCURRENCY: '7' })).toEqual({
      ...DEFAULT_LIMITS,
      depth: 0,
      tenantConcurrency: 7,
    })
  })

  test.each([
    ['SUBLEDGER_MAX_BODY_BYTES', '1000001', 'from 1000 to 1000000'],
    ['SUBLEDGER_MAX_DEPTH', '-1', 'from 0 to 50'],
    ['SUBLEDGER_MAX_WIDTH', '101', 'from 1 to 100'],
    ['SUBLEDGER_MAX_TURNS', '1e3', 'from 1 to 100000'],
    ['SUBLEDGER_MAX_TASKS', '10001', 'from 1 to 10000'],
    ['SUBLEDGER_MAX_CONCURRENCY', '0', 'from 1 to 1000'],
    ['SUBLEDGER_MAX_POLLS', '1001', 'from 0 to 1000'],
    ['SUBLEDGER_TENANT_CONCURRENCY', 'many', 'from 1 to 1000000'],
  ])('%s refuses %s', (name, text, range) => {
    expect(() => readLimits({ [name]: text })).toThrow(`${name} is "${text}": it must be a whole number ${range}`)
  })
})
