/** A decision that is sent again and again keeps nobody from the rest of its run. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { approvalIdOf } from '../../src/domain/approval.ts'
import { rootSessionId } from '../../src/domain/ids.ts'
import type { Run } from '../../src/domain/run.ts'
import { decideApproval } from '../../src/engine/approve.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { systemClock } from '../../src/system.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'

// the root asks twice at once: one stays open; after the first decision nothing wakes
const crew = {
  ...scriptedTeam('crew', [
    {
      agent: agent('root', { subAgents: ['worker'], toolsets: ['background_agents'] }),
      steps: [
        {
          calls: [
            { tool: 'transfer_task', args: { agent: 'worker', task: 'first' } },
            { tool: 'transfer_task', args: { agent: 'worker', task: 'second' } },
          ],
        },
        { text: '{results}' },
      ],
    },
    { agent: agent('worker'), steps: [{ text: 'done: {task}' }] },
  ]),
  permissions: { ask: ['transfer_task'] },
}
let engine: TestEngine
let ahead = 0
const clock = { now: () => systemClock.now() + ahead, sleep: systemClock.sleep }
const stored = async (run: Run) => (await engine.ctx.store.getRun(run, { consistent: true }))!
const look = async () => {
  const r = await sweep(engine.ctx, { deadlineAt: clock.now() + 60_000 })
  await engine.invoker.drain()
  return r
}
let run: Run
beforeEach(async () => {
  ahead = 0
  engine = testEngine({ table: memoryTable(), teams: [crew], clock })
  run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', input: 'go', budget: { usd: '1' } })
  await engine.invoker.drain()
})
afterEach(() => engine.invoker.close())

test('a decision does not put off a run that is due', async () => {
  ahead += 180_000
  const id = approvalIdOf({ sessionId: rootSessionId(run.runId), n: 0, index: 0 })
  const before = (await stored(run)).dueAt!
  expect(before).toBeLessThan(clock.now())
  await decideApproval(engine.ctx, run, id, { decision: 'approve', by: 'somebody' })
  expect((await stored(run)).dueAt!).toBeLessThanOrEqual(Math.max(before, clock.now()))
})
test('a client that repeats a decision every 20 s does not keep the sweep from the run for ever', async () => {
  const id = approvalIdOf({ sessionId: rootSessionId(run.runId), n: 0, index: 0 })
  let looked = 0
  for (let i = 0; i < 60; i++) {
    ahead += 20_000
    await decideApproval(engine.ctx, run, id, { decision: 'approve', by: 'somebody' })
    if (i % 3 === 2) looked += (await look()).runs
  }
  expect(looked).toBeGreaterThan(0)
})

test('a cancelled run whose events are lost ends within minutes, though a client repeats its decision', async () => {
  const id = approvalIdOf({ sessionId: rootSessionId(run.runId), n: 0, index: 0 })
  await decideApproval(engine.ctx, run, id, { decision: 'approve', by: 'bot' })
  engine.lose = () => true
  await cancelRun(engine.ctx, run)
  engine.lose = () => false
  for (let i = 0; i < 90; i++) {
    // half an hour
    ahead += 20_000
    await decideApproval(engine.ctx, run, id, { decision: 'approve', by: 'bot' }).catch(() => {})
    if (i % 3 === 2) {
      await sweep(engine.ctx, { deadlineAt: clock.now() + 60_000 })
      await engine.invoker.drain()
    }
  }
  expect((await engine.ctx.store.getRun(run, { consistent: true }))!.status).toBe('cancelled')
})
