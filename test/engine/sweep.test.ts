/** Stuck states are written directly; then the sweep runs. */
import { beforeEach, describe, expect, test } from 'vitest'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { sweepRun } from '../../src/engine/sweep-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

const team = scriptedTeam('t', [
  {
    agent: agent('root', { subAgents: ['worker'] }),
    steps: [{ calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'x' }, repeat: 2 }] }, { text: 'done' }],
  },
  { agent: agent('worker'), steps: [{ text: 'ok', usage: { input: 100, output: 50 } }] },
])
const MINUTE = 60_000

describe('the sweep', () => {
  let clock: VirtualClock
  let engine: TestEngine
  beforeEach(() => {
    clock = createVirtualClock()
    engine = testEngine({ table: memoryTable(), teams: [team], clock })
  })
  const start = () => startRun(engine.ctx, { tenant: 'local', team: 't', input: 'go' })
  const deadline = () => ({ deadlineAt: clock.now() + MINUTE })
  const status = async (run: { tenant: string; runId: string }) => (await engine.ctx.store.getRun(run))!.status

  test('finds a lost event within three minutes, and leaves the run alone before that', async () => {
    engine.lose = () => true
    const run = await start()
    engine.lose = () => false
    await clock.advance(MINUTE)
    expect(await sweep(engine.ctx, deadline())).toMatchObject({ runs: 0 })
    await clock.advance(MINUTE + 1)
    expect(await sweep(engine.ctx, deadline())).toMatchObject({ runs: 1, invoked: 1 })
    await clock.advance(1_000)
    expect(await status(run)).toBe('completed')
  })

  test('makes the root of a run whose starter died right after the run was put', async () => {
    engine.lose = () => true
    const run = await start()
    const table = memoryTable()
    const half = testEngine({ table, teams: [team], clock })
    await half.ctx.store.putDefinition(run, run.definition, team)
    await half.ctx.store.putInput(run, 1, run.inputRef, { input: 'go' })
    await half.ctx.store.createRun(run)
    expect(await sweepRun(half.ctx, run)).toMatchObject({ invoked: 1 })
    await clock.advance(1_000)
    expect((await half.ctx.store.getRun(run))!.status).toBe('completed')
  })

  test('settles a child that ended and whose worker died before it reported', async () => {
    const run = await start()
    const rootId = rootSessionId(run.runId)
    const { settle } = engine.ctx.store
    const child = childSessionId(rootId, 1)
    const real = engine.ctx.store as { settle: typeof settle }
    real.settle = async (parent, s, now) => {
      if (s.ordinal === 1) throw new Error('killed before it settled')
      return settle(parent, s, now)
    }
    await clock.advance(1_000)
    expect(await status(run)).toBe('running')
    expect(await engine.ctx.store.getHeader({ ...run, sessionId: child })).toMatchObject({ status: 'completed' })
    real.settle = settle
    expect(await sweepRun(engine.ctx, run)).toMatchObject({ settled: 1 })
    await clock.advance(1_000)
    expect(await status(run)).toBe('completed')
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })

  test('wakes a parent whose last child settled and died before the wake', async () => {
    const run = await start()
    const rootId = rootSessionId(run.runId)
    engine.lose = (id) => id === rootId
    await clock.advance(1_000)
    expect(await engine.ctx.store.getHeader({ ...run, sessionId: rootId })).toMatchObject({ status: 'waiting' })
    engine.lose = () => false
    expect(await sweepRun(engine.ctx, run)).toMatchObject({ invoked: 1 })
    await clock.advance(1_000)
    expect(await status(run)).toBe('completed')
  })

  test('takes over a session whose driver died in the middle of a call, and books the lost call at its bound', async () => {
    const run = await start()
    const ref = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
    const now = clock.now()
    const hold = { usd: 1_000_000n, tok: 5_000n }
    const first = {
      hold,
      driver: 'a-driver-that-died',
      attempt: 1,
      agent: 'root',
      model: 'root',
      estimate: 4_000,
      cap: 1_000,
      at: now,
    }
    const claimed = await engine.ctx.store.claim(ref, {
      seenAttempt: 0,
      driver: first.driver,
      now,
      lease: now + 90_000,
      first,
    })
    expect(claimed.written).toBe(true)
    await clock.advance(MINUTE)
    expect(await sweepRun(engine.ctx, run)).toMatchObject({ invoked: 0 }) // its lease still runs
    await clock.advance(MINUTE)
    expect(await sweepRun(engine.ctx, run)).toMatchObject({ invoked: 1 })
    await clock.advance(1_000)
    const stored = (await engine.ctx.store.getRun(run))!
    expect(stored.status).toBe('completed')
    expect(stored.books.unknown).toMatchObject({ calls: 1, inputTokens: 4_000, outputTokens: 1_000, cost: 1_000_000n })
    expect(stored.dueAt).not.toBeNull() // it is looked at once more, when no late answer can come any longer
    await clock.advance(21 * MINUTE)
    await sweep(engine.ctx, deadline())
    expect((await engine.ctx.store.getRun(run))!.dueAt).toBeNull()
  })

  test('does not touch a run that has ended', async () => {
    const run = await start()
    await clock.advance(1_000)
    const events = engine.events.length
    await clock.advance(60 * MINUTE)
    expect(await sweep(engine.ctx, deadline())).toMatchObject({ runs: 0 })
    expect(await sweepRun(engine.ctx, run)).toMatchObject({ invoked: 0, settled: 0 })
    expect(engine.events).toHaveLength(events)
  })

  test('one run that cannot be looked at does not keep the others waiting', async () => {
    engine.lose = () => true
    const [broken, good] = [await start(), await start()]
    engine.lose = () => false
    const { listHeaders } = engine.ctx.store
    ;(engine.ctx.store as { listHeaders: typeof listHeaders }).listHeaders = async (ref, options) => {
      if (ref.runId === broken.runId) throw new Error('damaged')
      return listHeaders(ref, options)
    }
    await clock.advance(2 * MINUTE + 1)
    expect(await sweep(engine.ctx, deadline())).toMatchObject({ runs: 2, failed: 1, invoked: 1 })
    await clock.advance(1_000)
    expect(await status(good)).toBe('completed')
  })
})
