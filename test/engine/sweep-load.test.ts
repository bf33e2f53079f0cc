/** A sweep that has more to do than one can: all come in turn, each once. */
import { afterEach, expect, test } from 'vitest'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import type { Run, SessionRef } from '../../src/domain/run.ts'
import { NO_TOTALS } from '../../src/domain/usage.ts'
import { runSession } from '../../src/engine/run-session.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { sweepSession } from '../../src/engine/sweep-run.ts'
import { dueShard } from '../../src/store/keys.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { systemIds } from '../../src/system.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'

const solo = scriptedTeam('solo', [{ agent: agent('root'), steps: [{ text: 'done' }] }])
const crowd = scriptedTeam('crowd', [{ agent: agent('worker'), steps: [{ text: 'done' }] }])
const T0 = Date.UTC(2026, 0, 1)
let engine: TestEngine
afterEach(() => engine.invoker.close())

/** every request of the table takes its time; whoever works beyond its deadline is killed, as on Lambda */
function slow(perRequest: number) {
  const at = { now: T0, killAt: Number.POSITIVE_INFINITY }
  const clock = { now: () => at.now, sleep: () => new Promise<void>(() => {}) }
  const memory = memoryTable()
  const took = <A, R>(f: (request: A) => Promise<R>) => {
    return async (request: A) => {
      at.now += perRequest
      if (at.now > at.killAt) throw new Error('killed at its deadline')
      return f(request)
    }
  }
  const table: TableClient = {
    get: took(memory.get),
    put: took(memory.put),
    update: took(memory.update),
    delete: took(memory.delete),
    query: took(memory.query),
  }
  engine = testEngine({ table: memory, teams: [solo, crowd], clock })
  const [invoked, sessions]: [string[], string[]] = [[], []]
  const invoke = async (ref: SessionRef) => {
    invoked.push(ref.runId)
    sessions.push(ref.sessionId)
  }
  const ctx = { ...engine.ctx, invoker: { invoke } }
  return {
    at,
    memory,
    /** what was sent an event: its run, and itself */
    invoked,
    sessions,
    ctx,
    /** one invocation of the sweep function: 120 s; the next begins when the minute is over and it has ended */
    async lambda() {
      const begun = at.now
      at.killAt = begun + 120_000
      await sweep({ ...ctx, store: createStore(table, clock.now) }, { deadlineAt: begun + 120_000 }).catch(() => {})
      at.killAt = Number.POSITIVE_INFINITY
      at.now = Math.max(begun + 60_000, Math.min(at.now, begun + 120_000))
    },
    async start(shard: number, of: object = { team: 'solo', input: 'go' }): Promise<Run> {
      let runId = systemIds.runId(at.now)
      while (dueShard(runId) !== shard) runId = systemIds.runId(at.now)
      return startRun(ctx, { tenant: 'local', ...of, runId } as never)
    },
  }
}

test('a sweep looks once at each run that is due when it begins, and gets on', async () => {
  const w = slow(8)
  // as when Lambda is throttled for some minutes: events come late, or not at all
  for (let i = 0; i < 120; i++) await w.start(0)
  const other = await w.start(5)
  w.invoked.length = 0
  w.at.now += 300_000
  await w.lambda()
  const looks = Map.groupBy(w.invoked, (id) => id)
  expect(w.invoked).toContain(other.runId)
  expect(Math.max(...[...looks.values()].map((l) => l.length))).toBe(1)
})

test('healthy runs with tasks that wait for a place are looked at once by a sweep, and the others get their turn', async () => {
  const w = slow(8)
  const store = createStore(w.memory, () => w.at.now)
  const runs: Run[] = []
  for (let i = 0; i < 120; i++) {
    const tasks = Array.from({ length: 3 }, () => ({ agent: 'worker', task: 't' }))
    runs.push(await w.start(0, { team: 'crowd', tasks, maxConcurrency: 1 }))
    await runSession(
      w.ctx,
      { ...runs[i]!, sessionId: rootSessionId(runs[i]!.runId) },
      { deadlineAt: w.at.now + 900_000 },
    )
  }
  const other = await w.start(5)
  w.at.now += 300_000
  // the first task of each is under way, its lease renewed; the others wait for its place
  for (const run of runs) {
    const first = { ...run, sessionId: childSessionId(rootSessionId(run.runId), 0) }
    const claim = { seenAttempt: 0, driver: 'x', now: w.at.now, lease: w.at.now + 600_000, first: null }
    expect((await store.claim(first, claim)).written).toBe(true)
  }
  w.invoked.length = 0
  await w.lambda()
  expect(w.invoked).toContain(other.runId)
})

test('where there is more to do than one sweep can, all come in turn', async () => {
  const w = slow(300)
  // 40 runs in each shard (no second page), of which a sweep can look at some 120 in all; all are due again in the next one
  for (let i = 0; i < 320; i++) await w.start(i % 8, { team: 'solo', input: 'go', maxConcurrency: 1 })
  w.at.now += 300_000
  w.invoked.length = 0
  for (let i = 0; i < 20; i++) await w.lambda()
  const looked = new Set(w.invoked)
  expect(looked.size).toBe(320)
})

test('a run that takes longer than a sweep has does not keep the others waiting', async () => {
  const w = slow(100)
  const big = await w.start(0, {
    team: 'crowd',
    tasks: Array.from({ length: 300 }, () => ({ agent: 'worker', task: 't' })),
  })
  // 300 sessions that were lost with a call under way, as after an outage: looked at each time until the books are closed
  const rootId = rootSessionId(big.runId)
  const store = createStore(w.memory, () => w.at.now)
  const root = (await store.getHeader({ ...big, sessionId: rootId }))!
  for (let i = 0; i < 300; i++) {
    const row = {
      agent: 'worker',
      model: 'worker',
      outcome: 'unknown' as const,
      totals: { ...NO_TOTALS, calls: 1, inputTokens: 1, outputTokens: 1, cost: 1n },
    }
    await store.putHeader({
      ...root,
      sessionId: childSessionId(rootId, i),
      parentId: rootId,
      ordinal: i,
      agent: 'worker',
      kind: 'task',
      depth: 1,
      status: 'failed',
      stopReason: 'error',
      finishedAt: w.at.now,
      rows: [row],
      unknowns: { 0: { usd: 1n, tok: 2n } },
    })
  }
  w.at.now += 1_000
  const others = [await w.start(0), await w.start(3)]
  w.at.now += 300_000
  w.invoked.length = 0
  for (let i = 0; i < 30; i++) await w.lambda()
  for (const other of others) expect(w.invoked).toContain(other.runId)
})

test('of a run whose N events were given up, N dead letters send about N events, and not N times N', async () => {
  const w = slow(0)
  const tasks = Array.from({ length: 40 }, () => ({ agent: 'worker', task: 't' }))
  const run = await w.start(0, { team: 'crowd', tasks })
  await runSession(w.ctx, { ...run, sessionId: rootSessionId(run.runId) }, { deadlineAt: w.at.now + 900_000 })
  expect(w.invoked.length).toBe(41)
  w.invoked.length = 0
  w.at.now += 600_000 // maximumEventAge: all 40 were throttled, and are given up at once
  for (let i = 0; i < 40; i++) {
    await sweepSession(w.ctx, { ...run, sessionId: childSessionId(rootSessionId(run.runId), i) })
  }
  expect(w.invoked.length).toBe(40)
})

test('a cancelled run whose stopping takes a whole look is still looked at', async () => {
  const w = slow(60)
  const { at, ctx, sessions } = w
  const N = 400
  const tasks = Array.from({ length: N }, () => ({ agent: 'worker', task: 't' }))
  const run = await w.start(0, { team: 'crowd', tasks, maxConcurrency: N })
  const rootId = rootSessionId(run.runId)
  await runSession(ctx, { ...run, sessionId: rootId }, { deadlineAt: at.now + 900_000 })
  const headers = (await ctx.store.listHeaders(run, { consistent: true })).items
  for (const h of headers)
    if (h.parentId !== null && h.agent === null)
      await runSession(ctx, { ...run, sessionId: h.sessionId }, { deadlineAt: at.now + 900_000 })
  let claimed = 0
  let after: string | undefined
  do {
    const page = await ctx.store.listHeaders(run, { consistent: true, ...(after && { after }) })
    for (const h of page.items)
      if (h.agent !== null) {
        await ctx.store.claim(
          { ...run, sessionId: h.sessionId },
          { seenAttempt: 0, driver: 'x', now: at.now, lease: at.now + 90_000, first: null },
        )
        claimed++
      }
    after = page.next
  } while (after)
  expect(claimed).toBe(N)
  at.now += 100_000 // all drivers are dead: an outage
  await ctx.store.cancelRun(run, { now: at.now, expiresAt: undefined })
  sessions.length = 0
  for (let i = 0; i < 40; i++) {
    if (i === 1) sessions.length = 0 // the events of the first look are lost
    await w.lambda()
  }
  expect(new Set(sessions).size).toBeGreaterThan(N / 2)
})
