/**
 * A run whose sessions all wait for a decision that may be days away is looked at rarely. Who changes something about it
 * and dies, or whose events are lost, must not leave it so for days.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { approvalIdOf } from '../../src/domain/approval.ts'
import { rootSessionId } from '../../src/domain/ids.ts'
import type { Run } from '../../src/domain/run.ts'
import { decideApproval } from '../../src/engine/approve.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { changeBudget } from '../../src/engine/change-budget.ts'
import type { EngineContext } from '../../src/engine/context.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { systemClock } from '../../src/system.ts'
import { dyingAfter } from '../support/dying.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'

const DAY = 24 * 3_600_000
/** as in the contract: a lost event is noticed within three minutes */
const NOTICED_MS = 180_000
const crew = {
  ...scriptedTeam('crew', [
    {
      agent: agent('root', { subAgents: ['worker'], toolsets: ['background_agents'] }),
      steps: [{ calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'first' } }] }, { text: '{results}' }],
    },
    { agent: agent('worker'), steps: [{ text: 'done: {task}' }] },
  ]),
  permissions: { ask: ['transfer_task'] },
}

let engine: TestEngine
let table: TableClient
let ahead = 0
const clock = { now: () => systemClock.now() + ahead, sleep: systemClock.sleep }
const stored = async (run: Run) => (await engine.ctx.store.getRun(run, { consistent: true }))!
const look = async () => {
  await sweep(engine.ctx, { deadlineAt: clock.now() + 60_000 })
  await engine.invoker.drain()
}

let run: Run
beforeEach(async () => {
  ahead = 0
  table = memoryTable()
  engine = testEngine({ table, teams: [crew], clock })
  run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', input: 'go', budget: { usd: '1' } })
  await engine.invoker.drain()
  ahead += NOTICED_MS
  await look()
  expect((await stored(run)).dueAt! - clock.now()).toBeGreaterThan(DAY)
})
afterEach(() => engine.invoker.close())

const dying = (writes: number): EngineContext => dyingAfter(writes, engine.ctx, table)

test.each([1, 2, 99])('a cancel that made at most %i writes, and sent no event', async (writes) => {
  await cancelRun(dying(writes), run).catch(() => {})
  expect(await stored(run)).toMatchObject({ status: 'running', stop: 'cancelled' })
  ahead += NOTICED_MS
  await look()
  expect(await stored(run)).toMatchObject({ status: 'cancelled' })
})

test.each([1, 2])('a raise that made at most %i writes', async (writes) => {
  await changeBudget(dying(writes), run, { usd: '3' }).catch(() => {})
  ahead += NOTICED_MS
  await look()
  const root = await engine.ctx.store.getHeader({ ...run, sessionId: rootSessionId(run.runId) })
  expect(root).toMatchObject({ limitSeq: (await stored(run)).limitSeq, share: { usd: 3_000_000_000_000n } })
})

test.each([2, 3, 99])('a decision that made at most %i writes, and sent no event', async (writes) => {
  const id = approvalIdOf({ sessionId: rootSessionId(run.runId), n: 0, index: 0 })
  await decideApproval(dying(writes), run, id, { decision: 'approve', by: 'somebody' }).catch(() => {})
  ahead += NOTICED_MS
  await look()
  expect(await stored(run)).toMatchObject({ status: 'completed' })
})
