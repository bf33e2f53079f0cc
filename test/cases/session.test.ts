/** Failures that others met in sessions: results lost in a crash, half characters, limits ignored, late success. */
import { describe, expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import { cutBytes } from '../../src/domain/text.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { runSession } from '../../src/engine/run-session.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const MINUTE = 60_000

describe('E1 and E3: a crash after the answer, with its tools in the air', () => {
  test('finished siblings keep their results, only what is missing is done again, and the next request is valid', async () => {
    const clock = createVirtualClock()
    const team = scriptedTeam('desk', [
      {
        agent: agent('root', { subAgents: ['quick', 'slow'] }),
        steps: [
          {
            calls: [
              { tool: 'transfer_task', args: { agent: 'quick', task: 'a' } },
              { tool: 'transfer_task', args: { agent: 'slow', task: 'b' } },
              { tool: 'transfer_task', args: { agent: 'quick', task: 'c' } },
            ],
          },
          { text: 'done: {results}' },
        ],
      },
      { agent: agent('quick'), steps: [{ text: 'quick {task}' }] },
      { agent: agent('slow'), steps: [{ text: 'slow {task}', delayMs: 2 * MINUTE }] },
    ])
    const engine = testEngine({ table: memoryTable(), teams: [team], clock })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'desk', input: 'go' })
    const ref = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
    await clock.advance(MINUTE)
    // while it waits, duplicates of its event come: they find nothing to do
    for (let i = 0; i < 3; i++) await runSession(engine.ctx, ref, { deadlineAt: clock.now() + MINUTE })
    await clock.advance(3 * MINUTE)
    const log = await engine.ctx.store.readLog(ref)
    expect(log.requests.get(1)!.messages.map((m) => m.content)).toEqual(['quick a', 'slow b', 'quick c'])
    expect((await engine.ctx.store.getRun(run))!.status).toBe('completed')
    expect(engine.scripted.bill).toHaveLength(5)
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })
})

describe('E5: truncation in the middle of a character', () => {
  test.each([119, 120, 121, 122, 123])('a text cut to %i bytes is well-formed', (bytes) => {
    const cut = cutBytes('😀'.repeat(60), bytes)
    expect(cut.isWellFormed()).toBe(true)
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(bytes)
    expect(cut).toBe('😀'.repeat(Math.floor(bytes / 4)))
  })

  test('half a character that a model or a tool wrote does not make a session unreadable', async () => {
    const half = 'half of a smile: \ud83d'
    const team = scriptedTeam('desk', [
      {
        agent: agent('root', { subAgents: ['worker'] }),
        steps: [{ calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: half } }] }, { text: half }],
      },
      { agent: agent('worker'), steps: [{ text: half }] },
    ])
    const engine = testEngine({ table: memoryTable(), teams: [team] })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'desk', input: 'go' })
    await engine.invoker.drain()
    const { run: stored, headers } = await engine.ctx.store.getRunWithSessions(run)
    expect(stored!.status).toBe('completed')
    expect(headers.every((h) => (h.outputPreview ?? '').isWellFormed() && (h.taskPreview ?? '').isWellFormed())).toBe(
      true,
    )
  })
})

describe('F7: limits that are ignored', () => {
  const clockwork = async (of: object, steps: readonly object[], others: Parameters<typeof scriptedTeam>[1] = []) => {
    const engine = testEngine({
      table: memoryTable(),
      teams: [scriptedTeam('t', [{ agent: agent('root', of), steps }, ...others])],
    })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 't', input: 'go' })
    await engine.invoker.drain()
    return engine.ctx.store.getRunWithSessions(run)
  }

  test('a child with a limit of 10 turns takes 10, not 72', async () => {
    const thinking = {
      agent: agent('thinker', { toolsets: ['think'] as const, maxIterations: 10 }),
      steps: [{ calls: [{ tool: 'think', args: { thought: 'x' } }] }],
    }
    const { headers } = await clockwork(
      { subAgents: ['thinker'] },
      [{ calls: [{ tool: 'transfer_task', args: { agent: 'thinker', task: 'x' } }] }, { text: 'ok' }],
      [thinking],
    )
    const child = headers.find((h) => h.agent === 'thinker')!
    expect(child).toMatchObject({ status: 'failed', stopReason: 'max_iterations' })
    expect(child.rows[0]!.totals.calls).toBe(10)
  })

  test('547 planned children become 100', async () => {
    const { headers } = await clockwork(
      { subAgents: ['worker'], toolsets: ['background_agents'], atEnd: 'wait' },
      [
        { calls: [{ tool: 'run_background_agent', args: { agent: 'worker', task: '{i}' }, repeat: 547 }] },
        { text: 'ok' },
      ],
      [{ agent: agent('worker'), steps: [{ text: 'ok' }] }],
    )
    expect(headers.filter((h) => h.kind === 'background')).toHaveLength(100)
  })

  test('an agent that calls itself for ever ends at the fifth level', async () => {
    const { headers, run } = await clockwork({ subAgents: ['root'] }, [
      { calls: [{ tool: 'transfer_task', args: { agent: 'root', task: 'again' } }] },
      { text: 'ok' },
    ])
    expect(Math.max(...headers.map((h) => h.depth))).toBe(5)
    expect(run!.status).toBe('completed')
  })
})

describe('F10: the first terminal state wins, whichever it is', () => {
  const slow = scriptedTeam('slow', [
    { agent: agent('root'), steps: [{ text: 'done', delayMs: 1_000, usage: { input: 100, output: 50 } }] },
  ])

  test('a success that comes late does not overwrite cancelled, and its spend is booked', async () => {
    const clock = createVirtualClock()
    const engine = testEngine({ table: memoryTable(), teams: [slow], clock })
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'slow', input: 'go' })
    await clock.advance(500) // in the middle of the call, before the next look at stop
    await cancelRun(engine.ctx, run)
    await clock.advance(20_000)
    const stored = (await engine.ctx.store.getRun(run))!
    // the answer had been paid for and was in the log before anybody saw the stop: it counts, and it completed the session
    expect(['completed', 'cancelled']).toContain(stored.status)
    expect(stored.books.accepted ?? stored.books.failed).toMatchObject({ calls: 1, inputTokens: 100 })
    const again = await cancelRun(engine.ctx, run)
    expect(again.status).toBe(stored.status)
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })

  test('finishing a cancelled session is refused, and so is cancelling a completed run', async () => {
    const engine = testEngine({ table: memoryTable(), teams: [slow] })
    const quiet = { ...engine.ctx, invoker: { invoke: async () => {} } }
    const run = await startRun(quiet, { tenant: 'local', team: 'slow', input: 'go' })
    const ref = { tenant: run.tenant, runId: run.runId, sessionId: rootSessionId(run.runId) }
    await cancelRun(engine.ctx, run)
    const now = engine.ctx.clock.now()
    const late = { round: 1, status: 'completed', stopReason: 'end_turn', error: null, now } as const
    expect(
      await engine.ctx.store.finish(ref, { ...late, rows: [], unknowns: {}, finalTurn: 0, outputPreview: null }),
    ).toEqual({ written: false })
    expect(
      await engine.ctx.store.finishRun(run, { ...late, books: {}, sessions: 1, v: 0, reportedAt: now, dueAt: null }),
    ).toEqual({
      written: false,
    })
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'cancelled' })
  })
})

describe('D1: the write of a transcript fails', () => {
  test('status and cost are written even so', async () => {
    const clock = createVirtualClock()
    const team = scriptedTeam('t', [
      { agent: agent('root'), steps: [{ text: 'too much for the table', usage: { input: 100, output: 50 } }] },
    ])
    const engine = testEngine({ table: memoryTable(), teams: [team], clock })
    const { putResponse } = engine.ctx.store
    ;(engine.ctx.store as { putResponse: typeof putResponse }).putResponse = async (ref, slot, driver) => {
      if (slot.message) throw new Error('ValidationException: Item size has exceeded the maximum allowed size')
      return putResponse(ref, slot, driver)
    }
    const run = await startRun(engine.ctx, { tenant: 'local', team: 't', input: 'go' })
    await clock.advance(5 * MINUTE)
    const stored = (await engine.ctx.store.getRun(run))!
    expect(stored).toMatchObject({ status: 'failed', error: { code: 'store' } })
    expect(stored.books.failed).toMatchObject({ calls: 5, inputTokens: 500, outputTokens: 250 })
    await expectBalanced(engine.ctx.store, run, engine.scripted)
  })
})
