import { describe, expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const slow = [
  {
    text: 'twelve words that come slowly, one after the other, over a minute',
    delayMs: 60_000,
    chunks: 6,
    usage: { input: 100, output: 60 },
  },
]
const team = scriptedTeam('t', [
  {
    agent: agent('root', { subAgents: ['worker'], toolsets: ['background_agents'] }),
    steps: [
      { calls: [{ tool: 'run_background_agent', args: { agent: 'worker', task: 'x' }, repeat: 3 }] },
      { calls: [{ tool: 'wait_background_agents' }] },
      { text: 'done' },
    ],
  },
  { agent: agent('worker'), steps: slow },
])

async function started() {
  const clock = createVirtualClock()
  const engine = testEngine({ table: memoryTable(), teams: [team], clock })
  const run = await startRun(engine.ctx, { tenant: 'local', team: 't', input: 'go' })
  return { clock, engine, run }
}

describe('cancel', () => {
  test('before the root was delivered: no call is made', async () => {
    const { clock, engine, run } = await started()
    expect(await cancelRun(engine.ctx, run)).toMatchObject({ status: 'cancelled', stopReason: 'cancelled' })
    await clock.advance(120_000)
    expect(engine.scripted.bill).toHaveLength(0)
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })

  test('in the middle of streams: they are broken off, and what they had cost is booked', async () => {
    const { clock, engine, run } = await started()
    await clock.advance(30_000)
    await cancelRun(engine.ctx, run)
    const at = clock.now()
    await clock.advance(10_000)
    const stored = (await engine.ctx.store.getRun(run))!
    expect(stored).toMatchObject({ status: 'cancelled', stopReason: 'cancelled' })
    expect(stored.finishedAt! - at).toBeLessThan(10_000)
    const partial = stored.books.failed!
    expect(partial.calls).toBe(3)
    expect(partial.outputTokens).toBeGreaterThan(0)
    expect(partial.outputTokens).toBeLessThan(180)
    await expectBalanced(engine.ctx.store, run, engine.scripted)
    const { headers } = await engine.ctx.store.getRunWithSessions(run)
    expect(headers.every((h) => h.status === 'cancelled')).toBe(true)
  })

  test('right after a claim, before its call: no call is made', async () => {
    const { clock, engine, run } = await started()
    const store = engine.ctx.store as { -readonly [K in keyof typeof engine.ctx.store]: (typeof engine.ctx.store)[K] }
    const { claim } = store
    store.claim = async (...args) => {
      const claimed = await claim(...args)
      await cancelRun(engine.ctx, run)
      return claimed
    }
    await clock.advance(10_000)
    expect(engine.scripted.bill).toHaveLength(0)
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'cancelled', books: {} })
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })

  test('during the write that ends the root: one terminal state, the first', async () => {
    const { clock, engine, run } = await started()
    const store = engine.ctx.store as { -readonly [K in keyof typeof engine.ctx.store]: (typeof engine.ctx.store)[K] }
    const { finish } = store
    store.finish = async (ref, to) => {
      if (ref.sessionId === rootSessionId(run.runId)) await cancelRun(engine.ctx, run)
      return finish(ref, to)
    }
    await clock.advance(180_000)
    const { headers, run: stored } = await engine.ctx.store.getRunWithSessions(run)
    // the last answer was in the log before the stop: it stands, and the run says the same as its root
    expect(stored).toMatchObject({ status: 'completed', stopReason: 'end_turn' })
    expect(headers.every((h) => h.status === 'completed')).toBe(true)
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })

  test('after the end changes nothing', async () => {
    const { clock, engine, run } = await started()
    await clock.advance(120_000)
    expect(await cancelRun(engine.ctx, run)).toMatchObject({ status: 'completed', cancelRequestedAt: null, stop: null })
  })

  test('of a run that is not there, or another tenant’s, is refused', async () => {
    const { engine, run } = await started()
    await expect(cancelRun(engine.ctx, { ...run, tenant: 'other' })).rejects.toMatchObject({ code: 'unknown_run' })
  })

  test('a worker whose first claim comes after it makes no call', async () => {
    const { clock, engine, run } = await started()
    const rootRef = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
    // the run's stop is written, and its caller dies before it reaches the headers
    await engine.ctx.store.cancelRun(run, { now: clock.now() })
    await clock.advance(1_000)
    expect(engine.scripted.bill).toHaveLength(0)
    expect(await engine.ctx.store.getHeader(rootRef)).toMatchObject({ status: 'cancelled' })
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'cancelled' })
  })
})
