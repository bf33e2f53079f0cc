import { describe, expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import type { Run } from '../../src/domain/run.ts'
import type { SessionHeader } from '../../src/domain/session.ts'
import { addInput } from '../../src/engine/add-input.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { changeBudget } from '../../src/engine/change-budget.ts'
import { retryRun } from '../../src/engine/retry-run.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweepRun } from '../../src/engine/sweep-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'

const REFUSED = { steps: [{ error: { class: 'invalid_request', message: 'not today' } }] }
const worker = { agent: agent('worker'), steps: [{ text: 'done: {task}', usage: { input: 10, output: 5 } }] }
const list = scriptedTeam('crew', [worker])

/** An engine whose model refuses every prompt that holds one of the texts in `broken`. */
function engineOf(team = list): TestEngine & { readonly broken: Set<string> } {
  const engine = testEngine({ table: memoryTable(), teams: [team] })
  const broken = new Set<string>()
  const { model } = engine.ctx
  const call: typeof model.call = (request) => {
    const refused = [...broken].some((text) => JSON.stringify(request.messages).includes(text))
    return model.call(refused ? { ...request, definition: { ...request.definition, options: REFUSED } } : request)
  }
  Object.assign(engine.ctx, { model: { call } })
  return { ...engine, broken }
}

const tasksOf = (count: number) => Array.from({ length: count }, (_, i) => ({ agent: 'worker', task: `task <${i}>` }))

async function tasksOfRun({ ctx }: TestEngine, run: Run): Promise<SessionHeader[]> {
  return (await ctx.store.getRunWithSessions(run)).headers.filter((h) => h.kind === 'task')
}
/** How each session of each task has ended, by its place in the list, in the order of the rounds. */
async function endsOf(engine: TestEngine, run: Run): Promise<{ [place: number]: string[] }> {
  const ends: { [place: number]: string[] } = {}
  const headers = await tasksOfRun(engine, run)
  for (const h of headers.toSorted((a, b) => a.round - b.round)) (ends[h.via.index] ??= []).push(h.status)
  return ends
}

describe('a list of tasks', () => {
  async function failedList(count: number, ...failing: number[]) {
    const engine = engineOf()
    for (const i of failing) engine.broken.add(`<${i}>`)
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', tasks: tasksOf(count) })
    await engine.invoker.drain()
    return { engine, run }
  }

  test('tries those again that have failed, and no other', async () => {
    const { engine, run } = await failedList(5, 1, 3)
    engine.broken.clear()
    expect(await retryRun(engine.ctx, run)).toMatchObject({ status: 'running', round: 2 })
    await engine.invoker.drain()
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2, sessions: 8 })
    expect(await endsOf(engine, run)).toEqual({
      0: ['completed'],
      1: ['failed', 'completed'],
      2: ['completed'],
      3: ['failed', 'completed'],
      4: ['completed'],
    })
    await expectBalanced(engine.ctx.store, run, engine.scripted)
    await expect(retryRun(engine.ctx, run)).rejects.toMatchObject({ code: 'nothing_to_retry' })
  })

  test('tries only those that are named, by any of their sessions, until they are completed', async () => {
    const { engine, run } = await failedList(4, 1, 3)
    const [first] = (await tasksOfRun(engine, run)).filter((h) => h.via.index === 3)
    await retryRun(engine.ctx, run, [first!.sessionId])
    await engine.invoker.drain()
    engine.broken.clear()
    await retryRun(engine.ctx, run, [first!.sessionId])
    await engine.invoker.drain()
    expect(await endsOf(engine, run)).toMatchObject({ 1: ['failed'], 3: ['failed', 'failed', 'completed'] })
    await expect(retryRun(engine.ctx, run, [first!.sessionId])).rejects.toMatchObject({ code: 'nothing_to_retry' })
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })

  test('of more than a hundred goes through new groups for those hundreds that have some', async () => {
    const { engine, run } = await failedList(230, 7, 8, 220)
    engine.broken.clear()
    await retryRun(engine.ctx, run)
    await engine.invoker.drain()
    const { headers } = await engine.ctx.store.getRunWithSessions(run)
    const groups = headers.filter((h) => h.kind === 'group' && h.round === 2)
    expect(groups.map((h) => h.via.index).sort((a, b) => a - b)).toEqual([0, 200])
    const ends = await endsOf(engine, run)
    expect(Object.values(ends).filter((e) => e.length > 1)).toHaveLength(3)
    expect(Object.values(ends).every((e) => e.at(-1) === 'completed')).toBe(true)
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  }, 30_000)

  test('that was cancelled before it began makes all its sessions in the next round', async () => {
    const engine = engineOf()
    engine.lose = () => true
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'crew', tasks: tasksOf(3) })
    await cancelRun(engine.ctx, run)
    engine.lose = () => false
    await retryRun(engine.ctx, run)
    await engine.invoker.drain()
    expect(await endsOf(engine, run)).toEqual({ 0: ['completed'], 1: ['completed'], 2: ['completed'] })
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2 })
  })

  test('refuses sessions that are none of its tasks, and names them', async () => {
    const { engine, run } = await failedList(2, 1)
    const root = rootSessionId(run.runId)
    const refused = retryRun(engine.ctx, run, [(await tasksOfRun(engine, run))[0]!.sessionId, root, 'nobody'])
    await expect(refused).rejects.toMatchObject({
      code: 'bad_request',
      issues: [{ path: '/sessions/1', message: expect.stringContaining(root) }, { path: '/sessions/2' }],
    })
  })

  test('that has no place left in its tenant is refused, and nothing has changed', async () => {
    const { engine, run } = await failedList(2, 1)
    Object.assign(engine.ctx.store, { takePlace: async () => ({ taken: false, places: [] }) })
    await expect(retryRun(engine.ctx, run)).rejects.toMatchObject({ code: 'too_many_runs' })
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 1 })
  })
})

describe('a run from an input', () => {
  const solo = (steps: readonly object[]) => scriptedTeam('solo', [{ agent: agent('root'), steps }])
  async function ran(engine: TestEngine, team: string) {
    const run = await startRun(engine.ctx, { tenant: 'local', team, input: 'first' })
    await engine.invoker.drain()
    const rootRef = { tenant: 'local', runId: run.runId, sessionId: rootSessionId(run.runId) }
    return { run, rootRef }
  }

  test('that has failed goes on where it stopped, without a new input and without a call made twice', async () => {
    const engine = engineOf(
      solo([
        { calls: [{ tool: 'think', args: { thought: 'hm' } }] },
        { error: { class: 'invalid_request', message: 'not today', times: 1 }, text: 'heard: {input}' },
      ]),
    )
    const { run, rootRef } = await ran(engine, 'solo')
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'failed' })
    expect(await retryRun(engine.ctx, run)).toMatchObject({ status: 'running', round: 2, inputRound: 1 })
    await engine.invoker.drain()
    const log = await engine.ctx.store.readLog(rootRef)
    expect([...log.responses.values()].map((r) => r.outcome)).toEqual(['accepted', 'failed', 'accepted'])
    expect(log.responses.get([...log.responses.keys()].at(-1)!)!.message!.content).toBe('heard: first')
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2, sessions: 1 })
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })

  test('that was cancelled while a child worked goes on with what became of the child', async () => {
    const team = scriptedTeam('pair', [
      {
        agent: agent('root', { subAgents: ['worker'] }),
        steps: [
          { calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'x' } }] },
          { text: 'heard: {last}' },
        ],
      },
      { agent: agent('worker'), steps: [{ text: 'late', delayMs: 60_000 }] },
    ])
    const engine = engineOf(team)
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'pair', input: 'first' })
    await new Promise((r) => setTimeout(r, 50))
    await cancelRun(engine.ctx, run)
    await engine.invoker.drain()
    await retryRun(engine.ctx, run)
    await engine.invoker.drain()
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2, sessions: 2 })
    const log = await engine.ctx.store.readLog({ ...run, sessionId: rootSessionId(run.runId) })
    expect([...log.responses.values()].at(-1)!.message!.content).toContain('did not complete the task')
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })

  test('whose input was never asked asks it now', async () => {
    const engine = engineOf(solo([{ text: 'heard: {input}' }]))
    const { run, rootRef } = await ran(engine, 'solo')
    engine.lose = () => true
    await addInput(engine.ctx, run, 'second')
    await cancelRun(engine.ctx, run)
    engine.lose = () => false
    await sweepRun(engine.ctx, run)
    await engine.invoker.drain()
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'cancelled', round: 2 })
    await retryRun(engine.ctx, run)
    await engine.invoker.drain()
    const log = await engine.ctx.store.readLog(rootRef)
    expect([...log.responses.values()].map((r) => r.message?.content)).toEqual(['heard: first', 'heard: second'])
  })

  test('whose last answer was refused is asked the same once more', async () => {
    const engine = engineOf(solo([{ text: 'no', finish: 'refusal' }]))
    const { run, rootRef } = await ran(engine, 'solo')
    for (const round of [2, 3]) {
      expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'failed', stopReason: 'refusal' })
      await retryRun(engine.ctx, run)
      await engine.invoker.drain()
      const asked = [...(await engine.ctx.store.readLog(rootRef)).requests.values()].filter((r) => r.round === round)
      expect(asked.flatMap((r) => r.messages)).toEqual([{ role: 'user', content: 'first' }])
    }
  })

  test('is refused while it runs, when it was completed, with sessions, and when it is not there', async () => {
    const engine = engineOf(solo([{ text: 'heard: {input}' }]))
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'first' })
    await expect(retryRun(engine.ctx, run)).rejects.toMatchObject({ code: 'run_active' })
    await engine.invoker.drain()
    await expect(retryRun(engine.ctx, run)).rejects.toMatchObject({ code: 'nothing_to_retry' })
    await expect(retryRun(engine.ctx, run, ['x'])).rejects.toMatchObject({ code: 'bad_request' })
    await expect(retryRun(engine.ctx, { ...run, tenant: 'other' })).rejects.toMatchObject({ code: 'unknown_run' })
  })

  test('that waits for its budget is to have it raised instead', async () => {
    const engine = engineOf(solo([{ text: 'heard: {input}' }]))
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'solo', input: 'x', budget: { usd: '0.000001' } })
    await engine.invoker.drain()
    await expect(retryRun(engine.ctx, run)).rejects.toThrow(/raise it/)
    await changeBudget(engine.ctx, run, { usd: '1' })
    await engine.invoker.drain()
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2 })
  })

  test('of two retries at once exactly one opens the round', async () => {
    const engine = engineOf(solo([{ error: { class: 'invalid_request', message: 'x', times: 1 }, text: 'ok' }]))
    const { run } = await ran(engine, 'solo')
    const results = await Promise.allSettled([1, 2, 3].map(() => retryRun(engine.ctx, run)))
    await engine.invoker.drain()
    expect(results.filter((r) => r.status === 'fulfilled')).toHaveLength(1)
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2 })
  })

  test('a follow-up input after a retry opens the round after it', async () => {
    const engine = engineOf(solo([{ error: { class: 'invalid_request', message: 'x', times: 1 }, text: 'ok {input}' }]))
    const { run, rootRef } = await ran(engine, 'solo')
    await retryRun(engine.ctx, run)
    await engine.invoker.drain()
    expect(await addInput(engine.ctx, run, 'next')).toMatchObject({ round: 3, inputRound: 3 })
    await engine.invoker.drain()
    const log = await engine.ctx.store.readLog(rootRef)
    expect([...log.responses.values()].map((r) => r.message?.content)).toEqual([undefined, 'ok first', 'ok next'])
  })
})
