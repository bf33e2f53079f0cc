import { describe, expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import type { ModelDefinition } from '../../src/domain/team.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { changeBudget } from '../../src/engine/change-budget.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { available } from '../support/money.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

/** One call holds USD 0.30 and costs what its output says, at USD 10 a million. */
const model: Partial<ModelDefinition> = {
  cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
  maxTokens: 30_000,
  minTokens: 30_000,
}
const DAY = 24 * 3_600_000

function lab(rootSteps: readonly object[], workerStep: object) {
  const clock = createVirtualClock()
  const team = scriptedTeam('t', [
    { agent: agent('root', { subAgents: ['worker'], toolsets: ['background_agents'] }), steps: rootSteps, model },
    { agent: agent('worker'), steps: [workerStep], model },
  ])
  const engine = testEngine({ table: memoryTable(), teams: [team], clock })
  return { ...engine, clock }
}

const text = (said: string, output: number) => ({ text: said, usage: { input: 10, output } })

describe('a run whose root is out of money', () => {
  const transfer = { tool: 'transfer_task', args: { agent: 'worker', task: 'x' } }
  const steps = [{ calls: [transfer], usage: { input: 10, output: 10_000 } }, text('thanks: {results}', 10_000)]

  async function poor() {
    const e = lab(steps, text('worked', 30_000))
    const run = await startRun(e.ctx, { tenant: 'local', team: 't', input: 'go', budget: { usd: '0.60' } })
    await e.clock.advance(1_000)
    return { ...e, run, stored: async () => (await e.ctx.store.getRun(run))! }
  }

  test('waits for its budget, and goes on where it was when that is raised', async () => {
    const { ctx, run, stored, clock, scripted } = await poor()
    expect(await stored()).toMatchObject({ status: 'waiting', stopReason: 'budget', finishedAt: null, round: 1 })
    const before = scripted.bill.length
    expect(before).toBe(2)

    const raised = await changeBudget(ctx, run, { usd: '1' })
    expect(raised).toMatchObject({ status: 'running', round: 2, limitSeq: 1 })
    await clock.advance(1_000)
    expect(await stored()).toMatchObject({ status: 'completed', stopReason: 'end_turn', round: 2 })
    expect(scripted.bill).toHaveLength(before + 1)
    const rootRef = { ...run, sessionId: rootSessionId(run.runId) }
    const log = await ctx.store.readLog(rootRef)
    expect([...log.responses.values()].at(-1)!.message!.content).toBe('thanks: worked')
    await expectBalanced(ctx.store, run, scripted)
    const { headers } = await ctx.store.getRunWithSessions(run)
    expect(available(await stored(), headers)).toBe(500_000_000_000n)
  })

  test('waits on where it is raised by too little, and as often as it is', async () => {
    const { ctx, run, stored, clock, scripted } = await poor()
    for (const usd of ['0.61', '0.62']) {
      await changeBudget(ctx, run, { usd })
      await clock.advance(1_000)
      expect((await stored()).status).toBe('waiting')
    }
    expect((await changeBudget(ctx, run, { usd: '0.5' })).status).toBe('waiting')
    await changeBudget(ctx, run, { usd: '0.75' })
    await clock.advance(1_000)
    expect(await stored()).toMatchObject({ status: 'completed' })
    expect(scripted.bill).toHaveLength(3)
    await expectBalanced(ctx.store, run, scripted)
  })

  test('is cancelled at once', async () => {
    const { ctx, run, clock } = await poor()
    expect(await cancelRun(ctx, run)).toMatchObject({ status: 'cancelled', stopReason: 'cancelled', error: null })
    await changeBudget(ctx, run, { usd: '9' })
    await clock.advance(1_000)
    expect((await ctx.store.getRun(run))!.status).toBe('cancelled')
  })

  test('fails after seven days', async () => {
    const { ctx, stored, clock } = await poor()
    const look = () => sweep(ctx, { deadlineAt: clock.now() + 60_000 })
    await clock.advance(7 * DAY - 10_000)
    await look()
    expect((await stored()).status).toBe('waiting')
    await clock.advance(20_000)
    await look()
    expect(await stored()).toMatchObject({ status: 'failed', stopReason: 'budget', dueAt: null })
  })

  test.each(['changeLimit', 'takeLimit', 'reopenRoot'] as const)(
    'goes on by the sweep when the one who raised it died after %s',
    async (last) => {
      const { ctx, run, stored, clock, scripted } = await poor()
      const dying = {
        ...ctx,
        store: {
          ...ctx.store,
          [last]: async (...args: never[]) => {
            await (ctx.store[last] as (...a: never[]) => Promise<unknown>)(...args)
            throw new Error('killed')
          },
        },
      }
      await expect(changeBudget(dying, run, { usd: '1' })).rejects.toThrow('killed')
      await clock.advance(3 * 60_000)
      await sweep(ctx, { deadlineAt: clock.now() + 60_000 })
      await clock.advance(3 * 60_000)
      await sweep(ctx, { deadlineAt: clock.now() + 60_000 })
      await clock.advance(1_000)
      expect((await stored()).status).toBe('completed')
      expect(scripted.bill).toHaveLength(3)
    },
  )
})

describe('raised in the middle of a fan-out', () => {
  const calls = [{ tool: 'transfer_task', args: { agent: 'worker', task: 'part {i}' }, repeat: 6 }]
  const steps = [{ calls, usage: { input: 10, output: 0 } }, text('ok', 1_000)]

  test('lets those go on who wait for money, and repeats no call', async () => {
    // the root keeps 0.30 for itself; two workers get theirs, four are born with nothing
    const e = lab(steps, { ...text('worked', 30_000), delayMs: 60_000 })
    const run = await startRun(e.ctx, { tenant: 'local', team: 't', input: 'go', budget: { usd: '0.90' } })
    await e.clock.advance(10_000)
    const states = async () => (await e.ctx.store.getRunWithSessions(run)).headers.filter((h) => h.parentId !== null)
    expect((await states()).filter((h) => h.status === 'running')).toHaveLength(2)
    await changeBudget(e.ctx, run, { usd: '2.40' })
    await e.clock.advance(10_000)
    expect((await states()).filter((h) => h.status === 'running')).toHaveLength(6)
    await e.clock.advance(120_000)
    expect(await e.ctx.store.getRun(run)).toMatchObject({ status: 'completed' })
    expect((await states()).every((h) => h.status === 'completed')).toBe(true)
    expect(e.scripted.bill).toHaveLength(8)
    await expectBalanced(e.ctx.store, run, e.scripted)
  })

  test('without it they are refused when nothing can come back, and the root is told and answers', async () => {
    const e = lab(steps, { ...text('worked', 30_000), delayMs: 60_000 })
    const run = await startRun(e.ctx, { tenant: 'local', team: 't', input: 'go', budget: { usd: '0.90' } })
    await e.clock.advance(120_000)
    const { run: stored, headers } = await e.ctx.store.getRunWithSessions(run)
    expect(stored).toMatchObject({ status: 'completed' })
    expect(headers.filter((h) => h.stopReason === 'budget')).toHaveLength(4)
    const log = await e.ctx.store.readLog({ ...run, sessionId: rootSessionId(run.runId) })
    const told = [...log.requests.values()].flatMap((r) => r.messages).filter((m) => m.role === 'tool' && m.isError)
    expect(told).toHaveLength(4)
    expect(told[0]!.content).toContain('The budget does not cover the next model call')
  })

  test('lowered below what is spent and held, it stops new holds, and what is held is still spent', async () => {
    const e = lab(steps, { ...text('worked', 10_000), delayMs: 60_000 })
    const run = await startRun(e.ctx, { tenant: 'local', team: 't', input: 'go', budget: { usd: '0.90' } })
    await e.clock.advance(10_000)
    await changeBudget(e.ctx, run, { usd: '0.20' })
    await e.clock.advance(200_000)
    const { run: stored, headers } = await e.ctx.store.getRunWithSessions(run)
    expect(headers.filter((h) => h.parentId !== null && h.status === 'completed')).toHaveLength(2)
    expect(stored!.status).toBe('completed')
    await expectBalanced(e.ctx.store, run, e.scripted)
    available(stored!, headers)
  })
})

describe('a list of tasks that is out of money', () => {
  const worker = { agent: agent('worker'), steps: [text('done: {task}', 10_000)], model }
  const tasks = (n: number) => Array.from({ length: n }, (_, i) => ({ agent: 'worker', task: `task ${i}` }))

  test.each([12, 130])(
    'of %i waits for its budget, and then makes new children of the tasks that were refused',
    async (n) => {
      const e = testEngine({ table: memoryTable(), teams: [scriptedTeam('t', [worker])] })
      const run = await startRun(e.ctx, { tenant: 'local', team: 't', tasks: tasks(n), budget: { usd: '0' } })
      const look = async () => {
        await e.invoker.drain()
        const { run: stored, headers } = await e.ctx.store.getRunWithSessions(run)
        const done = headers.filter((h) => h.kind === 'task' && h.status === 'completed')
        return { status: stored!.status, done: done.length, different: new Set(done.map((h) => h.taskPreview)).size }
      }
      expect(await look()).toEqual({ status: 'waiting', done: 0, different: 0 })
      await changeBudget(e.ctx, run, { usd: '1' })
      expect(await look()).toEqual({ status: 'waiting', done: 8, different: 8 })
      await changeBudget(e.ctx, run, { usd: '1.1' })
      expect(await look()).toEqual({ status: 'waiting', done: 9, different: 9 })
      await changeBudget(e.ctx, run, { usd: '20' })
      expect(await look()).toEqual({ status: 'completed', done: n, different: n })
      expect(e.scripted.bill).toHaveLength(n)
      expect(e.complaints).toEqual([])
      await expectBalanced(e.ctx.store, run, e.scripted)
    },
  )
})

test('a budget of 0 blocks everything, also calls that cost nothing', async () => {
  const free = { cost: { input: '0', output: '0' } }
  const team = scriptedTeam('t', [{ agent: agent('root'), steps: [{ text: 'x' }], model: free }])
  const e = testEngine({ table: memoryTable(), teams: [team] })
  for (const request of [{ input: 'x' }, { tasks: [{ agent: 'root', task: 'x' }] }]) {
    const run = await startRun(e.ctx, { tenant: 'local', team: 't', ...request, budget: { usd: '0' } })
    await e.invoker.drain()
    expect(await e.ctx.store.getRun(run)).toMatchObject({ status: 'waiting', stopReason: 'budget' })
  }
  expect(e.scripted.bill).toHaveLength(0)
})

describe('a budget is refused at the start', () => {
  const unpriced = scriptedTeam('t', [
    { agent: agent('root', { subAgents: ['worker'] }), steps: [{ text: 'x' }] },
    { agent: agent('worker'), steps: [{ text: 'x' }], model: { model: 'mystery' } },
    { agent: agent('other'), steps: [{ text: 'x' }] },
  ])
  const { cost: _, ...worker } = unpriced.models.worker!
  const team = { ...unpriced, models: { ...unpriced.models, worker } }
  const start = (budget: object, of: object = { input: 'x' }) => {
    const e = testEngine({ table: memoryTable(), teams: [team] })
    return startRun(e.ctx, { tenant: 'local', team: 't', budget, ...of })
  }

  test('where an agent that may come to work has a model without a price: with its name, and what to do', async () => {
    await expect(start({ usd: '1' })).rejects.toMatchObject({
      code: 'unpriced_model',
      message: expect.stringMatching(/"worker" uses "worker" \(scripted\/mystery\).*"cost" in the team file/),
    })
    await expect(start({ usd: '1' }, { tasks: [{ agent: 'other', task: 'x' }] })).resolves.toBeDefined()
    await expect(start({ tokens: 1_000_000 })).resolves.toBeDefined()
  })

  test.each([
    [{}, '/budget'],
    [{ usd: '-1' }, '/budget/usd'],
    [{ usd: '1e3' }, '/budget/usd'],
    [{ usd: '0.0000000000001' }, '/budget/usd'],
    [{ usd: '999999999999999' }, '/budget/usd'],
    [{ tokens: -1 }, '/budget/tokens'],
    [{ tokens: 1.5 }, '/budget/tokens'],
  ])('where it is none: %j', async (budget, path) => {
    await expect(start(budget)).rejects.toMatchObject({ code: 'bad_request', issues: [{ path }] })
  })
})

test('a budget in tokens alone holds as one in money does', async () => {
  const team = scriptedTeam('t', [
    {
      agent: agent('worker'),
      steps: [{ text: 'x', usage: { input: 1_000, output: 1_000 } }],
      model: { maxTokens: 10_000, minTokens: 10_000 },
    },
  ])
  const e = testEngine({ table: memoryTable(), teams: [team] })
  const tasks = Array.from({ length: 12 }, (_, i) => ({ agent: 'worker', task: `task ${i}` }))
  const run = await startRun(e.ctx, { tenant: 'local', team: 't', tasks, budget: { tokens: 25_000 } })
  await e.invoker.drain()
  const stored = (await e.ctx.store.getRun(run))!
  const used = stored.books.accepted!.inputTokens + stored.books.accepted!.outputTokens
  expect(used).toBeLessThanOrEqual(25_000)
  // a call holds its 10,000 and about 600 for its input, and uses 2,000
  expect(stored.books.accepted!.calls).toBe(8)
})
