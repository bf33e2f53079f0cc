/** Corrections and removals whose worker died in the middle: somebody finishes them. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import type { Run } from '../../src/domain/run.ts'
import { auditRun } from '../../src/engine/audit.ts'
import { changeBudget } from '../../src/engine/change-budget.ts'
import { deleteRun } from '../../src/engine/delete-run.ts'
import { settleReceipts } from '../../src/engine/receipts.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { type MemoryTable, memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import { systemIds } from '../../src/system.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

const MINUTE = 60_000
const crew = scriptedTeam('crew', [
  {
    agent: agent('root', { subAgents: ['worker'] }),
    steps: [{ calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'x' } }] }, { text: '{results}' }],
  },
  { agent: agent('worker'), steps: [{ text: 'done', usage: { input: 100, output: 50 } }] },
])
let clock: VirtualClock
let table: MemoryTable
let engine: TestEngine
let run: Run
const stored = async () => (await engine.ctx.store.getRun(run, { consistent: true, gone: true }))!
const worker = () => ({ ...run, sessionId: childSessionId(rootSessionId(run.runId), 0) })
async function minutes(n: number) {
  for (let i = 0; i < n; i++) {
    await clock.advance(MINUTE)
    await sweep(engine.ctx, { deadlineAt: clock.now() + 60_000 })
    await clock.advance(100)
  }
}

/** a run that has ended, whose worker has one call of outcome unknown */
beforeEach(async () => {
  clock = createVirtualClock()
  table = memoryTable()
  engine = testEngine({ table, teams: [crew], clock })
  const { call } = engine.ctx.model
  let broken = false
  Object.assign(engine.ctx.model, {
    call: async (request: Parameters<typeof call>[0]) => {
      if (!broken && request.call.sessionId === worker().sessionId) {
        broken = true
        throw new Error('killed under its call')
      }
      return call(request)
    },
  })
  // the root's header sorts before its child's: it is removed first
  let runId = systemIds.runId(clock.now())
  while (rootSessionId(runId) > childSessionId(rootSessionId(runId), 0)) runId = systemIds.runId(clock.now())
  run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', input: 'go', budget: { usd: '5' }, runId })
  await clock.advance(5_000)
  expect(await stored()).toMatchObject({ status: 'completed' })
  expect((await stored()).books.unknown?.calls).toBe(1)
})
afterEach(() => engine.invoker.close())

/** its answer comes after all, and the driver dies behind W9 */
async function lateAnswer() {
  const slot = (await engine.ctx.store.getResponse(worker(), 0))!
  expect(slot.outcome).toBe('unknown')
  const real = {
    ...slot,
    outcome: 'duplicate',
    usage: { ...slot.usage, inputTokens: 7, outputTokens: 5 },
    cost: 1_000n,
  } as const
  expect(await engine.ctx.store.bookLate(worker(), real, slot.of)).toBe('written')
}
const differences = async () => (await auditRun(engine.ctx, run)).differences.length

test.each([false, true])(
  'a late answer whose driver died behind it is taken in after 20 minutes (limit changed: %s)',
  async (changes) => {
    if (changes) await changeBudget(engine.ctx, run, { usd: '6' })
    await minutes(10)
    await lateAnswer()
    await minutes(30)
    expect((await stored()).books.unknown?.calls ?? 0).toBe(0)
  },
)

test('a receipt whose request died behind its first write is finished when it is sent again', async () => {
  await minutes(30)
  const receipts = [
    {
      sessionId: worker().sessionId,
      turn: 0,
      usage: { ...(await engine.ctx.store.getResponse(worker(), 0))!.usage, inputTokens: 7, outputTokens: 5 },
    },
  ]
  const killed = { ...engine.ctx.store, correctOwn: async () => Promise.reject(new Error('killed')) }
  await expect(settleReceipts({ ...engine.ctx, store: killed }, run, receipts)).rejects.toThrow('killed')
  expect(await settleReceipts(engine.ctx, run, receipts)).toMatchObject([{ result: 'known' }])
  await minutes(30)
  expect((await stored()).books.unknown?.calls ?? 0).toBe(0)
  expect(await differences()).toBe(0)
})

test('a purge that died anywhere is finished by a later sweep', async () => {
  const left: string[] = []
  await minutes(30)
  await deleteRun(engine.ctx, run)
  const partition = () => table.items().filter((i) => String(i.pk).endsWith(run.runId))
  const all = partition()
  for (let dies = 1; dies < all.length; dies++) {
    // as it was before
    for (const item of all) await table.put({ item })
    let deletes = 0
    const store = createStore(
      { ...table, delete: async (r) => (++deletes > dies ? Promise.reject(new Error('killed')) : table.delete(r)) },
      clock.now,
    )
    await sweep({ ...engine.ctx, store }, { deadlineAt: clock.now() + 60_000 })
    for (let i = 0; i < 5; i++) await sweep(engine.ctx, { deadlineAt: clock.now() + 60_000 })
    if (partition().length > 0)
      left.push(`died behind ${dies} of ${all.length} deletes: ${partition().length} left for ever`)
  }
  expect(left, engine.complaints.filter((c) => c.includes('no header'))[0]).toEqual([])
})
