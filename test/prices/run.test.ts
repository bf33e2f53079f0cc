/** Prices in a run: frozen when it begins, told on each call, and null where they are not known. */
import { describe, expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import { formatUsd } from '../../src/domain/money.ts'
import { costOf } from '../../src/domain/pricing.ts'
import type { Run } from '../../src/domain/run.ts'
import type { ModelDefinition, ModelPrices } from '../../src/domain/team.ts'
import { NO_USAGE, type TokenUsage } from '../../src/domain/usage.ts'
import { addInput } from '../../src/engine/add-input.ts'
import { definitionOf } from '../../src/engine/definition.ts'
import { runSession } from '../../src/engine/run-session.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { createApp } from '../../src/http/app.ts'
import { callView } from '../../src/http/views/call.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { Model, ModelResult, Prices } from '../../src/ports.ts'
import { createPrices } from '../../src/prices/prices.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const builtIn = createPrices()

/** A model that is not scripted, and answers with this usage. */
const answering = (usage: Partial<TokenUsage>, of: Partial<ModelResult> = {}): Model => ({
  call: async () => ({
    message: { role: 'assistant', content: 'done', toolCalls: [] },
    finishReason: 'stop',
    usage: { ...NO_USAGE, ...usage },
    usageSource: 'reported',
    ...of,
  }),
})

function engineOf(model: Partial<ModelDefinition>, answer: Model, prices: Prices = builtIn): TestEngine {
  const team = scriptedTeam('solo', [{ agent: agent('root'), steps: [] }])
  const { cost: _, ...scripted } = team.models.root!
  const models = { root: { ...scripted, ...model } }
  const engine = testEngine({ table: memoryTable(), teams: [{ ...team, models }], prices })
  Object.assign(engine.ctx, { model: answer })
  return engine
}

async function callsOf(engine: TestEngine) {
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'go' })
  await engine.invoker.drain()
  const { items } = await engine.ctx.store.listCalls(run, { limit: 10 })
  const stored = (await engine.ctx.store.getRun(run))!
  return { run: stored, calls: items, views: await viewsOf(engine, stored, items) }
}

async function viewsOf(engine: TestEngine, run: Run, items: readonly Parameters<typeof callView>[0][]) {
  const team = await definitionOf(engine.ctx, run)
  return items.map((slot) => callView(slot, team))
}

describe('a call of a model without a cost in its team file', () => {
  test('has the price of the table, and says which', async () => {
    const claude = { provider: 'anthropic', model: 'claude-opus-4-8' }
    const written = { inputTokens: 1_000_000, cacheWriteTokens: 1_000_000, cacheWrite1hTokens: 400_000 }
    const { calls, views } = await callsOf(engineOf(claude, answering(written)))
    expect(formatUsd(calls[0]!.cost!)).toBe('7.75')
    expect(views[0]).toMatchObject({
      costUsd: '7.75',
      usage: { cacheWriteTokens: 1_000_000, cacheWrite1hTokens: 400_000 },
      price: { input: '5', output: '25', cacheRead: '0.5', cacheWrite: '6.25', cacheWrite1h: '10' },
    })
    expect(views[0]!.price!.source).toContain('@pydantic/genai-prices ')
  })

  test.each([
    [271_999, '2.5', '0.6799975'],
    [272_000, '5', '1.36'],
  ])('of %i tokens has the price of its tier for all of them', async (inputTokens, input, costUsd) => {
    const gpt = { provider: 'openai', model: 'gpt-5.4' }
    const { calls, views } = await callsOf(engineOf(gpt, answering({ inputTokens })))
    expect([views[0]!.price!.input, views[0]!.costUsd]).toEqual([input, costUsd])
    expect(costOf(calls[0]!.usage, calls[0]!.price)).toBe(calls[0]!.cost)
  })

  test('has the price of the model that answered, where that is another', async () => {
    const usage = { inputTokens: 1_000, outputTokens: 100 }
    const asked = { provider: 'openai', model: 'gpt-4o' }
    const cost = async (answeredBy: string, of: Partial<ModelDefinition> = {}) =>
      (await callsOf(engineOf({ ...asked, ...of }, answering(usage, { answeredBy })))).views[0]!.costUsd
    expect(await cost('gpt-4o-2024-08-06')).toBe('0.0035')
    expect(await cost('gpt-4o-2024-05-13')).toBe('0.0065')
    expect(await cost('somebody-else')).toBe('0.0035')
    expect(await cost('gpt-4o-2024-05-13', { cost: { input: '1', output: '1' } })).toBe('0.0011')
  })

  test('of which the table does not know has none: its tokens are booked, its cost is not, and the run says so', async () => {
    // B25
    const used = { inputTokens: 8_219 + 813_056, cacheReadTokens: 813_056, outputTokens: 177 }
    const engine = engineOf({ provider: 'openai', model: 'gpt-of-tomorrow' }, answering(used))
    const { run, calls } = await callsOf(engine)
    expect(calls[0]).toMatchObject({ cost: null, price: null, usage: used })
    expect(run.books.accepted).toMatchObject({ ...used, cost: 0n, unpricedCalls: 1 })
    expect(engine.complaints.join()).toContain('calls of these models will have no price')
    expect(engine.complaints.join()).toContain('"models":["root"]')

    const app = createApp(engine.ctx, { tenantOf: () => 'local' })
    const view = (await (await app.request(`/v1/runs/${run.runId}`)).json()) as RunView
    expect(view).toMatchObject({ costUsd: '0', costComplete: false, unpricedCalls: 1, usage: { inputTokens: 821_275 } })
    expect(view.warnings).toEqual(['Calls of the model "root" without a known price: 1.'])
    const started = await app.request('/v1/runs', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"team":"solo","input":"go"}',
    })
    expect(((await started.json()) as RunView).warnings).toEqual([
      'No price of the model "root" is known: its calls will be booked without a cost.',
    ])
    await engine.invoker.drain()
  })

  test('warns of nothing where every price is known', async () => {
    const engine = engineOf({ provider: 'openai', model: 'gpt-4o' }, answering({ inputTokens: 1 }))
    const { run } = await callsOf(engine)
    const app = createApp(engine.ctx, { tenantOf: () => 'local' })
    expect(((await (await app.request(`/v1/runs/${run.runId}`)).json()) as RunView).warnings).toEqual([])
    expect(engine.complaints).toEqual([])
  })
})

describe('a run', () => {
  const flat = (input: string): ModelPrices => ({
    source: `list at ${input}`,
    schedule: [{ tiers: [{ from: 0, input, output: '0' }] }],
  })

  test('keeps the prices that it began with, in later rounds too; the next run has the new ones', async () => {
    let today = flat('1')
    const engine = engineOf({}, answering({ inputTokens: 1_000_000 }), { of: async () => today })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'go' })
    await engine.invoker.drain()
    today = flat('2')
    await addInput(engine.ctx, run, 'and on')
    await engine.invoker.drain()
    const first = await engine.ctx.store.listCalls(run, { limit: 10 })
    expect(first.items.map((c) => formatUsd(c.cost!))).toEqual(['1', '1'])

    const { calls, views } = await callsOf(engine)
    expect(calls.map((c) => formatUsd(c.cost!))).toEqual(['2'])
    expect(views[0]!.price!.source).toBe('list at 2')
    const stored = (await engine.ctx.store.getRun(run))!
    expect((await viewsOf(engine, stored, first.items))[0]!.price!.source).toBe('list at 1')
  })

  test('changes its price on the day that its list says', async () => {
    const clock = createVirtualClock()
    const soon = new Date(clock.now() + 86_400_000).toISOString().slice(0, 10)
    const dated: ModelPrices = {
      source: 'a list',
      schedule: [...flat('1').schedule, { since: soon, tiers: [{ from: 0, input: '2', output: '0' }] }],
    }
    const team = scriptedTeam('solo', [{ agent: agent('root'), steps: [] }])
    const { cost: _, ...model } = team.models.root!
    const engine = testEngine({
      table: memoryTable(),
      teams: [{ ...team, models: { root: model } }],
      prices: { of: async () => dated },
      clock,
    })
    Object.assign(engine.ctx, { model: answering({ inputTokens: 1_000_000 }) })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'go' })
    await clock.advance(1_000)
    await clock.advance(86_400_000)
    await addInput(engine.ctx, run, 'and on')
    await clock.advance(1_000)
    const { items } = await engine.ctx.store.listCalls(run, { limit: 10 })
    expect(items.map((c) => formatUsd(c.cost!))).toEqual(['1', '2'])
  })

  test('holds enough for a prompt whose bound crosses a border, and books an unknown call at what was held', async () => {
    const clock = createVirtualClock()
    const team = scriptedTeam('solo', [{ agent: agent('root'), steps: [] }])
    const { cost: _, ...scripted } = team.models.root!
    const models = { root: { ...scripted, provider: 'openai', model: 'gpt-5.4', maxTokens: 1_000 } }
    const engine = testEngine({ table: memoryTable(), teams: [{ ...team, models }], prices: builtIn, clock })
    // the first driver dies in its call; the next one gets an answer
    let calls = 0
    const answer = answering({ inputTokens: 100 })
    Object.assign(engine.ctx, {
      model: { call: (r) => (calls++ === 0 ? new Promise(() => {}) : answer.call(r)) } satisfies Model,
    })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'x'.repeat(300_000) })
    const ref = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
    await clock.advance(1_000)
    const { first } = (await engine.ctx.store.getHeader(ref))!
    expect(first!.estimate).toBeGreaterThan(300_000)
    expect(first!.hold.usd).toBe(BigInt(first!.estimate) * 5_000_000n + 1_000n * 22_500_000n)

    await clock.advance(20 * 60_000)
    void runSession(engine.ctx, ref, { deadlineAt: clock.now() + 600_000 })
    await clock.advance(60_000)
    const { items } = await engine.ctx.store.listCalls(run, { limit: 10 })
    const lost = items.find((c) => c.outcome === 'unknown')!
    expect(lost).toMatchObject({ cost: first!.hold.usd, usage: { inputTokens: first!.estimate, outputTokens: 1_000 } })
    // by the same rule as any other: usage and price alone give the cost
    expect(costOf(lost.usage, lost.price)).toBe(lost.cost)
  })
})

test('a run stays within its budget whichever snapshot answers: a call is held at the dearest that it may be booked at', async () => {
  const of = { provider: 'mistral', model: 'mistral-small-latest' }
  const answeredBy = 'mistral-small-2603'
  const { schedule, others } = (await builtIn.of(of))!
  expect(Number(others![answeredBy]![0]!.tiers[0]!.output)).toBeGreaterThan(Number(schedule[0]!.tiers[0]!.output))
  const cap = 100_000
  const made = scriptedTeam('t', [{ agent: agent('worker'), steps: [] }])
  const { cost: _, ...scripted } = made.models.worker!
  const models = { worker: { ...scripted, ...of, maxTokens: cap, minTokens: cap } }
  const engine = testEngine({ table: memoryTable(), teams: [{ ...made, models }], prices: builtIn })
  Object.assign(engine.ctx, { model: answering({ inputTokens: 100, outputTokens: cap }, { answeredBy }) })
  const tasks = ['a', 'b'].map((task) => ({ agent: 'worker', task }))
  // enough for one call at the dearer price, and for two at the price of the model that is asked for
  const run = await startRun(engine.ctx, { tenant: 'local', team: 't', tasks, budget: { usd: '0.065' } })
  await engine.invoker.drain()
  const { items } = await engine.ctx.store.listCalls(run, { limit: 10 })
  expect(items.map(({ cost }) => formatUsd(cost!))).toEqual(['0.060015'])
})
