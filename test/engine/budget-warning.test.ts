import { describe, expect, test } from 'vitest'
import type { ModelDefinition } from '../../src/domain/team.ts'
import { NO_TOTALS } from '../../src/domain/usage.ts'
import { changeBudget } from '../../src/engine/change-budget.ts'
import type { Budget } from '../../src/engine/limit.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweepRun } from '../../src/engine/sweep-run.ts'
import { createEmbeddedMetrics } from '../../src/metrics.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { aChild, aRun, aRunningHeader, money, row } from '../support/builders.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'

/** A call holds and costs USD 0.10 and 10,000 tokens. */
const model: Partial<ModelDefinition> = {
  cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
  maxTokens: 10_000,
  minTokens: 10_000,
}
const usage = { input: 0, output: 10_000 }
const think = { calls: [{ tool: 'nothing' }], usage }

function lab() {
  const engine = testEngine({
    table: memoryTable(),
    teams: [
      scriptedTeam('t', [
        { agent: agent('root', { maxIterations: 4 }), steps: [think, think, think, { text: 'done', usage }], model },
        { agent: agent('worker'), steps: [{ text: 'done', usage }], model },
      ]),
    ],
  })
  const [said, tries]: [{ [key: string]: unknown }[], boolean[]] = [[], []]
  const metrics = createEmbeddedMetrics((line) => {
    const fields = JSON.parse(line)
    if (fields.BudgetWarnings) said.push(fields)
  })
  const { store } = engine.ctx
  const warnBudget: typeof store.warnBudget = async (...args) => {
    const written = await store.warnBudget(...args)
    tries.push(written.written)
    return written
  }
  Object.assign(engine.ctx, { metrics, store: { ...store, warnBudget } })
  const started = async (request: object, budget?: Budget) => {
    const run = await startRun(engine.ctx, { tenant: 'local', team: 't', ...request, ...(budget && { budget }) })
    await engine.invoker.drain()
    return run
  }
  const stored = async (run: Parameters<typeof store.getRun>[0]) => (await store.getRun(run))!
  return { ...engine, said, tries, started, stored }
}
const tasks = (n: number) => ({ tasks: Array.from({ length: n }, (_, i) => ({ agent: 'worker', task: `task ${i}` })) })

describe('a run that has spent 80 per cent of its budget', () => {
  test.each<[Budget]>([[{ usd: '1' }], [{ tokens: 112_000 }], [{ usd: '1', tokens: 1_000_000 }]])(
    'of %j says so once, in a metric and on its own item',
    async (budget) => {
      const { started, stored, said, tries } = lab()
      const run = await started({ ...tasks(9), maxConcurrency: 2 }, budget)
      expect((await stored(run)).budgetWarned).toEqual({ at: expect.any(Number), budgetSeq: 0 })
      expect(said).toHaveLength(1)
      expect(said[0]).toMatchObject({ Team: 't', tenant: 'local', runId: run.runId, level: 'warn' })
      // nobody writes who could have known
      expect(tries).toEqual([true])
    },
  )

  test('says nothing below, and nothing without a limit', async () => {
    const { started, stored, said, tries } = lab()
    for (const run of [
      await started(tasks(7), { usd: '1' }),
      await started(tasks(9)),
      await started(tasks(1), { usd: '0' }),
    ])
      expect((await stored(run)).budgetWarned).toBeNull()
    expect([said, tries]).toEqual([[], []])
  })

  test('is warned of while it works, by its root alone', async () => {
    const { started, stored, ctx } = lab()
    const run = await started({ input: 'go', agent: 'root' }, { usd: '0.35' })
    // three calls are paid for, and the fourth is not: the run waits for more
    expect(await stored(run)).toMatchObject({ status: 'waiting', budgetWarned: { budgetSeq: 0 } })
    await changeBudget(ctx, run, { usd: '10' })
  })

  test('is warned of anew where it has another limit', async () => {
    const { started, stored, said, ctx, invoker } = lab()
    const run = await started({ input: 'go', agent: 'root' }, { usd: '0.35' })
    await changeBudget(ctx, run, { usd: '0.45' })
    await invoker.drain()
    expect(await stored(run)).toMatchObject({ status: 'completed', budgetWarned: { budgetSeq: 1 } })
    expect(said).toHaveLength(2)
  })

  test('is found by the sweep where nothing has settled yet', async () => {
    const { ctx, said, stored } = lab()
    const run = aRun({ limit: money(5) })
    const spent = { ...NO_TOTALS, calls: 1, cost: money(4).usd }
    await ctx.store.createRun(run)
    await ctx.store.putHeader(aRunningHeader({ next: 1, pending: new Set([0]), lease: Date.now() + 90_000 }))
    await ctx.store.putHeader(
      aChild(0, { ...RUNNING(), rows: [row(1, { totals: { ...spent, cost: spent.cost - 1n } })] }),
    )
    await sweepRun(ctx, run)
    expect(said).toEqual([])
    const ref = { ...run, sessionId: aChild(0).sessionId }
    await ctx.store.heartbeat(ref, 1, {
      lease: Date.now() + 90_000,
      rows: [row(1, { totals: spent })],
      now: Date.now(),
    })
    await sweepRun(ctx, run)
    await sweepRun(ctx, run)
    expect((await stored(run)).budgetWarned).toMatchObject({ budgetSeq: 0 })
    expect(said).toHaveLength(1)
  })
})

const RUNNING = () => ({ status: 'running' as const, attempt: 1, driver: 'd', lease: Date.now() + 90_000 })
