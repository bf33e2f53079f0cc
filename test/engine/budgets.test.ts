import { describe, expect, test } from 'vitest'
import { formatUsd } from '../../src/domain/money.ts'
import type { ModelDefinition } from '../../src/domain/team.ts'
import { type StartRun, startRun } from '../../src/engine/start-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { meteredTable } from '../../src/store/metered-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { available } from '../support/money.ts'

/** A call may cost 30,000 output tokens at USD 10 a million: exactly USD 0.30. The input is free, so that its bound costs nothing. */
const CAP = 30_000
const model = (of: Partial<ModelDefinition> = {}): Partial<ModelDefinition> => ({
  cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
  maxTokens: CAP,
  minTokens: CAP,
  ...of,
})
const worker = (output: number, of: Partial<ModelDefinition> = {}) => ({
  agent: agent('worker'),
  steps: [{ text: 'done: {task}', usage: { input: 100, output } }],
  model: model(of),
})
const tasks = (n: number) => Array.from({ length: n }, (_, i) => ({ agent: 'worker', task: `task ${i}` }))

async function run(member: ReturnType<typeof worker>, request: Partial<StartRun>) {
  const table = meteredTable(memoryTable())
  const engine = testEngine({ table, teams: [scriptedTeam('t', [member])] })
  const started = await startRun(engine.ctx, { tenant: 'local', team: 't', ...request })
  await engine.invoker.drain()
  await expectBalanced(engine.ctx.store, started, engine.scripted)
  expect(engine.complaints).toEqual([])
  const { run, headers } = await engine.ctx.store.getRunWithSessions(started)
  const workers = headers.filter((h) => h.kind === 'task')
  const count = (status: string, reason: string) =>
    workers.filter((h) => h.status === status && h.stopReason === reason).length
  return {
    ...engine,
    table,
    run: run!,
    headers,
    completed: count('completed', 'end_turn'),
    refused: count('failed', 'budget'),
    left: formatUsd(available(run!, headers)),
  }
}

describe('F1: a budget of $1.00 and workers whose only call may cost $0.30', () => {
  test.each([10, 100])('of %i that cost all of it, exactly 3 complete', async (n) => {
    const { completed, refused, left, scripted } = await run(worker(CAP), { tasks: tasks(n), budget: { usd: '1.00' } })
    expect({ completed, refused, left }).toEqual({ completed: 3, refused: n - 3, left: '0.1' })
    expect(scripted.bill).toHaveLength(3)
  })

  test.each([10, 100])('of %i that cost $0.10, exactly 8 complete where the cap may not shrink', async (n) => {
    const { completed, refused, left } = await run(worker(CAP / 3), { tasks: tasks(n), budget: { usd: '1.00' } })
    expect({ completed, refused, left }).toEqual({ completed: 8, refused: n - 8, left: '0.2' })
  })

  test.each([10, 100])('of %i that cost $0.10, exactly 10 complete where it may shrink to a third', async (n) => {
    const member = worker(CAP / 3, { minTokens: CAP / 3 })
    const { completed, refused, left } = await run(member, { tasks: tasks(n), budget: { usd: '1.00' } })
    expect({ completed, refused, left }).toEqual({ completed: 10, refused: n - 10, left: '0' })
  })
})

test('F3: $0.90 left, 4 children, each call at most $0.30, actual $0.10: all 4 complete', async () => {
  const { completed, left } = await run(worker(CAP / 3), { tasks: tasks(4), budget: { usd: '0.90' } })
  expect({ completed, left }).toEqual({ completed: 4, left: '0.5' })
})

test('while the hold suffices a worker costs as many write units as without a budget', async () => {
  const steps = [
    { calls: [{ tool: 'think', args: { thought: 'a' } }], usage: { input: 100, output: 10 } },
    { calls: [{ tool: 'think', args: { thought: 'b' } }], usage: { input: 100, output: 10 } },
    { text: 'done', usage: { input: 100, output: 10 } },
  ]
  const thinking = { ...worker(10), agent: agent('worker', { toolsets: ['think'] }), steps }
  const cost = async (n: number, request: Partial<StartRun>) =>
    (await run(thinking as unknown as ReturnType<typeof worker>, { tasks: tasks(n), ...request })).table.snapshot()
      .writeUnits
  const each = async (request: Partial<StartRun>) => ((await cost(40, request)) - (await cost(20, request))) / 20
  expect([await each({}), await each({ budget: { usd: '100' } })]).toEqual([7, 7])
})
