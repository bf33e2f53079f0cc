/** Failures that others met in their books: money counted twice, totals of whoever is active, spend of failures lost. */
import { afterEach, describe, expect, test } from 'vitest'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import { formatUsd } from '../../src/domain/money.ts'
import { NO_USAGE } from '../../src/domain/usage.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { createApp } from '../../src/http/app.ts'
import type { CallView } from '../../src/http/views/call.ts'
import type { SpendReport } from '../../src/http/views/report.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'
import type { Clock, ModelResult } from '../../src/ports.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { A } from '../../src/store/table.ts'
import { systemClock } from '../../src/system.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { dynaliteTable, type TestTable } from '../support/tables.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const transfer = (name: string, usage: object) => ({
  calls: [{ tool: 'transfer_task', args: { agent: name, task: `for ${name}` } }],
  usage,
})

/** Reads as a client does. */
const reader = (engine: TestEngine) => {
  const app = createApp(engine.ctx, { tenantOf: () => 'local' })
  return async <T>(path: string): Promise<T> => (await (await app.request(path)).json()) as T
}

describe('A1: a child session saved twice', () => {
  test('one item for the child, under its parent; one session at the top; each dollar once', async () => {
    const team = scriptedTeam('pair', [
      {
        agent: agent('p', { subAgents: ['c'] }),
        steps: [transfer('c', { input: 200, output: 20 }), { text: 'done', usage: { input: 300, output: 30 } }],
      },
      { agent: agent('c'), steps: [{ text: 'answer', usage: { input: 100, output: 50 } }] },
    ])
    const table = memoryTable()
    const engine = testEngine({ table, teams: [team] })
    const get = reader(engine)
    const { runId } = await startRun(engine.ctx, { tenant: 'local', team: 'pair', input: 'go' })
    await engine.invoker.drain()

    const parent = rootSessionId(runId)
    const child = childSessionId(parent, 0)
    const { messages } = await get<{ messages: { role: string }[] }>(`/v1/runs/${runId}/sessions/${child}/messages`)
    expect(messages.filter((m) => m.role !== 'system').map((m) => m.role)).toEqual(['user', 'assistant'])
    expect(table.items().filter((item) => String(item[A.sk]).includes(`SESSION#${child}`))).toHaveLength(1)
    const { sessions } = await get<{ sessions: SessionView[] }>(`/v1/runs/${runId}/sessions`)
    expect(sessions.filter((s) => s.parentSessionId === null).map((s) => s.sessionId)).toEqual([parent])
    expect(sessions.find((s) => s.sessionId === child)?.parentSessionId).toBe(parent)
    expect((await get<{ runs: RunView[] }>('/v1/runs')).runs).toHaveLength(1)

    // 200 + 300 + 100 input tokens at 3, 20 + 30 + 50 output tokens at 15
    const stored = table.items().reduce((sum, item) => sum + BigInt((item[A.cost] as number | undefined) ?? 0), 0n)
    const run = await get<RunView>(`/v1/runs/${runId}`)
    const report = await get<SpendReport>('/v1/usage')
    expect([formatUsd(stored), run.costUsd, report.total.costUsd]).toEqual(['0.0033', '0.0033', '0.0033'])
    await engine.invoker.close()
  })
})

describe('A2: totals that follow whichever agent is active', () => {
  test('3100/310 for the run and 100/10 for the one that leads, at every switch what has been spent by then', async () => {
    const SECOND = 1_000
    const clock = createVirtualClock()
    const slow = { delayMs: 10 * SECOND }
    const team = scriptedTeam('three', [
      {
        agent: agent('root', { subAgents: ['a', 'b'] }),
        steps: [
          { ...transfer('a', { input: 50, output: 5 }), ...slow },
          { ...transfer('b', { input: 30, output: 3 }), ...slow },
          { text: 'done', usage: { input: 20, output: 2 }, ...slow },
        ],
      },
      { agent: agent('a'), steps: [{ text: 'a', usage: { input: 1_000, output: 100 }, ...slow }] },
      { agent: agent('b'), steps: [{ text: 'b', usage: { input: 2_000, output: 200 }, ...slow }] },
    ])
    const engine = testEngine({ table: memoryTable(), teams: [team], clock })
    const get = reader(engine)
    const { runId } = await startRun(engine.ctx, { tenant: 'local', team: 'three', input: 'go' })
    const tokens = ({ usage }: Pick<RunView, 'usage'>) => `${usage.inputTokens}/${usage.outputTokens}`
    const seen: string[][] = []
    // in the middle of each call: root, a, root, b, root; and when all is over
    for (let i = 0; i < 6; i++) {
      await clock.advance(i === 0 ? 5 * SECOND : 10 * SECOND)
      const run = await get<RunView>(`/v1/runs/${runId}?exact=true`)
      const { sessions } = await get<{ sessions: SessionView[] }>(`/v1/runs/${runId}/sessions`)
      const active = sessions.filter((s) => s.status === 'running').map((s) => s.agent ?? '')
      seen.push([active.join(), tokens(run)])
    }
    expect(seen).toEqual([
      ['root', '0/0'],
      ['a', '50/5'],
      ['root', '1050/105'],
      ['b', '1080/108'],
      ['root', '3080/308'],
      ['', '3100/310'],
    ])
    const root = await get<SessionView>(`/v1/runs/${runId}/sessions/${rootSessionId(runId)}`)
    expect([tokens(root), tokens(root.subtree)]).toEqual(['100/10', '3100/310'])
    expect(tokens(await get<RunView>(`/v1/runs/${runId}`))).toBe('3100/310')
    await engine.invoker.close()
  })
})

/** An engine whose model says these results, one after the other. */
function engineSaying(
  table: TestTable['table'],
  results: readonly Partial<ModelResult>[],
  clock: Clock = systemClock,
): TestEngine {
  const team = scriptedTeam('one', [{ agent: agent('root', { toolsets: ['think'] }), steps: [{ text: 'x' }] }])
  const cheap = { ...team.models.root!, cost: { input: '0.2', output: '0.2' } }
  const engine = testEngine({ table, teams: [{ ...team, models: { root: cheap } }], clock })
  const left = [...results]
  const base = { finishReason: 'stop', usage: NO_USAGE, usageSource: 'reported' } as const
  Object.assign(engine.ctx, { model: { call: async () => ({ ...base, ...left.shift()! }) } })
  return engine
}

const of = (inputTokens: number, outputTokens: number) => ({ usage: { ...NO_USAGE, inputTokens, outputTokens } })

describe('A13: all attempts fail, and what they cost is lost', () => {
  test('an error session with 1,530 in, 145 out and three calls', async () => {
    const invalid = { class: 'incomplete', message: 'the answer does not fit its schema' } as const
    const clock = createVirtualClock(Date.now())
    const attempts = [
      { ...of(500, 40), failure: invalid },
      { ...of(510, 45), failure: invalid },
      { ...of(520, 60), failure: { ...invalid, class: 'invalid_request' } },
    ] as const
    const engine = engineSaying(memoryTable(), attempts, clock)
    const get = reader(engine)
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'one', input: 'go' })
    await clock.advance(60_000)
    const shown = await get<RunView>(`/v1/runs/${run.runId}`)
    expect(shown).toMatchObject({ status: 'failed', error: { code: 'invalid_request' }, waste: { calls: 3 } })
    const session = await get<SessionView>(`/v1/runs/${run.runId}/sessions/${rootSessionId(run.runId)}`)
    for (const { usage } of [shown, session]) {
      expect([usage.calls, usage.inputTokens, usage.outputTokens]).toEqual([3, 1_530, 145])
    }
    const { total } = await get<SpendReport>('/v1/usage')
    expect([total.usage.calls, total.usage.inputTokens, total.usage.outputTokens]).toEqual([3, 1_530, 145])
    await expectBalanced(engine.ctx.store, run)
  })
})

describe('on a real client of the table', () => {
  let place: TestTable
  let engine: TestEngine
  afterEach(async () => {
    await engine.invoker.close()
    await place.close()
  })

  test('D11: a cost of 2e-7, and numbers in a tool call that no float holds', async () => {
    place = await dynaliteTable()
    const texts = ['{"thought": "x", "n": 1.23e40, "m": 9007199254740993}', '{"thought": NaN}', '{"thought": "y"}']
    const call = (text: string, i: number) => ({ id: `c${i}`, name: 'think', arguments: text })
    engine = engineSaying(place.table, [
      {
        ...of(1, 0),
        message: { role: 'assistant', content: '', toolCalls: texts.map(call) },
        finishReason: 'tool_calls',
      },
      { ...of(0, 1), message: { role: 'assistant', content: 'done', toolCalls: [] } },
    ])
    const get = reader(engine)
    const run = await startRun(engine.ctx, { tenant: 'local', team: 'one', input: 'go' })
    await engine.invoker.drain()
    const { calls } = await get<{ calls: CallView[] }>(`/v1/runs/${run.runId}/calls`)
    expect(calls.map((c) => c.costUsd)).toEqual(['0.0000002', '0.0000002'])
    expect(await get<RunView>(`/v1/runs/${run.runId}`)).toMatchObject({ status: 'completed', costUsd: '0.0000004' })
    expect((await get<SpendReport>('/v1/usage')).total.costUsd).toBe('0.0000004')
    const log = await engine.ctx.store.readLog({ ...run, sessionId: rootSessionId(run.runId) })
    const answer = log.responses.get(0)!
    expect(answer.message!.toolCalls.map((c) => c.arguments)).toEqual(texts)
    // the one that is no JSON is refused, and it alone
    const results = answer.results ?? log.requests.get(1)!.messages
    expect(results.map((m) => [m.role === 'tool' && m.isError === true, m.content])).toEqual([
      [false, 'Noted.'],
      [true, expect.stringContaining('not valid JSON')],
      [false, 'Noted.'],
    ])
  })

  test('D12: undefined wherever it may stand, from the request to the books', async () => {
    place = await dynaliteTable()
    engine = engineSaying(place.table, [
      {
        ...of(10, 5),
        responseId: undefined,
        rawUsage: undefined,
        answeredBy: undefined,
        message: { role: 'assistant', content: 'done', reasoning: undefined, toolCalls: [] },
      } as never,
    ])
    const run = await startRun(engine.ctx, {
      tenant: 'local',
      team: 'one',
      agent: undefined,
      input: undefined,
      tasks: [{ agent: 'root', task: 'x', expectedOutput: undefined }],
      maxConcurrency: undefined,
      tags: undefined,
      runId: undefined,
    })
    await engine.invoker.drain()
    expect(await engine.ctx.store.getRun(run)).toMatchObject({ status: 'completed', tags: {} })
    await expectBalanced(engine.ctx.store, run)
    for (const item of await place.items()) expect(Object.values(item)).not.toContain(undefined)
  })
})
