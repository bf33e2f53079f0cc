import { describe, expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import { addInput } from '../../src/engine/add-input.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweepRun } from '../../src/engine/sweep-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'

const talker = (steps: readonly object[] = [{ text: 'I heard: {input}', usage: { input: 10, output: 5 } }]) =>
  scriptedTeam('talk', [
    { agent: agent('root', { subAgents: ['worker'] }), steps },
    { agent: agent('worker'), steps: [{ text: 'x' }] },
  ])

async function started(team = talker()) {
  const engine = testEngine({ table: memoryTable(), teams: [team] })
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'talk', input: 'first' })
  const rootRef = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
  return { ...engine, run, rootRef }
}

describe('a follow-up input', () => {
  test('opens a new round with the whole conversation before it', async () => {
    const { ctx, run, invoker, rootRef, scripted } = await started()
    await invoker.drain()
    const again = await addInput(ctx, run, 'second')
    expect(again).toMatchObject({ status: 'running', round: 2 })
    await invoker.drain()
    const log = await ctx.store.readLog(rootRef)
    expect([...log.responses.values()].map((r) => r.message?.content)).toEqual(['I heard: first', 'I heard: second'])
    expect(await ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2, sessions: 1 })
    await expectBalanced(ctx.store, run, scripted)
  })

  test('is refused while the run goes on, for a list of tasks, when empty, and for a run that is not there', async () => {
    const { ctx, run, invoker } = await started()
    await expect(addInput(ctx, run, 'too early')).rejects.toMatchObject({ code: 'run_active' })
    await invoker.drain()
    await expect(addInput(ctx, run, '  ')).rejects.toMatchObject({ code: 'bad_request' })
    await expect(addInput(ctx, { ...run, runId: '0'.repeat(26) }, 'x')).rejects.toMatchObject({ code: 'unknown_run' })
    await expect(addInput(ctx, { ...run, tenant: 'other' }, 'x')).rejects.toMatchObject({ code: 'unknown_run' })
    const list = await startRun(ctx, { tenant: 'local', team: 'talk', tasks: [{ agent: 'worker', task: 'x' }] })
    await invoker.drain()
    await expect(addInput(ctx, list, 'x')).rejects.toMatchObject({ code: 'bad_request' })
  })

  test('of two at once exactly one opens the round, with its own text', async () => {
    const { ctx, run, invoker, rootRef } = await started()
    await invoker.drain()
    const results = await Promise.allSettled(['a', 'b', 'c'].map((t) => addInput(ctx, run, t)))
    await invoker.drain()
    expect(results.filter((r) => r.status === 'fulfilled')).toHaveLength(1)
    const winner = ['a', 'b', 'c'][results.findIndex((r) => r.status === 'fulfilled')]
    const log = await ctx.store.readLog(rootRef)
    expect(log.responses.get(1)?.message?.content).toBe(`I heard: ${winner}`)
    expect(log.responses.size).toBe(2)
  })

  test('after a round that was cancelled in the middle of a tool call has an error result for that call first', async () => {
    const delegating = talker([
      { when: { contains: 'first' }, calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'x' } }] },
      { text: 'I heard: {input}' },
    ])
    const { ctx, run, rootRef, invoker } = await started({
      ...delegating,
      models: {
        ...delegating.models,
        worker: { ...delegating.models.worker!, options: { steps: [{ text: 'late', delayMs: 60_000 }] } },
      },
    })
    await new Promise((r) => setTimeout(r, 50))
    await cancelRun(ctx, run)
    await invoker.drain()
    expect(await ctx.store.getRun(run)).toMatchObject({ status: 'cancelled' })
    await addInput(ctx, run, 'and now?')
    await invoker.drain()
    const log = await ctx.store.readLog(rootRef)
    const opening = [...log.requests.values()].find((r) => r.round === 2 && r.intent)!
    expect(opening.messages.map((m) => [m.role, 'isError' in m && m.isError])).toEqual([
      ['tool', true],
      ['user', false],
    ])
    expect(await ctx.store.getRun(run)).toMatchObject({ status: 'completed', stop: null, cancelRequestedAt: null })
  })

  test('whose caller died between its two writes is finished by the sweep', async () => {
    const { ctx, run, invoker } = await started()
    await invoker.drain()
    await ctx.store.putInput(run, 2, 'half-way-there-00', { input: 'second' })
    const now = ctx.clock.now()
    await ctx.store.openRound(run, { seenRound: 1, inputRef: 'half-way-there-00', dueAt: now, now })
    await sweepRun(ctx, run)
    await invoker.drain()
    expect(await ctx.store.getRun(run)).toMatchObject({ status: 'completed', round: 2 })
  })
})
