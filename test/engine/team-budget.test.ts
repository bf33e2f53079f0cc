import { describe, expect, test } from 'vitest'
import type { BudgetDefinition, ModelDefinition, TeamDefinition } from '../../src/domain/team.ts'
import type { Budget } from '../../src/engine/limit.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'

/** One call holds USD 0.30 and costs as much. */
const model: Partial<ModelDefinition> = {
  cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
  maxTokens: 30_000,
  minTokens: 30_000,
}
const steps = [{ text: 'done', usage: { input: 0, output: 30_000 } }]

function lab(budget: BudgetDefinition, of: Partial<ModelDefinition> = {}) {
  const plain = scriptedTeam('t', [{ agent: agent('worker'), steps, model: { ...model, ...of } }])
  const engine = testEngine({ table: memoryTable(), teams: [{ ...plain, budget }] })
  const start = (n: number, asked?: Budget) =>
    startRun(engine.ctx, {
      tenant: 'local',
      team: 't',
      tasks: Array.from({ length: n }, (_, i) => ({ agent: 'worker', task: `task ${i}` })),
      ...(asked && { budget: asked }),
    })
  return { ...engine, start }
}

describe("a team's own ceiling", () => {
  test('is the limit of a run that asks for none', async () => {
    const { ctx, start, invoker, scripted } = lab({ usd: '1' })
    const run = await start(10)
    expect(run.limit).toEqual({ usd: 1_000_000_000_000n, tok: 10n ** 24n })
    await invoker.drain()
    const { headers } = await ctx.store.getRunWithSessions(run)
    expect(headers.filter((h) => h.kind === 'task' && h.status === 'completed')).toHaveLength(3)
    expect(headers.filter((h) => h.kind === 'task' && h.stopReason === 'budget')).toHaveLength(7)
    await expectBalanced(ctx.store, run, scripted)
  })

  test('and a request: the lower one of each kind holds', async () => {
    const { start } = lab({ usd: '1', tokens: 500 })
    const limitOf = async (asked: Budget) => (await start(1, asked)).limit
    expect(await limitOf({ usd: '0.4' })).toEqual({ usd: 400_000_000_000n, tok: 500n })
    expect(await limitOf({ usd: '2', tokens: 400 })).toEqual({ usd: 1_000_000_000_000n, tok: 400n })
  })

  test('in money refuses a model without a price, and says which and by what', async () => {
    const plain = scriptedTeam('t', [{ agent: agent('worker'), steps }])
    const { cost: _, ...unpriced } = plain.models.worker!
    const teams: TeamDefinition[] = [
      { ...plain, models: { worker: unpriced }, budget: { usd: '1' } },
      {
        ...plain,
        name: 'u',
        models: { worker: unpriced },
        agents: [agent('worker', { budgets: ['slow', 'money'] })],
        budgets: { slow: { timeMs: 1 }, money: { usd: '1' } },
      },
      { ...plain, name: 'v', models: { worker: unpriced }, budget: { tokens: 100_000 }, budgets: { m: { usd: '1' } } },
    ]
    const { ctx } = testEngine({ table: memoryTable(), teams })
    const start = (team: string) => startRun(ctx, { tenant: 'local', team, input: 'go' })
    await expect(start('t')).rejects.toThrow(/the agent "worker" under the team's "budget.max_cost" uses "worker"/)
    await expect(start('u')).rejects.toThrow(/the agent "worker" under "budgets.money.max_cost" uses "worker"/)
    // nobody draws from it
    expect((await start('v')).limit.tok).toBe(100_000n)
  })
})
