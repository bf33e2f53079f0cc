/** Ways in which it was broken once: late cancels, lost answers of waits, failing looks, faults after the run is a fact. */
import { describe, expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import { addInput } from '../../src/engine/add-input.ts'
import { cancelRun, stopAll } from '../../src/engine/cancel-run.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import type { Store } from '../../src/ports.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

const MINUTE = 60_000

function solo(steps: readonly object[], of: object = {}) {
  const clock = createVirtualClock()
  const team = scriptedTeam('solo', [{ agent: agent('root', of), steps }])
  return { clock, engine: testEngine({ table: memoryTable(), teams: [team], clock }) }
}

/** The store as a test may change it. */
const open = (engine: TestEngine) => engine.ctx.store as { -readonly [K in keyof Store]: Store[K] }

async function pass(clock: VirtualClock, engine: TestEngine, minutes: number): Promise<void> {
  for (let i = 0; i < minutes; i++) {
    await clock.advance(MINUTE)
    await sweep(engine.ctx, { deadlineAt: clock.now() + MINUTE })
  }
}

test('workers that only wait out a shared pause do not run out of attempts', async () => {
  const clock = createVirtualClock()
  // the provider lets one call through a minute: everybody else is asked to wait again and again
  let free = clock.now()
  const team = scriptedTeam('slow', [
    { agent: agent('worker'), steps: [{ text: 'ok', usage: { input: 10, output: 5 } }] },
  ])
  const engine = testEngine({ table: memoryTable(), teams: [team], clock })
  const { model } = engine.ctx
  ;(engine.ctx as { model: typeof model }).model = {
    async call(request) {
      if (clock.now() >= free) {
        free = clock.now() + MINUTE
        return model.call(request)
      }
      const usage = {
        inputTokens: 0,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        cacheWrite1hTokens: 0,
        outputTokens: 0,
        reasoningTokens: 0,
      }
      const failure = { class: 'rate_limit', message: 'slow down', retryAfterMs: free - clock.now() } as const
      return { finishReason: 'error', usage, usageSource: 'reported', failure }
    },
  }
  const tasks = Array.from({ length: 14 }, (_, i) => ({ agent: 'worker', task: `${i}` }))
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'slow', tasks })
  await pass(clock, engine, 60)
  const { headers } = await engine.ctx.store.getRunWithSessions(run)
  expect(headers.filter((h) => h.stopReason === 'max_attempts')).toEqual([])
  expect((await engine.ctx.store.getRun(run))!.status).toBe('completed')
})

test('a cancel that is slow does not reach into the next round', async () => {
  const { clock, engine } = solo([{ text: 'ok', usage: { input: 10, output: 5 } }])
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'one' })
  const stopped = await engine.ctx.store.cancelRun(run, { now: clock.now() })
  if (!stopped.written) throw new Error('the run has ended already')
  await clock.advance(1_000) // round 1 ends, and its canceller has not got any further
  const ended = (await engine.ctx.store.getRun(run))!
  await addInput(engine.ctx, ended, 'two')
  await stopAll(engine.ctx, stopped.item)
  await clock.advance(1_000)
  expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2, stop: null })
})

test('a root that was cancelled before it began takes both inputs into its next round', async () => {
  const { clock, engine } = solo([{ text: 'heard {input}' }])
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'one' })
  await cancelRun(engine.ctx, run)
  await addInput(engine.ctx, (await engine.ctx.store.getRun(run))!, 'two')
  await clock.advance(1_000)
  expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2 })
  const log = await engine.ctx.store.readLog({ ...run, sessionId: rootSessionId(run.runId) })
  expect(log.requests.get(0)!.messages.map((m) => m.content)).toEqual(['one', 'two'])
})

test('a start whose root cannot be invoked is a start all the same: the sweep goes on with it', async () => {
  const { clock, engine } = solo([{ text: 'ok' }])
  const broken = { ...engine.ctx, invoker: { invoke: async () => Promise.reject(new Error('throttled')) } }
  const run = await startRun(broken, { tenant: 'local', team: 'solo', input: 'one' })
  await pass(clock, engine, 4)
  expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed' })
  const again = await addInput(broken, run, 'two')
  expect(again).toMatchObject({ status: 'running', round: 2 })
  await pass(clock, engine, 4)
  expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2 })
})

test('the lost answer of a wait does not keep a driver awake', async () => {
  const error = { class: 'rate_limit', message: 'slow down', retryAfterMs: 120_000, times: 1 }
  const { clock, engine } = solo([{ error, text: 'ok' }])
  const store = open(engine)
  const { suspend, getCoolDown } = store
  let looks = 0
  store.suspend = async (...args) => {
    await suspend(...args) // written, and its answer lost: the repeated request is refused
    return suspend(...args)
  }
  store.getCoolDown = async (...args) => {
    looks++
    return getCoolDown(...args)
  }
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'one' })
  await pass(clock, engine, 6)
  expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed' })
  expect(looks).toBeLessThan(15)
})

describe('a look at a running call that fails', () => {
  test('is made again: the stop is still seen', async () => {
    const { clock, engine } = solo([
      { text: 'a long story', delayMs: 10 * MINUTE, chunks: 60, usage: { input: 100, output: 600 } },
    ])
    const store = open(engine)
    const { heartbeat } = store
    let failed = 0
    store.heartbeat = async (...args) => {
      if (failed++ === 0) throw new Error('throttled')
      return heartbeat(...args)
    }
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'one' })
    await clock.advance(2 * MINUTE)
    expect(failed).toBeGreaterThan(1)
    await cancelRun(engine.ctx, run)
    await clock.advance(10_000)
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'cancelled' })
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })

  test('and one that hangs does not keep an answer from being booked', async () => {
    const { clock, engine } = solo([{ text: 'ok', delayMs: MINUTE, usage: { input: 100, output: 60 } }])
    const store = open(engine)
    const { getHeader } = store
    store.getHeader = async (ref, options) =>
      options?.consistent === false ? new Promise<never>(() => {}) : getHeader(ref, options)
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'one' })
    await clock.advance(MINUTE + 1_000)
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed' })
  })
})

test('a passing fault of the put does not cost an answer that is paid for', async () => {
  const { clock, engine } = solo([{ text: 'ok', usage: { input: 100, output: 60 } }])
  const store = open(engine)
  const { putResponse } = store
  let faults = 1
  store.putResponse = async (...args) => {
    if (faults-- > 0) throw new Error('ProvisionedThroughputExceededException')
    return putResponse(...args)
  }
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'one' })
  await clock.advance(5_000)
  expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', books: { accepted: { calls: 1 } } })
  expect(engine.scripted.bill).toHaveLength(1)
})
