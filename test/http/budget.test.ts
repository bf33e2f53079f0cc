import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatUsd, parseUsd } from '../../src/domain/money.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { type Answer, type Api, openApi } from './api.ts'

const model = {
  cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
  maxTokens: 30_000,
  minTokens: 30_000,
}
const slow = scriptedTeam('slow', [
  { agent: agent('worker'), steps: [{ text: 'ok', usage: { input: 1, output: 30_000 }, delayMs: 150 }], model },
])
const unpriced = scriptedTeam('unpriced', [{ agent: agent('root'), steps: [{ text: 'ok' }] }])
const { cost: _, ...withoutPrice } = unpriced.models.root!

let api: Api
beforeAll(() => {
  api = openApi({ teams: [slow, { ...unpriced, models: { root: withoutPrice } }] })
})
afterAll(() => api.close())

const put = <T>(runId: string, body: object): Promise<Answer<T>> =>
  api.send(`/v1/runs/${runId}/budget`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }) as unknown as Promise<Answer<T>>
const tasks = Array.from({ length: 6 }, (_, i) => ({ agent: 'worker', task: `task ${i}` }))
const look = async (runId: string) => (await api.get<RunView>(`/v1/runs/${runId}`)).body

function expectWhole(run: RunView): void {
  const { usd, heldUsd, availableUsd } = run.budget!
  const parts = [run.costUsd, run.unknown.costUsd, heldUsd!, availableUsd!].map(parseUsd)
  expect(formatUsd(parts.reduce((a, b) => a + b))).toBe(usd)
  expect(parseUsd(heldUsd!)).toBeGreaterThanOrEqual(0n)
}

describe('the budget of a run', () => {
  test('adds up at every look, and raised in the middle of a fan-out it lets the rest go on', async () => {
    const started = await api.post<RunView>('/v1/runs', { team: 'slow', tasks, budget: { usd: '0.60' } })
    expect(started).toMatchObject({ status: 202, body: { budget: { usd: '0.6', availableUsd: '0.6', heldUsd: '0' } } })
    const { runId } = started.body
    for (let raised = false; ; ) {
      const run = await look(runId)
      expectWhole(run)
      if (run.status !== 'running') break
      if (!raised && run.sessions!.running > 1) {
        raised = true
        const answer = await put<RunView>(runId, { usd: 2 })
        expect(answer).toMatchObject({ status: 200, body: { budget: { usd: '2' } } })
      }
      await new Promise((r) => setTimeout(r, 10))
    }
    await api.invoker.drain()
    const ended = await look(runId)
    expect(ended).toMatchObject({ status: 'completed', costUsd: '1.8', usage: { calls: 6 } })
    expect(ended.budget).toEqual({
      usd: '2',
      tokens: null,
      heldUsd: '0',
      availableUsd: '0.2',
      warnedAt: expect.any(String),
    })
  })

  test('that is out lets the run wait, and of a list of tasks those that were refused are tried again', async () => {
    const poor = await api.run({ team: 'slow', tasks, budget: { usd: '0.70', tokens: 1_000_000 } })
    expect(poor).toMatchObject({ status: 'waiting', stopReason: 'budget', finishedAt: null, usage: { calls: 2 } })
    expect(poor.budget).toEqual({
      usd: '0.7',
      tokens: 1_000_000,
      heldUsd: '0',
      availableUsd: '0.1',
      warnedAt: expect.any(String),
    })
    expect((await put<RunView>(poor.runId, { usd: '1.80' })).body).toMatchObject({ status: 'running', round: 2 })
    await api.invoker.drain()
    expect(await look(poor.runId)).toMatchObject({ status: 'completed', usage: { calls: 6 }, costUsd: '1.8' })
  })

  test('in USD is refused where a model has no price: which one, and what to do', async () => {
    const body = { team: 'unpriced', input: 'x', budget: { usd: '1' } }
    expect(await api.post('/v1/runs', body)).toMatchObject({
      status: 400,
      body: { code: 'unpriced_model', detail: expect.stringMatching(/"root".*Give the model a "cost"/) },
    })
  })

  test('of a run that is not there, or was started without one, cannot be set', async () => {
    expect(await put('0'.repeat(26), { usd: '1' })).toMatchObject({ status: 404, body: { code: 'unknown_run' } })
    const free = await api.run({ team: 'slow', tasks: tasks.slice(0, 1) })
    expect(free.budget).toBeNull()
    expect(await put(free.runId, { usd: '1' })).toMatchObject({ status: 400, body: { code: 'bad_request' } })
    expect(await put(free.runId, {})).toMatchObject({ status: 400, body: { code: 'bad_request' } })
  })
})
