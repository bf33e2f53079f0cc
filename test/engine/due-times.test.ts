/** A look of the sweep may be days away: whoever changes something meanwhile brings it forward, whatever dies or comes beside it. */
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
import { sweepRun } from '../../src/engine/sweep-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { dyingAfter } from '../support/dying.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

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
let clock: VirtualClock
let run: Run
const stored = async () => (await engine.ctx.store.getRun(run, { consistent: true }))!
const look = () => sweep(engine.ctx, { deadlineAt: clock.now() + 60_000 })
const approval = () => approvalIdOf({ sessionId: rootSessionId(run.runId), n: 0, index: 0 })
const yes = { decision: 'approve', by: 'somebody' } as const

beforeEach(async () => {
  clock = createVirtualClock()
  table = memoryTable()
  engine = testEngine({ table, teams: [crew], clock })
  run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', input: 'go', budget: { usd: '1' } })
  await clock.advance(1_000)
})
afterEach(() => engine.invoker.close())

const dying = (writes: number): EngineContext => dyingAfter(writes, engine.ctx, table)
/** three minutes, a sweep in each of them */
async function minutes(n: number) {
  for (let i = 0; i < n; i++) {
    await clock.advance(60_000)
    await look()
    await clock.advance(100)
  }
}

test('a decision whose caller died behind it, and whose event the sweep sent and Lambda lost, is noticed again', async () => {
  await clock.advance(NOTICED_MS)
  await look()
  await decideApproval(dying(2), run, approval(), yes).catch(() => {})
  engine.lose = () => true
  await clock.advance(NOTICED_MS)
  await look() // takes the question off, and its event is lost
  engine.lose = () => false
  expect((await stored()).dueAt! - clock.now()).toBeLessThanOrEqual(NOTICED_MS)
  await minutes(4)
  expect(await stored()).toMatchObject({ status: 'completed' })
})

// 1b
test('after a sweep has passed a decision on, what is lost later is still noticed', async () => {
  await clock.advance(NOTICED_MS)
  await look()
  await decideApproval(dying(2), run, approval(), yes).catch(() => {})
  engine.lose = (sessionId) => sessionId !== rootSessionId(run.runId) // the worker's event, much later
  await clock.advance(NOTICED_MS)
  await look() // the root goes on, and makes the worker
  await clock.advance(1_000)
  engine.lose = () => false
  await minutes(10)
  expect(await stored()).toMatchObject({ status: 'completed' })
})

test('a sweep between the telling of the sweep and the decision does not put the run off', async () => {
  await clock.advance(NOTICED_MS) // the run is due now, as it is once after it lay down
  expect((await stored()).dueAt!).toBeLessThan(clock.now())
  const dead: EngineContext = { ...engine.ctx, invoker: { ...engine.ctx.invoker, invoke: async () => {} } } // its event is lost
  const { decideApproval: decide } = engine.ctx.store
  const store = {
    ...engine.ctx.store,
    decideApproval: async (...args: Parameters<typeof decide>) => {
      await look() // the minute's sweep comes here
      return decide(...args)
    },
  }
  await decideApproval({ ...dead, store }, run, approval(), yes)
  await minutes(4)
  expect(await stored()).toMatchObject({ status: 'completed' })
})

// 2b the same by a dead letter's look, whenever
test('a look of a dead letter between the telling of the sweep and the decision does not put the run off', async () => {
  await clock.advance(NOTICED_MS)
  await look()
  await clock.advance(NOTICED_MS)
  const dead: EngineContext = { ...engine.ctx, invoker: { ...engine.ctx.invoker, invoke: async () => {} } }
  const { decideApproval: decide } = engine.ctx.store
  const store = {
    ...engine.ctx.store,
    decideApproval: async (...args: Parameters<typeof decide>) => {
      await sweepRun(engine.ctx, run)
      return decide(...args)
    },
  }
  await decideApproval({ ...dead, store }, run, approval(), yes)
  await minutes(4)
  expect(await stored()).toMatchObject({ status: 'completed' })
})

test('a lowered limit whose caller died behind the first write is taken in soon', async () => {
  await clock.advance(NOTICED_MS)
  await look()
  await changeBudget(dying(1), run, { usd: '0.1' }).catch(() => {})
  expect(await stored()).toMatchObject({ limit: { usd: 100_000_000_000n } })
  await minutes(4)
  const root = await engine.ctx.store.getHeader({ ...run, sessionId: rootSessionId(run.runId) })
  expect(root).toMatchObject({ limitSeq: (await stored()).limitSeq, share: { usd: 100_000_000_000n } })
})

// 4 the same millisecond
test('a cancel in the millisecond in which the run is due, beside a sweep', async () => {
  const { dueAt } = await stored()
  await clock.advance(dueAt! - clock.now())
  const store = {
    ...engine.ctx.store,
    // the sweep has read everything; now somebody cancels and dies
    pushDue: async (...args: Parameters<typeof engine.ctx.store.pushDue>) => {
      await cancelRun(dying(1), run).catch(() => {})
      return engine.ctx.store.pushDue(...args)
    },
  }
  await sweep({ ...engine.ctx, store }, { deadlineAt: clock.now() + 60_000 })
  expect(await stored()).toMatchObject({ stop: 'cancelled' })
  await minutes(4)
  expect(await stored()).toMatchObject({ status: 'cancelled' })
})
