/** Failures that others met on Lambda: repeated events, time-outs, results lost or overwritten. C1 is in engine/continuations.test.ts. */
import { afterEach, describe, expect, test } from 'vitest'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import { runSession } from '../../src/engine/run-session.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { DYNAMODB_LOCAL, dynaliteTable, dynamodbLocalTable, type TestTable } from '../support/tables.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const team = scriptedTeam('desk', [
  {
    agent: agent('root', { subAgents: ['worker'] }),
    steps: [{ calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'x' } }] }, { text: 'done: {results}' }],
  },
  { agent: agent('worker'), steps: [{ text: 'worker done', delayMs: 150, usage: { input: 100, output: 50 } }] },
])
const later = () => ({ deadlineAt: Date.now() + 600_000 })

describe('C6: the same event twice without any error', () => {
  let place: TestTable
  afterEach(() => place.close())

  test.each([
    ['the embedded emulator', dynaliteTable],
    ...(DYNAMODB_LOCAL ? [['DynamoDB Local', dynamodbLocalTable] as const] : []),
  ] as const)('to two containers at one instant, and again after the end, on %s', async (_name, open) => {
    place = await open()
    // two containers: contexts that share nothing but the table
    const [one, two] = [1, 2].map(() => testEngine({ table: place.table, teams: [team] })) as [
      ReturnType<typeof testEngine>,
      ReturnType<typeof testEngine>,
    ]
    const quiet = (e: typeof one) => ({ ...e.ctx, invoker: { invoke: async () => {} } })
    const run = await startRun(quiet(one), { tenant: 'local', team: 'desk', input: 'go' })
    const root = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
    const child = { ...root, sessionId: childSessionId(root.sessionId, 0) }
    await runSession(quiet(one), root, later()) // the child is there now, and nobody has been sent its event

    await Promise.all([runSession(quiet(one), child, later()), runSession(quiet(two), child, later())])
    const store = createStore(place.table)
    const { headers } = await store.getRunWithSessions(run)
    expect(headers.filter((h) => h.parentId === root.sessionId)).toHaveLength(1)
    const log = await store.readLog(child)
    expect([...log.responses.values()].filter((r) => r.outcome === 'accepted')).toHaveLength(1)
    const calls = one.scripted.bill.length + two.scripted.bill.length
    const booked = (await store.listCalls(run, { limit: 10 })).items.length
    expect(booked).toBe(calls)

    await runSession(quiet(two), child, later()) // the third does nothing, and calls no model
    expect(one.scripted.bill.length + two.scripted.bill.length).toBe(calls)
    expect((await store.readLog(child)).responses.size).toBe(log.responses.size)

    await runSession(quiet(one), root, later())
    expect(await store.getRun(run)).toMatchObject({ status: 'completed' })
    await expectBalanced(store, run)
  })
})

describe('C4: a time-out leaves "in progress" for ever', () => {
  test('the lease runs out, a retry takes over, and both calls are accounted for', async () => {
    const clock = createVirtualClock()
    const slow = scriptedTeam('slow', [
      { agent: agent('root'), steps: [{ text: 'at last', delayMs: 100, usage: { input: 100, output: 50 } }] },
    ])
    const engine = testEngine({ table: memoryTable(), teams: [slow], clock })
    const quiet = { ...engine.ctx, invoker: { invoke: async () => {} } }
    const run = await startRun(quiet, { tenant: 'local', team: 'slow', input: 'go' })
    const ref = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
    // the first invocation is killed in its call: its promise never gets any further
    const frozen = {
      ...quiet,
      model: { call: () => new Promise<never>(() => {}) },
      clock: { ...clock, sleep: () => new Promise<never>(() => {}) },
    }
    void runSession(frozen, ref, { deadlineAt: clock.now() + 900_000 })
    await clock.advance(0)
    expect(await engine.ctx.store.getHeader(ref)).toMatchObject({ status: 'running', attempt: 1 })

    await runSession(quiet, ref, { deadlineAt: clock.now() + 900_000 }) // Lambda's retry comes while the lease runs: refused
    expect(engine.scripted.bill).toHaveLength(0)
    await clock.advance(91_000)
    const second = runSession(quiet, ref, { deadlineAt: clock.now() + 900_000 })
    await clock.advance(1_000)
    await second
    const stored = (await engine.ctx.store.getRun(run))!
    expect(stored.status).toBe('completed')
    expect(stored.books.accepted).toMatchObject({ calls: 1, inputTokens: 100, outputTokens: 50 })
    expect(stored.books.unknown).toMatchObject({ calls: 1 })
  })
})

describe('C12', () => {
  test('an empty result of a retry never overwrites a good one', async () => {
    const engine = testEngine({ table: memoryTable(), teams: [team] })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'desk', input: 'go' })
    await engine.invoker.drain()
    const child = { ...run, sessionId: childSessionId(rootSessionId(run.runId), 0) }
    const before = await engine.ctx.store.readLog(child)
    const empty = {
      ...before.responses.get(0)!,
      of: 'another-driver',
      message: { role: 'assistant', content: '', toolCalls: [] },
    } as const
    expect(await engine.ctx.store.putResponse(child, empty, 'another-driver')).toBe('already')
    expect(await engine.ctx.store.bookLate(child, empty, 'another-driver')).toBe('lost')
    await runSession(engine.ctx, child, later())
    expect(await engine.ctx.store.readLog(child)).toEqual(before)
  })

  test('an event that vanished without a dead letter is found by the sweep', async () => {
    const clock = createVirtualClock()
    const engine = testEngine({ table: memoryTable(), teams: [team], clock })
    const child = (runId: string) => childSessionId(rootSessionId(runId), 0)
    let lost = false
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'desk', input: 'go' })
    engine.lose = (id) => id === child(run.runId) && !lost && (lost = true)
    await clock.advance(1_000)
    expect(lost).toBe(true)
    const from = clock.now()
    while ((await engine.ctx.store.getRun(run))!.status === 'running') {
      await clock.advance(60_000)
      await sweep(engine.ctx, { deadlineAt: clock.now() + 60_000 })
      if (clock.now() - from > 240_000) break
    }
    expect((await engine.ctx.store.getRun(run))!.status).toBe('completed')
    const header = (await engine.ctx.store.getHeader({ ...run, sessionId: child(run.runId) }))!
    expect(header.startedAt! - from).toBeLessThanOrEqual(180_000)
  })
})
