/** Runs that wait for money, and those that have ended without anybody who tidies up behind them. */
import { afterEach, expect, test } from 'vitest'
import { type Amount, parseUsd, UNLIMITED } from '../../src/domain/money.ts'
import { periodOf } from '../../src/domain/outer-limit.ts'
import type { Run, RunRef } from '../../src/domain/run.ts'
import type { ModelDefinition } from '../../src/domain/team.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { changeBudget } from '../../src/engine/change-budget.ts'
import { deleteRun } from '../../src/engine/delete-run.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import type { OuterLimits } from '../../src/ports.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { limitsOf } from '../../src/team/folder-limits.ts'
import type { LimitRule } from '../../src/team/read-limits.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const DAY = 24 * 3_600_000
/** One call holds USD 0.30. */
const model: Partial<ModelDefinition> = {
  cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
  maxTokens: 30_000,
  minTokens: 30_000,
}
const usd = (text: string): Amount => ({ usd: parseUsd(text), tok: UNLIMITED })
const solo = scriptedTeam('solo', [
  { agent: agent('root'), steps: [{ text: 'done', usage: { input: 100, output: 10_000 } }], model },
])
/** A call that costs USD 0.10, a worker's that costs 0.30, and another call. */
const duo = scriptedTeam('duo', [
  {
    agent: agent('root', { subAgents: ['worker'] }),
    steps: [
      {
        calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'x' } }],
        usage: { input: 10, output: 10_000 },
      },
      { text: 'thanks', usage: { input: 10, output: 10_000 } },
    ],
    model,
  },
  { agent: agent('worker'), steps: [{ text: 'worked', usage: { input: 10, output: 30_000 } }], model },
])
const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

function world(options: { limit?: Amount; retentionMs?: number; teams?: readonly (typeof solo)[] } = {}) {
  const clock = createVirtualClock(Date.UTC(2026, 10, 30, 12))
  const rules: LimitRule[] = options.limit
    ? [{ tenant: null, of: { kind: 'tenant' }, per: 'month', limit: options.limit }]
    : []
  const outerLimits: OuterLimits = { of: async (run) => limitsOf(rules, run), requiredTags: async () => [] }
  const table = memoryTable()
  const engine = testEngine({
    table,
    teams: options.teams ?? [solo],
    clock,
    ...(options.limit && { outerLimits }),
    ...(options.retentionMs !== undefined && { retentionMs: options.retentionMs }),
  })
  open.push(() => engine.invoker.close())
  const look = () => sweep(engine.ctx, { deadlineAt: clock.now() + 60_000 })
  return {
    ...engine,
    table,
    clock,
    look,
    read: async (ref: RunRef): Promise<Run> => (await engine.ctx.store.getRun(ref, { consistent: true, gone: true }))!,
    limit: () => engine.ctx.store.getLimit({ tenant: 'local', name: 'tenant', period: periodOf('month', clock.now()) }),
    async minutes(n: number) {
      for (let i = 0; i < n; i++) {
        await clock.advance(60_000)
        await look()
        await clock.advance(100)
      }
    },
  }
}

test('a run that was given more while it ended, and whose driver died before it had given back, goes on soon', async () => {
  const w = world({ limit: usd('100'), teams: [duo] })
  const { store } = w.ctx
  const { moveGrants, finishRun } = store
  let dead = false
  const raise = { done: false }
  Object.assign(store, {
    // the raise comes before the run ends, and after its last call was refused
    finishRun: async (...args: Parameters<typeof finishRun>) => {
      if (!raise.done) {
        raise.done = true
        await changeBudget(w.ctx, run, { usd: '5' })
      }
      const done = await finishRun(...args)
      if (done.written) dead = true // and the driver dies behind W17
      return done
    },
    moveGrants: async (...args: Parameters<typeof moveGrants>) => {
      if (dead) throw new Error('killed')
      return moveGrants(...args)
    },
  })
  const run = await startRun(w.ctx, { tenant: 'local', team: 'duo', input: 'go', budget: { usd: '0.6' } })
  await w.clock.advance(1_000)
  expect(await w.read(run)).toMatchObject({ status: 'waiting', raisedRound: 1, round: 1 })
  dead = false
  Object.assign(store, { finishRun, moveGrants })
  await w.minutes(10)
  expect(await w.read(run)).toMatchObject({ status: 'completed', round: 2 })
})

test('a run that is deleted before it has given back holds nothing of a limit for the rest of the month', async () => {
  const w = world({ limit: usd('100') })
  const { store } = w.ctx
  const { settleHold } = store
  Object.assign(store, {
    settleHold: async () => {
      throw new Error('killed')
    },
  })
  const run = await startRun(w.ctx, { tenant: 'local', team: 'solo', input: 'go' })
  await w.clock.advance(1_000)
  expect(await w.read(run)).toMatchObject({ status: 'completed' })
  expect((await w.read(run)).grants).toHaveLength(1)
  await deleteRun(w.ctx, run)
  Object.assign(store, { settleHold })
  await w.minutes(30)
  expect(await w.read(run)).toBeUndefined()
  expect((await w.limit())!.held).toEqual({})
})

test.each(['fails', 'is cancelled'])('a run that waited for its budget and %s is not kept for ever', async (how) => {
  const w = world({ retentionMs: 30 * DAY })
  const run = await startRun(w.ctx, { tenant: 'local', team: 'solo', input: 'go', budget: { usd: '0.2' } })
  await w.clock.advance(1_000)
  expect(await w.read(run)).toMatchObject({ status: 'waiting' })
  if (how === 'fails') {
    await w.clock.advance(7 * DAY)
    await w.minutes(2)
  } else await cancelRun(w.ctx, run)
  expect(['failed', 'cancelled']).toContain((await w.read(run)).status)
  for (let day = 0; day < 45; day++) {
    await w.clock.advance(DAY)
    await w.look()
  }
  expect(await w.read(run)).toBeUndefined()
})
