import { describe, expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import { MAX_FAILED_CALLS } from '../../src/domain/limits.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

/** Runs one agent with a script, in virtual time. */
async function runAgent(steps: readonly object[], of: object = {}) {
  const clock = createVirtualClock()
  const engine = testEngine({
    table: memoryTable(),
    teams: [scriptedTeam('solo', [{ agent: agent('root', of), steps }])],
    clock,
  })
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'go' })
  for (let i = 0; i < 200 && (await engine.ctx.store.getRun(run))!.status === 'running'; i++) {
    await clock.advance(5_000)
    await sweep(engine.ctx, { deadlineAt: clock.now() + 60_000 })
  }
  await expectBalanced(engine.ctx.store, run, engine.scripted)
  const log = await engine.ctx.store.readLog({ ...run, sessionId: rootSessionId(run.runId) })
  return { engine, run: (await engine.ctx.store.getRun(run))!, calls: [...log.responses.values()] }
}

describe('a failing model', () => {
  test('is tried again, and each attempt is a call in the books with what it had spent', async () => {
    const error = { class: 'overloaded', message: 'busy', times: 2, usage: { input: 40, output: 3 } }
    const { run, calls } = await runAgent([{ error, text: 'at last', usage: { input: 40, output: 9 } }])
    expect(run.status).toBe('completed')
    expect(calls.map((c) => [c.outcome, c.usage.outputTokens])).toEqual([
      ['failed', 3],
      ['failed', 3],
      ['accepted', 9],
    ])
    expect(run.books.failed).toMatchObject({ calls: 2, inputTokens: 80, outputTokens: 6 })
  })

  test('that asks for a pause gets it', async () => {
    const error = { class: 'rate_limit', message: 'slow down', retryAfterMs: 30_000, times: 1 }
    const { calls } = await runAgent([{ error, text: 'ok' }])
    expect(calls[1]!.startedAt - (calls[0]!.startedAt + calls[0]!.durationMs)).toBeGreaterThanOrEqual(30_000)
  })

  test('that asks for a long pause gets it without an invocation that waits', async () => {
    const error = { class: 'rate_limit', message: 'slow down', retryAfterMs: 600_000, times: 1 }
    const { calls, engine } = await runAgent([{ error, text: 'ok' }])
    expect(calls.at(-1)!.startedAt - calls[0]!.startedAt).toBeGreaterThanOrEqual(600_000)
    expect(calls.at(-1)!.attempt).toBeGreaterThan(1)
    expect(engine.invoker.counts().delivered).toBe(2)
  })

  test('that asks one worker for a pause is left alone by the others too', async () => {
    const clock = createVirtualClock()
    const worker = { error: { class: 'rate_limit', message: 'slow down', retryAfterMs: 15_000, times: 1 } }
    const steps = [
      { when: { task: 'first' }, ...worker, text: 'ok' },
      { when: { task: 'second' }, calls: [{ tool: 'think', args: { thought: 'x' } }], delayMs: 1_000 },
      { text: 'ok' },
    ]
    const team = scriptedTeam('t', [{ agent: agent('worker', { toolsets: ['think'] }), steps }])
    const engine = testEngine({ table: memoryTable(), teams: [team], clock })
    const tasks = ['first', 'second'].map((task) => ({ agent: 'worker', task }))
    const run = await startRun(engine.ctx, { tenant: 'local', team: 't', tasks })
    await clock.advance(60_000)
    expect((await engine.ctx.store.getRun(run))!.status).toBe('completed')
    const calls = (await engine.ctx.store.listCalls(run, { limit: 10 })).items
    const refused = calls.find((c) => c.outcome === 'failed')!
    const other = calls.filter((c) => c.sessionId !== refused.sessionId)
    expect(other).toHaveLength(2)
    expect(other[1]!.startedAt - refused.startedAt).toBeGreaterThanOrEqual(15_000)
  })

  test(`fails its session after ${MAX_FAILED_CALLS} calls in a row without an answer`, async () => {
    const { run, calls } = await runAgent([{ error: { class: 'server', message: 'boom' } }])
    expect(run).toMatchObject({ status: 'failed', stopReason: 'error', error: { code: 'server', message: 'boom' } })
    expect(calls).toHaveLength(MAX_FAILED_CALLS)
  })

  test('with an error that would come again is not tried twice', async () => {
    const { run, calls } = await runAgent([{ error: { class: 'auth', message: 'no such key' } }])
    expect(run).toMatchObject({ status: 'failed', error: { code: 'auth' } })
    expect(calls).toHaveLength(1)
  })

  test('refused before any work cost nothing, and that is known', async () => {
    const { run } = await runAgent([{ error: { class: 'auth', message: 'no such key' } }])
    expect(run.books.failed).toMatchObject({ calls: 1, cost: 0n, unpricedCalls: 0 })
  })
})

describe('an answer', () => {
  test('cut off by the output cap completes with that reason', async () => {
    const { run } = await runAgent([{ text: 'and then', finish: 'length' }])
    expect(run).toMatchObject({ status: 'completed', stopReason: 'max_tokens' })
  })

  test.each(['content_filter', 'refusal'] as const)('held back (%s) fails with that reason', async (finish) => {
    const { run } = await runAgent([{ text: '', finish }])
    expect(run).toMatchObject({ status: 'failed', stopReason: finish, error: { code: finish } })
  })

  test('beyond max_iterations is not asked for', async () => {
    const { run, calls } = await runAgent([{ calls: [{ tool: 'think', args: { thought: 'hm' } }] }], {
      toolsets: ['think'],
      maxIterations: 10,
    })
    expect(run).toMatchObject({ status: 'failed', stopReason: 'max_iterations' })
    expect(calls).toHaveLength(10)
  })
})

describe('a model without a price', () => {
  test('has calls without a cost, which are counted', async () => {
    const team = scriptedTeam('solo', [
      { agent: agent('root'), steps: [{ text: 'x', usage: { input: 821_275, cacheRead: 813_056, output: 177 } }] },
    ])
    const { cost: _, ...unpriced } = team.models.root!
    const engine = testEngine({ table: memoryTable(), teams: [{ ...team, models: { root: unpriced } }] })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'go' })
    await engine.invoker.drain()
    expect((await engine.ctx.store.getRun(run))!.books.accepted).toMatchObject({ calls: 1, cost: 0n, unpricedCalls: 1 })
    expect((await engine.ctx.store.listCalls(run, { limit: 1 })).items[0]).toMatchObject({ cost: null, price: null })
  })
})
