/** What a run may cost before it starts, against figures that were worked out by hand, and against runs. */
import { describe, expect, test } from 'vitest'
import { inputBound } from '../../src/domain/budget.ts'
import { formatUsd, parseUsd } from '../../src/domain/money.ts'
import type { Permissions } from '../../src/domain/permissions.ts'
import type { TeamDefinition } from '../../src/domain/team.ts'
import { known } from '../../src/domain/usage.ts'
import { estimateRun } from '../../src/engine/estimate-run.ts'
import { promptOf } from '../../src/engine/intent.ts'
import { ownMost } from '../../src/engine/most-of-run.ts'
import { type StartRun, startRun } from '../../src/engine/start-run.ts'
import { toolsFor } from '../../src/engine/tools/specs.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const PRICE = { input: '3', output: '15', cacheRead: '0.3', cacheWrite: '3.75', cacheWrite1h: '6' }
const step = { text: 'done', usage: { input: 100, output: 10 } }
const leaf = (name: string, maxTokens = 1_000, of = {}) => ({
  agent: agent(name, of),
  steps: [step],
  model: { maxTokens },
})

async function estimate(team: TeamDefinition, request: Partial<StartRun>) {
  const table = memoryTable()
  const engine = testEngine({ table, teams: [team] })
  const e = await estimateRun(engine.ctx, { tenant: 'local', team: team.name, ...request })
  expect(table.items()).toEqual([])
  const shown = (usd: bigint | null) => (usd === null ? null : formatUsd(usd))
  return { ...e, leastUsd: shown(e.least.usd), mostUsd: shown(e.most.usd) }
}

/** Bytes of a prompt as the hold counts them, with the room that is left for what stands around a task. */
const firstInput = (system: string, task: string, tools: readonly unknown[] = []) =>
  inputBound(system, [], tools) + JSON.stringify(task).length + 128

describe('one agent without tools', () => {
  // "You are root." and the input: 13 + 35 bytes are 3 tokens of 16
  const team = scriptedTeam('t', [leaf('root')])
  const input = 'x'.repeat(35)

  test('costs at least its prompt from the cache and one token', async () => {
    const e = await estimate(team, { input })
    expect(e.least).toMatchObject({ tok: 4n, calls: 1 })
    // 3 at USD 0.3 and 1 at USD 15 a million
    expect(e.leastUsd).toBe('0.0000159')
    expect(e.least.how.join('\n')).toContain('at least 3 tokens of input (one for every 16 bytes of text) at USD 0.3')
  })

  test('that may answer once costs at most five calls, of which four fail', async () => {
    const once = scriptedTeam('t', [leaf('root', 1_000, { maxIterations: 1 })])
    const e = await estimate(once, { input })
    const tokens = firstInput('You are root.', input)
    expect(e.most.tok).toBe(BigInt(5 * (tokens + 1_000)))
    expect(e.most.usd).toBe(5n * (BigInt(tokens) * parseUsd('0.000006') + 1_000n * parseUsd('0.000015')))
    expect(e.most.how[0]).toBe(
      'root (scripted/script): a session answers once, with up to 1,000 tokens, after up to 4 failed calls.',
    )
  })

  test('may answer again where its model calls a tool all the same, up to the default of max_iterations', async () => {
    const e = await estimate(team, { input })
    const growth = 1_000 * 16 + 1_000 * 256
    const inputs = 3 * firstInput('You are root.', input) + (growth * 3 * 2) / 2
    expect(e.most.tok).toBe(BigInt(5 * (inputs + 3 * 1_000)))
    expect(e.most.how[0]).toBe(
      'root (scripted/script): a session answers up to 3 times (the default of max_iterations; having no tools, more than once only where its model calls one), each time with up to 1,000 tokens, after up to 4 failed calls.',
    )
  })

  test('a budget bounds the most, and says whether it covers the first call', async () => {
    const all = await estimate(team, { input, budget: { usd: '50000' } })
    expect(all).toMatchObject({ mostUsd: (await estimate(team, { input })).mostUsd, firstCall: { covered: 'whole' } })
    const hold = all.firstCall!.hold.usd
    const some = await estimate(team, { input, budget: { usd: formatUsd(hold) } })
    expect(some).toMatchObject({ mostUsd: formatUsd(hold), firstCall: { covered: 'whole', cap: 1_000 } })
    const less = await estimate(team, { input, budget: { usd: formatUsd(hold - 1n) } })
    expect(less).toMatchObject({ leastUsd: '0', mostUsd: '0', firstCall: { covered: 'no', cap: null } })
    expect(less.most.how).toEqual(['The budget does not cover a first call, so no call is made.'])
  })

  test('an output cap that may shrink lets less money cover the first call', async () => {
    const shrinks = scriptedTeam('t', [{ ...leaf('root'), model: { maxTokens: 1_000, minTokens: 100 } }])
    const hold = (await estimate(shrinks, { input, budget: { usd: '5' } })).firstCall!.hold.usd
    const e = await estimate(shrinks, { input, budget: { usd: formatUsd(hold - 500n * parseUsd('0.000015')) } })
    expect(e.firstCall).toEqual({ covered: 'shrunk', cap: 500, hold: { usd: hold, tok: expect.any(BigInt) } })
  })

  test('a budget in tokens bounds the money at the dearest rate', async () => {
    const e = await estimate(team, { input, budget: { tokens: 3_000 } })
    expect(e).toMatchObject({ most: { tok: 3_000n }, mostUsd: formatUsd(3_000n * parseUsd('0.000015')) })
  })

  test('a budget of 0 lets nothing be called', async () => {
    expect(await estimate(team, { input, budget: { usd: '0' } })).toMatchObject({
      least: { calls: 0 },
      firstCall: { covered: 'no' },
    })
  })
})

describe('a list of tasks', () => {
  const team = scriptedTeam('t', [leaf('a', 1_000, { maxIterations: 1 }), leaf('b', 50, { maxIterations: 1 })])
  const tasks = [
    { agent: 'a', task: 'x'.repeat(38) }, // with "You are a.": 48 bytes
    { agent: 'a', task: 'x'.repeat(70) }, // 80 bytes
    { agent: 'b', task: 'x'.repeat(22) }, // 32 bytes
  ]

  test('costs at least a first call of each', async () => {
    const e = await estimate(team, { tasks })
    expect(e.least).toMatchObject({ tok: BigInt(3 + 5 + 2 + 3), calls: 3 })
    expect(e.least.usd).toBe(10n * parseUsd('0.0000003') + 3n * parseUsd('0.000015'))
    expect(e.agents.map((a) => [a.agent.name, a.first!.count, a.first!.leastTokens])).toEqual([
      ['a', 2, 10n],
      ['b', 1, 3n],
    ])
  })

  test('costs at most what all of them may', async () => {
    const e = await estimate(team, { tasks })
    const inputs = tasks.map((t) => firstInput(`You are ${t.agent}.`, t.task))
    expect(e.most.tok).toBe(BigInt(5 * (inputs.reduce((a, b) => a + b) + 1_000 + 1_000 + 50)))
  })

  test('under a budget one of them is made for certain', async () => {
    const e = await estimate(team, { tasks, budget: { usd: '0.01' } })
    expect(e.least).toMatchObject({ calls: 1, tok: 3n, usd: 2n * parseUsd('0.0000003') + parseUsd('0.000015') })
  })
})

describe('an agent that leads others', () => {
  const lead = (of = {}) => ({
    agent: agent('root', { subAgents: ['w'], maxIterations: 3, ...of }),
    steps: [step],
    model: { maxTokens: 10 },
  })
  const team = scriptedTeam('t', [lead(), leaf('w', 7, { maxIterations: 1 })])

  test('may start as many as its answers and the width allow, and reads all that they bring', async () => {
    const e = await estimate(team, { input: 'go' })
    const [root, w] = team.agents
    // answers 1 and 2 may start 100 each: the tools of the last one are not run
    expect(e.most.how.join('\n')).toContain('In all up to 201 sessions with 1,015 calls')
    const tools = toolsFor(team, root!)
    const said = `${root!.instruction}\n\nYou lead these agents:\n- w: ${w!.description}\n\nCall transfer_task to hand a task to one of them and get its result. Use no other names.`
    const first = firstInput(said, 'go', tools)
    // an answer of 10 tokens is read again as up to 160; a result has up to 512 bytes, those with outputs 2 MB together
    const growth = 10 * 16 + 10 * 512 + 2_000_000
    const own = 5 * (3 * first + 3 * growth + 3 * 10)
    const child = 5 * (inputBound('You are w.', [], []) + 10 * 16 + 128 + 7)
    expect(e.most.tok).toBe(BigInt(own + 200 * child))
  })

  test('that may lead each other are bounded by depth, and beyond all reason it says unbounded', async () => {
    const loop = scriptedTeam('t', [lead({ maxIterations: 50, subAgents: ['root'] })])
    const e = await estimate(loop, { input: 'go' })
    expect(e.most).toMatchObject({ usd: null, tok: null })
    expect(e.most.how.at(-1)).toBe(
      'That is as good as no bound of its cost and tokens: give a budget, or lower max_iterations.',
    )
    const budgeted = await estimate(loop, { input: 'go', budget: { usd: '20' } })
    expect(budgeted).toMatchObject({ mostUsd: '20', most: { tok: null } })
    const once = await estimate(scriptedTeam('t', [lead({ maxIterations: 1, subAgents: ['root'] })]), { input: 'go' })
    expect(once.most.how.join('\n')).toContain('In all up to 1 sessions with 5 calls')
  })
})

describe('results of tools are in the most', () => {
  test('with the notes of those who deny', async () => {
    const team = scriptedTeam('t', [leaf('root', 2_000, { maxIterations: 2, toolsets: ['think'] })])
    const most = async (permissions: Permissions) =>
      (await estimate({ ...team, permissions }, { input: 'go' })).most.tok!
    // a hundred notes of 1,000 characters, read by each of the second answer's five tries
    expect((await most({ ask: ['think'] })) - (await most({}))).toBe(5n * 100n * 1_000n * 3n)
  })

  test('with all names where one is wrong, and those of calls that were too many', () => {
    const names = Array.from({ length: 40 }, (_, i) => `worker-number-${i}`)
    const root = agent('root', { maxIterations: 2, subAgents: names })
    const team = scriptedTeam('t', [{ ...leaf('root', 2_000), agent: root }, ...names.map((n) => leaf(n))])
    const { system, tools } = promptOf({ team, agent: root }, [])
    const results = 1_000 * (256 + names.join(', ').length) + 1_000 * 256 + 2_000_000
    expect(ownMost(team, root, 0, 0).largestInput).toBe(inputBound(system, [], tools) + 128 + 2_000 * 16 + results)
  })
})

test('a run costs no more than the most, also where its agent has no tools and its model calls one', async () => {
  const usage = { input: 10, output: 1_000 }
  const steps = [...Array(20).fill({ calls: [{ tool: 'made_up' }], usage }), { text: 'done', usage }]
  const team = scriptedTeam('t', [{ ...leaf('root'), agent: agent('root', { maxIterations: 21 }), steps }])
  const engine = testEngine({ table: memoryTable(), teams: [team] })
  const request = { tenant: 'local', team: 't', input: 'go' }
  const { most } = await estimateRun(engine.ctx, request)
  const started = await startRun(engine.ctx, request)
  await engine.invoker.drain()
  const { cost, calls } = known((await engine.ctx.store.getRun(started))!.books)
  expect(calls).toBe(21)
  expect(cost).toBeLessThanOrEqual(most.usd!)
})

describe('a model without a known price', () => {
  const { cost: _, ...unpriced } = scriptedTeam('t', [leaf('root')]).models.root!
  const team: TeamDefinition = { ...scriptedTeam('t', [leaf('root')]), models: { root: unpriced } }

  test('makes the money unknown, and not nothing', async () => {
    const e = await estimate(team, { input: 'go' })
    expect(e).toMatchObject({ leastUsd: null, mostUsd: null, least: { tok: 2n } })
    expect(e.least.how.join('\n')).toContain('The price of scripted/script is not known')
    expect(e.most.how.join('\n')).toContain('No price of scripted/script is known')
    expect(e.most.tok).not.toBeNull()
  })

  test('is refused under a budget in USD, as the start would be', async () => {
    await expect(estimate(team, { input: 'go', budget: { usd: '1' } })).rejects.toMatchObject({
      code: 'unpriced_model',
    })
    expect(await estimate(team, { input: 'go', budget: { tokens: 9_000 } })).toMatchObject({ mostUsd: null })
  })
})

test('a run costs no less and no more, also where calls fail and a budget is nearly used up', async () => {
  const failing = { ...step, error: { class: 'server', message: 'no', times: 2, usage: { input: 100, output: 10 } } }
  const team = scriptedTeam('t', [{ ...leaf('root', 20), steps: [failing] }])
  const request = { tenant: 'local', team: 't', input: 'x'.repeat(1_000) }
  const clock = createVirtualClock()
  const engine = testEngine({ table: memoryTable(), teams: [team], clock })
  for (const budget of [undefined, { usd: '0.02' }]) {
    const { least, most } = await estimateRun(engine.ctx, { ...request, budget })
    const started = await startRun(engine.ctx, { ...request, budget })
    await clock.advance(60_000)
    await engine.invoker.drain()
    const { cost, calls } = known((await engine.ctx.store.getRun(started))!.books)
    expect(calls).toBe(3)
    expect(cost).toBeGreaterThanOrEqual(least.usd!)
    expect(cost).toBeLessThanOrEqual(most.usd!)
  }
})

test('the price is that of the model, with where it comes from', async () => {
  const e = await estimate(scriptedTeam('t', [leaf('root')]), { input: 'go' })
  expect(e.team.models.root!.cost).toEqual(PRICE)
})
