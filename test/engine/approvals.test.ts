/** Tool calls that wait until somebody approves or denies them: nothing runs before, nothing is asked twice. */
import { afterEach, describe, expect, test } from 'vitest'
import { APPROVAL_WAIT_MS, approvalIdOf } from '../../src/domain/approval.ts'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import type { Permissions } from '../../src/domain/permissions.ts'
import type { Run } from '../../src/domain/run.ts'
import { addInput } from '../../src/engine/add-input.ts'
import { decideApproval } from '../../src/engine/approve.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { retryRun } from '../../src/engine/retry-run.ts'
import { runSession } from '../../src/engine/run-session.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { systemClock } from '../../src/system.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'

const MINUTE = 60_000
let engine: TestEngine
let table: TableClient
let ahead = 0
const clock = { now: () => systemClock.now() + ahead, sleep: systemClock.sleep }
const crew = (permissions: Permissions) => ({
  ...scriptedTeam('crew', [
    {
      agent: agent('root', { subAgents: ['worker'], toolsets: ['background_agents', 'think'] }),
      steps: [
        {
          calls: [
            { tool: 'transfer_task', args: { agent: 'worker', task: 'first' } },
            { tool: 'think', args: { thought: 'hm' } },
            { tool: 'run_background_agent', args: { agent: 'worker', task: 'second' } },
          ],
        },
        { calls: [{ tool: 'wait_background_agents', args: { timeout: 60 } }] },
        { text: 'all: {results}' },
      ],
    },
    { agent: agent('worker'), steps: [{ text: 'done: {task}' }] },
  ]),
  permissions,
})
const ASKS: Permissions = { ask: ['transfer_task', 'run_*'] }

async function open(permissions = ASKS): Promise<Run> {
  ahead = 0
  await engine?.invoker.close()
  table = memoryTable()
  engine = testEngine({ table, teams: [crew(permissions)], clock })
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', input: 'go' })
  await engine.invoker.drain()
  return run
}
afterEach(() => engine.invoker.close())

const ctx = (on: TableClient) => ({ ...engine.ctx, store: createStore(on, clock.now) })
const root = (run: Run) => ({ ...run, sessionId: rootSessionId(run.runId) })
const header = async (run: Run) => (await engine.ctx.store.getHeader(root(run)))!
const asked = (run: Run) => engine.ctx.store.listApprovals(root(run))
const say = (run: Run, index: number, decision: 'approve' | 'deny', more: object = {}, on = engine.ctx, n = 0) =>
  decideApproval(on, run, approvalIdOf({ sessionId: rootSessionId(run.runId), n, index }), {
    decision,
    by: 'somebody',
    ...more,
  })
const again = async (run: Run) => (await engine.ctx.store.getRun(run))!
const due = () => sweep(engine.ctx, { deadlineAt: clock.now() + 3_600_000 })
/** what each tool call of the root's first answer came to */
async function results(run: Run): Promise<(readonly [string, boolean])[]> {
  const { requests, responses } = await engine.ctx.store.readLog(root(run))
  const messages = responses.get(0)!.results ?? requests.get(1)!.messages
  return messages.flatMap((m) => (m.role === 'tool' ? [[m.content, m.isError === true] as const] : []))
}

describe('an answer with calls that need approval', () => {
  test('waits with no Lambda and nothing run, until all of them are decided', async () => {
    const run = await open()
    expect(await header(run)).toMatchObject({ status: 'waiting', asks: new Set(['0#0', '0#2']), next: 0, lease: null })
    expect(await asked(run)).toMatchObject([
      { n: 0, index: 0, tool: 'transfer_task', decision: null },
      { n: 0, index: 2, tool: 'run_background_agent', decision: null },
    ])
    expect(engine.scripted.bill).toHaveLength(1)
    await say(run, 2, 'approve')
    await engine.invoker.drain()
    expect(await header(run)).toMatchObject({ status: 'waiting', asks: new Set(['0#0']), next: 0 })
    await say(run, 0, 'approve')
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({ status: 'completed', sessions: 3 })
    expect(engine.scripted.bill).toHaveLength(5)
    expect((await results(run)).map(([, isError]) => isError)).toEqual([false, false, false])
  })

  test('that is denied has an error with the note as its result; the others run', async () => {
    const run = await open()
    await say(run, 0, 'deny', { note: 'not today' })
    await say(run, 2, 'approve')
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({ status: 'completed', sessions: 2 })
    expect(await results(run)).toEqual([
      ['This call was not approved: not today', true],
      ['Noted.', false],
      ['Started worker in the background. Its task id is task-0.', false],
    ])
    expect((await asked(run))[0]!.decision).toMatchObject({ decision: 'deny', by: 'somebody', note: 'not today' })
  })

  test('that is denied by the team has an error as its result, and nobody is asked', async () => {
    const run = await open({ ask: ['*'], deny: ['transfer_task', 'think', 'run_*', 'wait_*'] })
    expect(await again(run)).toMatchObject({ status: 'completed', sessions: 1 })
    expect(await asked(run)).toEqual([])
    expect(await results(run)).toEqual([
      ['This call of "transfer_task" is not permitted in this team.', true],
      ['This call of "think" is not permitted in this team.', true],
      ['This call of "run_background_agent" is not permitted in this team.', true],
    ])
  })

  test('is asked about by its arguments', async () => {
    const run = await open({ ask: ['*:task=second'] })
    expect((await asked(run)).map((a) => a.index)).toEqual([2])
  })

  test('a time-out of a wait that was approved late counts from then on', async () => {
    const run = await open({ ask: ['wait_*'] })
    expect(await header(run)).toMatchObject({ status: 'waiting', asks: new Set(['1#0']) })
    ahead = 24 * 60 * MINUTE
    engine.lose = () => true
    await say(run, 0, 'approve', {}, engine.ctx, 1)
    engine.lose = () => false
    await runSession(engine.ctx, root(run), { deadlineAt: clock.now() + MINUTE })
    await engine.invoker.drain()
    const { requests } = await engine.ctx.store.readLog(root(run))
    expect(JSON.stringify(requests.get(2)!.messages)).not.toContain('timed_out')
    expect(await again(run)).toMatchObject({ status: 'completed' })
  })
})

describe('a decision', () => {
  test('stands: the same again is the same answer, and another one is refused', async () => {
    const run = await open()
    await say(run, 0, 'approve')
    await say(run, 0, 'approve', { note: 'once more', by: 'another' })
    await expect(say(run, 0, 'deny')).rejects.toMatchObject({ code: 'approval_closed', status: 409 })
    expect((await asked(run))[0]!.decision).toMatchObject({ decision: 'approve', by: 'somebody', note: null })
    await say(run, 2, 'deny')
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({ status: 'completed' })
    // also when all of it is long over
    await say(run, 0, 'approve')
    await expect(say(run, 2, 'approve')).rejects.toMatchObject({ code: 'approval_closed' })
  })

  test('of ten at once is one, and one event wakes the session', async () => {
    const run = await open()
    await say(run, 0, 'approve')
    const all = await Promise.allSettled(
      Array.from({ length: 10 }, (_, i) => say(run, 2, i % 2 ? 'approve' : 'deny', { by: `${i}` })),
    )
    const { decision, by } = (await asked(run))[1]!.decision!
    const said = (i: number) => (i % 2 ? 'approve' : 'deny')
    expect(all.map((r) => r.status === 'fulfilled')).toEqual(all.map((_, i) => said(i) === decision))
    expect(said(Number(by))).toBe(decision)
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({ status: 'completed' })
  })

  test.each(['', 'x', `${'0'.repeat(20)}.0.0`, 'ROOT.0.1', 'ROOT.1.0', 'ROOT.00.0', 'ROOT.0.0.0'])(
    'about %j, which nobody has asked, is refused',
    async (id) => {
      const run = await open()
      const named = id.replace('ROOT', rootSessionId(run.runId))
      await expect(decideApproval(engine.ctx, run, named, { decision: 'approve', by: null })).rejects.toMatchObject({
        code: 'unknown_approval',
        status: 404,
      })
    },
  )

  test('of another tenant finds no run', async () => {
    const run = await open()
    await expect(say({ ...run, tenant: 'other' }, 0, 'approve')).rejects.toMatchObject({ code: 'unknown_run' })
  })
})

describe('a session that waits for approval', () => {
  test('ends when its run is cancelled, and nothing can be decided afterwards', async () => {
    const run = await open()
    await cancelRun(engine.ctx, run)
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({ status: 'cancelled', stopReason: 'cancelled', sessions: 1 })
    await expect(say(run, 0, 'approve')).rejects.toMatchObject({ code: 'approval_closed' })
    expect((await asked(run)).map((a) => a.decision)).toEqual([null, null])
  })

  test('fails when nobody has decided for seven days, and another input goes on behind it', async () => {
    const run = await open()
    await say(run, 0, 'approve')
    ahead = APPROVAL_WAIT_MS - MINUTE
    await due()
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({ status: 'running' })
    ahead = APPROVAL_WAIT_MS + MINUTE
    await due()
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({
      status: 'failed',
      stopReason: 'approval',
      error: {
        code: 'approval',
        message: expect.stringContaining('1 tool calls (run_background_agent) within 7 days'),
      },
    })
    await addInput(engine.ctx, run, 'go on')
    await engine.invoker.drain()
    // its answer calls the same tools: they are asked about anew, and nobody waits for the old ones any more
    await expect(say(run, 2, 'approve')).rejects.toMatchObject({ code: 'approval_closed' })
    const anew = (await asked(run)).filter((a) => a.n > 0)
    expect(await header(run)).toMatchObject({ status: 'waiting', asks: new Set(anew.map((a) => `${a.n}#${a.index}`)) })
    for (const { n, index } of anew) await say(run, index, 'approve', {}, engine.ctx, n)
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({ status: 'completed', round: 2 })
  })

  test('that was cancelled and is tried again goes on without what nobody had decided', async () => {
    const run = await open()
    await say(run, 0, 'approve')
    await cancelRun(engine.ctx, run)
    await engine.invoker.drain()
    await retryRun(engine.ctx, run)
    await engine.invoker.drain()
    await expect(say(run, 2, 'approve')).rejects.toMatchObject({ code: 'approval_closed' })
    expect(await again(run)).toMatchObject({ status: 'completed', round: 2 })
    const { requests } = await engine.ctx.store.readLog(root(run))
    const told = [...requests.values()].flatMap((r) => r.messages).filter((m) => m.role === 'tool')
    expect(told.map((m) => [m.content, m.isError === true]).slice(0, 3)).toEqual([
      ['done: first', false],
      [expect.any(String), false],
      [expect.stringContaining('nobody had decided about it when the round ended'), true],
    ])
  })

  test('is not woken by an event that comes twice', async () => {
    const run = await open()
    await engine.invoker.invoke(root(run))
    await engine.invoker.drain()
    expect(await header(run)).toMatchObject({ status: 'waiting', attempt: 1 })
    await say(run, 0, 'approve')
    await say(run, 2, 'approve')
    await engine.invoker.invoke(root(run))
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({ status: 'completed', sessions: 3 })
    expect(engine.scripted.bill).toHaveLength(5)
  })

  test('in the background is asked about like any other, and its parent waits for it', async () => {
    const team = {
      ...scriptedTeam('nested', [
        {
          agent: agent('root', { subAgents: ['lead'] }),
          steps: [{ calls: [{ tool: 'transfer_task', args: { agent: 'lead', task: 'x' } }] }, { text: 'end' }],
        },
        {
          agent: agent('lead', { subAgents: ['worker'] }),
          steps: [{ calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'y' } }] }, { text: 'led' }],
        },
        { agent: agent('worker'), steps: [{ text: 'worked' }] },
      ]),
      permissions: { ask: ['*:agent=worker'] },
    }
    engine = testEngine({ table: memoryTable(), teams: [team], clock })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'nested', input: 'go', maxConcurrency: 1 })
    await engine.invoker.drain()
    const lead = { ...run, sessionId: childSessionId(rootSessionId(run.runId), 0) }
    expect(await engine.ctx.store.getHeader(lead)).toMatchObject({ status: 'waiting', asks: new Set(['0#0']) })
    await decideApproval(engine.ctx, run, approvalIdOf({ sessionId: lead.sessionId, n: 0, index: 0 }), {
      decision: 'approve',
      by: null,
    })
    await engine.invoker.drain()
    expect(await again(run)).toMatchObject({ status: 'completed', sessions: 3 })
  })

  test('asks about a hundred calls of one answer at most', async () => {
    const calls = Array.from({ length: 120 }, () => ({ tool: 'think', args: { thought: 'hm' } }))
    const many = scriptedTeam('many', [
      { agent: agent('root', { toolsets: ['think'] }), steps: [{ calls }, { text: 'end' }] },
    ])
    engine = testEngine({ table: memoryTable(), teams: [{ ...many, permissions: { ask: ['*'] } }], clock })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'many', input: 'go' })
    await engine.invoker.drain()
    expect((await header(run)).asks.size).toBe(100)
    for (const { index } of await asked(run)) await say(run, index, 'approve')
    await engine.invoker.drain()
    expect((await results(run)).filter(([, isError]) => isError)).toHaveLength(20)
    expect(await again(run)).toMatchObject({ status: 'completed' })
  })
})

/** A table on which the process dies at the `at`th write, before it or behind it (its answer is lost). */
function dying(at: number, how: 'before' | 'after') {
  let count = 0
  const dies = async <T>(apply: () => Promise<T>): Promise<T> => {
    if (++count === at && how === 'before') throw new Error('the process is gone')
    const result = await apply()
    if (count >= at) throw new Error('the process is gone')
    return result
  }
  const on: TableClient = {
    ...table,
    put: (r) => dies(() => table.put(r)),
    update: (r) => dies(() => table.update(r)),
  }
  return { ctx: ctx(on), count: () => count }
}

describe.each(['before', 'after'] as const)('where a process dies %s any of its writes', (how) => {
  test('a decision reaches its session: when it is made again, or by the sweep', async () => {
    let decided = 0
    for (let at = 1; ; at++) {
      const run = await open()
      await say(run, 0, 'approve')
      const attempt = dying(at, how)
      // the event of whoever dies is lost with him
      engine.lose = () => true
      await say(run, 2, 'approve', {}, attempt.ctx).catch(() => undefined)
      engine.lose = () => false
      if (attempt.count() < at) break
      if ((await asked(run))[1]!.decision) {
        // nobody comes again
        decided++
        ahead += 5 * MINUTE
        await due()
        await engine.invoker.drain()
        expect([at, (await again(run)).status]).toEqual([at, 'completed'])
      }
      await say(run, 2, 'approve')
      await engine.invoker.drain()
      expect([at, (await again(run)).status]).toEqual([at, 'completed'])
    }
    expect(decided).toBe(how === 'before' ? 2 : 3)
  })

  test('a session that was about to lie down lies down, and asks no twice', async () => {
    let at = 1
    for (; ; at++) {
      await engine?.invoker.close()
      table = memoryTable()
      engine = testEngine({ table, teams: [crew(ASKS)], clock })
      engine.lose = () => true
      const run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', input: 'go' })
      const attempt = dying(at, how)
      const invocation = { deadlineAt: clock.now() + 900_000 }
      await runSession({ ...attempt.ctx, invoker: engine.ctx.invoker }, root(run), invocation).catch(() => undefined)
      if (attempt.count() < at) break
      ahead += 5 * MINUTE
      await runSession(engine.ctx, root(run), { deadlineAt: clock.now() + 900_000 })
      expect([at, await header(run)]).toMatchObject([at, { status: 'waiting' }])
      engine.lose = () => false
      const open = await asked(run)
      expect([at, open.map((a) => a.index)]).toEqual([at, [0, 2]])
      for (const { n, index } of open) await say(run, index, 'approve', {}, engine.ctx, n)
      await engine.invoker.drain()
      expect([at, (await again(run)).status]).toEqual([at, 'completed'])
    }
    expect(at).toBeGreaterThan(5)
  })
})

test('what is decided before the session lies down wakes it', async () => {
  engine = testEngine({ table: memoryTable(), teams: [crew(ASKS)], clock })
  engine.lose = () => true
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', input: 'go' })
  const { store } = engine.ctx
  const early = {
    ...engine.ctx,
    store: {
      ...store,
      async suspend(...args: Parameters<typeof store.suspend>) {
        for (const index of [0, 2]) await say(run, index, 'approve')
        return store.suspend(...args)
      },
    },
  }
  engine.lose = () => false
  await runSession(early, root(run), { deadlineAt: clock.now() + 900_000 })
  await engine.invoker.drain()
  expect(await again(run)).toMatchObject({ status: 'completed', sessions: 3 })
})

describe('what comes late changes nothing about what a session was asked: it is closed before the session ends', () => {
  /** Holds what a write of a question does until it is let go. */
  function late(method: 'put' | 'update') {
    const [held, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const hold = async <T>({ sk }: { sk?: unknown }, apply: () => Promise<T>): Promise<T> => {
      if (!String(sk).startsWith('ASK#')) return apply()
      held.resolve()
      await letGo.promise
      return apply()
    }
    const on: TableClient = {
      ...table,
      ...(method === 'put'
        ? { put: (r) => hold(r.item, () => table.put(r)) }
        : { update: (r) => hold(r.key, () => table.update(r)) }),
    }
    return { ctx: { ...ctx(on), invoker: engine.ctx.invoker }, held: held.promise, letGo: letGo.resolve }
  }

  test('a decision', async () => {
    const run = await open()
    const { ctx, held, letGo } = late('update')
    const decision = say(run, 0, 'approve', {}, ctx)
    await held
    await cancelRun(engine.ctx, run)
    await engine.invoker.drain()
    const before = await asked(run)
    expect(before.map((a) => [a.index, a.askedAt !== null, a.closedAt !== null])).toEqual([
      [0, true, true],
      [2, true, true],
    ])
    letGo()
    await expect(decision).rejects.toMatchObject({ code: 'approval_closed' })
    expect(await asked(run)).toEqual(before)
  })

  test('a question of a driver that has lost the session', async () => {
    table = memoryTable()
    engine = testEngine({ table, teams: [crew(ASKS)], clock })
    engine.lose = () => true
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', input: 'go' })
    const { ctx, held, letGo } = late('put')
    const lost = runSession(ctx, root(run), { deadlineAt: clock.now() + 900_000 })
    await held
    ahead += 5 * MINUTE
    await cancelRun(engine.ctx, run)
    await runSession(engine.ctx, root(run), { deadlineAt: clock.now() + 900_000 })
    expect(await again(run)).toMatchObject({ status: 'cancelled' })
    const before = await asked(run)
    expect(before.map((a) => [a.index, a.nth, a.of, a.askedAt])).toEqual([
      [0, 0, 2, null],
      [2, 1, 2, null],
    ])
    letGo()
    await lost
    expect(await asked(run)).toEqual(before)
    await expect(say(run, 0, 'approve')).rejects.toMatchObject({ code: 'unknown_approval' })
  })
})

test('a sweep that looked before a decision does not put the run off', async () => {
  const run = await open()
  await say(run, 0, 'approve')
  const { store } = engine.ctx
  const seen = await again(run)
  await say(run, 2, 'approve')
  expect(await store.pushDue(run, seen, seen.dueAt! + APPROVAL_WAIT_MS)).toMatchObject({ written: false })
})

test('a session that was woken, and whose event was lost, is woken again soon', async () => {
  const run = await open()
  await say(run, 0, 'approve')
  engine.lose = () => true
  await say(run, 2, 'approve')
  for (let i = 0; i < 2; i++) {
    ahead += 5 * MINUTE
    await due()
  }
  engine.lose = () => false
  ahead += 5 * MINUTE
  await due()
  await engine.invoker.drain()
  expect(await again(run)).toMatchObject({ status: 'completed' })
})
