/**
 * Where the product comes from: a background worker's sub-session was added to its parent in memory and never written to
 * the store, so its tokens and cost were recorded nowhere. A worker that fails must be stored all the same.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import { formatUsd } from '../../src/domain/money.ts'
import type { Run } from '../../src/domain/run.ts'
import { booksOf, known } from '../../src/domain/usage.ts'
import { delegate } from '../../src/engine/delegate.ts'
import type { Drive } from '../../src/engine/drive.ts'
import { runSession } from '../../src/engine/run-session.ts'
import { startRun } from '../../src/engine/start-run.ts'
import type { Store } from '../../src/ports.ts'
import { createStore } from '../../src/store/store.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { TABLES, type TestTable } from '../support/tables.ts'

// slow enough for the root to lie down first
const DONE = [{ text: 'worker done', usage: { input: 100, output: 50 }, delayMs: 100 }]
const FAILS = [
  {
    error: { class: 'invalid_request', message: 'no such deployment', usage: { input: 100, output: 7 } },
    delayMs: 100,
  },
]

const team = (workerSteps: readonly object[]) =>
  scriptedTeam('desk', [
    {
      agent: agent('root', { subAgents: ['worker'], toolsets: ['background_agents'] }),
      steps: [
        { calls: [{ tool: 'run_background_agent', args: { agent: 'worker', task: 'do it' } }] },
        { calls: [{ tool: 'wait_background_agents' }] },
        { text: 'All done: {results}' },
      ],
    },
    { agent: agent('worker'), steps: workerSteps },
  ])

const DEADLINE = { deadlineAt: Date.now() + 600_000 }

describe.each(TABLES)('on $name', ({ open }) => {
  let place: TestTable
  beforeEach(async () => {
    place = await open()
  })
  afterEach(() => place.close())

  /** The parent is in the store, the sub-session is linked to it, and only then the worker runs, in the background. */
  async function runWorker(steps: readonly object[], tamper: (store: Store) => Store = (s) => s) {
    const engine = testEngine({ table: place.table, teams: [team(steps)] })
    const quiet = { ...engine.ctx, store: tamper(engine.ctx.store), invoker: { invoke: async () => {} } }
    const run = await startRun(quiet, { tenant: 'local', team: 'desk', input: 'go' })
    const rootRef = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
    const parent = await claimed(engine, run)
    await delegate(parent, 0, [
      { agent: 'worker', kind: 'background', via: { turn: 0, index: 0 }, weight: 1, task: 'do it' },
    ])
    await putAnswer(engine, rootRef)
    await runSession(quiet, { ...rootRef, sessionId: childSessionId(rootRef.sessionId, 0) }, DEADLINE)
    return run
  }

  /** What a client that did not write it finds. */
  async function subSessions(run: Run) {
    const reader = createStore(place.table)
    const { headers } = await reader.getRunWithSessions(run)
    const root = headers.find((h) => h.parentId === null)!
    return { root, children: headers.filter((h) => h.parentId === root.sessionId) }
  }

  async function expectStored(run: Run, status: string, input: number, output: number): Promise<void> {
    const { root, children } = await subSessions(run)
    expect(children).toHaveLength(1)
    const own = known(booksOf(children[0]!.rows))
    expect({ status: children[0]!.status, in: own.inputTokens, out: own.outputTokens }).toEqual({
      status,
      in: input,
      out: output,
    })
    const kids = known(root.kids)
    expect({ in: kids.inputTokens, out: kids.outputTokens, cost: kids.cost }).toEqual({
      in: input,
      out: output,
      cost: own.cost,
    })
    expect(root.pending.size).toBe(0)
    // every number can be traced to a call item
    const calls = await createStore(place.table).listCalls(run, { limit: 10 })
    const workers = calls.items.filter((c) => c.sessionId === children[0]!.sessionId)
    expect(workers.map((c) => [c.usage.inputTokens, c.usage.outputTokens])).toEqual([[input, output]])
  }

  test('a background worker is stored under its parent, once, with its usage', async () => {
    const run = await runWorker(DONE)
    await expectStored(run, 'completed', 100, 50)
    const { children } = await subSessions(run)
    expect(formatUsd(known(booksOf(children[0]!.rows)).cost)).toBe('0.00105')
  })

  test('a worker whose model fails is stored all the same, with its error and what it spent', async () => {
    const run = await runWorker(FAILS)
    await expectStored(run, 'failed', 100, 7)
    const { children } = await subSessions(run)
    expect(children[0]!.error).toEqual({ code: 'invalid_request', message: 'no such deployment' })
  })

  // Controls: the tests above must fail when the write they guard is taken out.
  const without = (name: 'finish' | 'settle' | 'putResponse') => (store: Store) =>
    ({ ...store, [name]: dropped(store, name) }) as Store

  test.each(['finish', 'settle', 'putResponse'] as const)(
    'control: without %s the worker is not in the books',
    async (name) => {
      const run = await runWorker(DONE, without(name)).catch(() => undefined)
      if (run) await expect(expectStored(run, 'completed', 100, 50)).rejects.toThrow()
    },
  )

  test('a whole run through worker invocations: root and worker, each in an invocation of its own', async () => {
    for (const [steps, status, output] of [
      [DONE, 'completed', 50],
      [FAILS, 'failed', 7],
    ] as const) {
      const engine = testEngine({ table: place.table, teams: [team(steps)] })
      const run = await startRun(engine.ctx, { tenant: 'local', team: 'desk', input: 'go' })
      await engine.invoker.drain()
      const { root, children } = await subSessions(run)
      expect(root.status).toBe('completed')
      expect(children.map((c) => c.status)).toEqual([status])
      expect(known(booksOf(children[0]!.rows)).outputTokens).toBe(output)
      // root, worker, root again when the worker woke it
      expect(engine.events.map((e) => e.sessionId)).toEqual([root.sessionId, children[0]!.sessionId, root.sessionId])
      const stored = await createStore(place.table).getRun(run, { consistent: true })
      const billed = engine.scripted.bill.reduce((sum, b) => sum + b.usage.inputTokens + b.usage.outputTokens, 0)
      const booked = known(stored!.books)
      expect(booked.inputTokens + booked.outputTokens).toBe(billed)
      expect(engine.complaints).toEqual([])
    }
  })
})

/** A write that says it has been made, and has not. */
function dropped(store: Store, name: 'finish' | 'settle' | 'putResponse') {
  if (name === 'putResponse') return async () => 'written' as const
  let calls = 0
  return async (ref: Parameters<Store['getHeader']>[0]) => {
    if (calls++ > 3) throw new Error(`${name} is taken out`)
    return { written: true as const, item: (await store.getHeader(ref))! }
  }
}

/** The root as a driver that has just claimed it. */
async function claimed(engine: TestEngine, run: Run): Promise<Drive> {
  const { store, clock } = engine.ctx
  const ref = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
  const now = clock.now()
  const claim = { seenAttempt: 0, driver: 'a-driver-of-a-test', now, lease: now + 90_000, first: null }
  const result = await store.claim(ref, claim)
  if (!result.written) throw new Error('the root could not be claimed')
  const definition = await engine.ctx.teams.get(run.team)
  return {
    ctx: { ...engine.ctx, invoker: { invoke: async () => {} } },
    ref,
    run,
    team: definition,
    agent: definition.agents[0]!,
    driver: claim.driver,
    attempt: 1,
    startedAt: now,
    deadlineAt: DEADLINE.deadlineAt,
    header: result.item,
    slots: { requests: new Map(), responses: new Map(), results: new Map() },
    called: new Set(),
    childrenPut: -1,
    leaseAt: now,
    marked: -1,
    pots: new Map(),
    potsSettled: false,
    warnedSeq: -1,
    retryAt: 0,
  }
}

/** The answer by which the root delegated: the worker's task stands in it. */
async function putAnswer(engine: TestEngine, ref: Drive['ref']): Promise<void> {
  await engine.ctx.store.putResponse(
    ref,
    {
      n: 0,
      outcome: 'accepted',
      of: 'a-driver-of-a-test',
      attempt: 1,
      agent: 'root',
      model: 'root',
      usage: {
        inputTokens: 10,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        cacheWrite1hTokens: 0,
        outputTokens: 1,
        reasoningTokens: 0,
      },
      usageSource: 'reported',
      cost: null,
      price: null,
      message: {
        role: 'assistant',
        content: '',
        toolCalls: [{ id: 'c0', name: 'run_background_agent', arguments: '{"agent":"worker","task":"do it"}' }],
      },
      startedAt: 0,
      durationMs: 0,
    },
    'a-driver-of-a-test',
  )
}
