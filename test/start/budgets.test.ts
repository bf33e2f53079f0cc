/**
 * The same figures as in test/engine/budgets.test.ts on a server of its own, with as many workers at once as a run may have.
 * `npm run test:budgets` takes 500 workers as well, which takes minutes.
 */
import { describe, expect, test } from 'vitest'
import { formatUsd } from '../../src/domain/money.ts'
import type { ModelDefinition } from '../../src/domain/team.ts'
import { type StartRun, startRun } from '../../src/engine/start-run.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { available } from '../support/money.ts'
import { dynaliteTable } from '../support/tables.ts'

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
  steps: [{ text: 'done: {task}', usage: { input: 100, output }, delayMs: 20 }],
  model: model(of),
})
const SIZES = process.env.SUBLEDGER_TEST_WORKERS?.split(',').map(Number) ?? [10, 100]
const tasks = (n: number) => Array.from({ length: n }, (_, i) => ({ agent: 'worker', task: `task ${i}` }))

async function run(member: ReturnType<typeof worker>, request: Partial<StartRun>) {
  const opened = await dynaliteTable()
  const engine = testEngine({ table: opened.table, teams: [scriptedTeam('t', [member])] })
  const started = await startRun(engine.ctx, { tenant: 'local', team: 't', ...request })
  await engine.invoker.drain()
  await expectBalanced(engine.ctx.store, started, engine.scripted)
  expect(engine.complaints).toEqual([])
  const { run, headers } = await engine.ctx.store.getRunWithSessions(started)
  await opened.close()
  const workers = headers.filter((h) => h.kind === 'task')
  const count = (status: string, reason: string) =>
    workers.filter((h) => h.status === status && h.stopReason === reason).length
  return {
    ...engine,
    run: run!,
    headers,
    completed: count('completed', 'end_turn'),
    refused: count('failed', 'budget'),
    left: formatUsd(available(run!, headers)),
  }
}

describe('on the embedded emulator: a budget of $1.00 and workers whose only call may cost $0.30', () => {
  test.each(SIZES)(
    'of %i that cost all of it, exactly 3 complete',
    async (n) => {
      const { completed, refused, left, scripted } = await run(worker(CAP), {
        tasks: tasks(n),
        budget: { usd: '1.00' },
      })
      expect({ completed, refused, left }).toEqual({ completed: 3, refused: n - 3, left: '0.1' })
      expect(scripted.bill).toHaveLength(3)
    },
    600_000,
  )

  test.each(SIZES)(
    'of %i that cost $0.10, exactly 8 complete where the cap may not shrink',
    async (n) => {
      const { completed, refused, left } = await run(worker(CAP / 3), { tasks: tasks(n), budget: { usd: '1.00' } })
      expect({ completed, refused, left }).toEqual({ completed: 8, refused: n - 8, left: '0.2' })
    },
    600_000,
  )

  test.each(SIZES)(
    'of %i that cost $0.10, exactly 10 complete where it may shrink to a third',
    async (n) => {
      const member = worker(CAP / 3, { minTokens: CAP / 3 })
      const { completed, refused, left } = await run(member, { tasks: tasks(n), budget: { usd: '1.00' } })
      expect({ completed, refused, left }).toEqual({ completed: 10, refused: n - 10, left: '0' })
    },
    600_000,
  )
})
