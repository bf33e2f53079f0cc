/** Case C1: a session longer than one invocation goes on in another, many times, also when an event of the chain is lost. */
import { describe, expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import { MAX_CONTINUATIONS } from '../../src/domain/limits.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { sweepRun } from '../../src/engine/sweep-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const TIMEOUT_MS = 60_000
/** two calls fit one invocation, three do not */
const CALL_MS = 25_000

async function longRun(turns: number, tamper: (engine: TestEngine) => void = () => {}) {
  const clock = createVirtualClock()
  const steps = [
    ...Array.from({ length: turns }, () => ({ calls: [{ tool: 'think', args: { thought: 'on' } }], delayMs: CALL_MS })),
    { text: 'at last', delayMs: CALL_MS },
  ]
  const team = scriptedTeam('long', [{ agent: agent('root', { toolsets: ['think'], maxIterations: 1_000 }), steps }])
  const engine = testEngine({ table: memoryTable(), teams: [team], clock, timeoutMs: TIMEOUT_MS })
  tamper(engine)
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'long', input: 'go' })
  const deadline = () => ({ deadlineAt: clock.now() + TIMEOUT_MS })
  for (let i = 0; i < 2_000 && (await engine.ctx.store.getRun(run))!.status === 'running'; i++) {
    await clock.advance(60_000)
    await sweep(engine.ctx, deadline())
  }
  await expectBalanced(engine.ctx.store, run, engine.scripted)
  const root = (await engine.ctx.store.getHeader({ ...run, sessionId: rootSessionId(run.runId) }))!
  return { engine, root, run: (await engine.ctx.store.getRun(run))!, clock }
}

describe('a session that needs 20 continuations', () => {
  test('completes, every call accepted', async () => {
    const { run, root, engine } = await longRun(40)
    expect(run).toMatchObject({ status: 'completed', books: { accepted: { calls: 41 } } })
    expect(root.continuations).toBeGreaterThanOrEqual(20)
    expect(Object.keys(run.books)).toEqual(['accepted'])
    expect(engine.complaints).toEqual([])
  })

  test('completes when hop 17 is dropped in silence', async () => {
    const { run, root } = await longRun(40, (engine) => {
      engine.lose = () => engine.events.length === 17
    })
    expect(run.status).toBe('completed')
    expect(root.continuations).toBeGreaterThanOrEqual(20)
  })

  test('completes when hop 17 becomes a dead letter', async () => {
    const { run, root } = await longRun(40, (engine) => {
      engine.lose = () => {
        if (engine.events.length !== 17) return false
        // the destination's queue gets it, and its handler looks at the run
        void sweepRun(engine.ctx, engine.events[16]!)
        return true
      }
    })
    expect(run.status).toBe('completed')
    expect(root.continuations).toBeGreaterThanOrEqual(20)
  })
})

test('a session over its bound of continuations fails with that reason, and its usage is kept', async () => {
  const { run, root } = await longRun(2 * MAX_CONTINUATIONS + 50)
  expect(run).toMatchObject({ status: 'failed', stopReason: 'max_continuations', error: { code: 'max_continuations' } })
  expect(root.continuations).toBe(MAX_CONTINUATIONS) // kept in the item, not in the event
  expect(run.books.accepted!.calls).toBeGreaterThan(MAX_CONTINUATIONS)
})
