/** What a run may cost, over HTTP: nothing is started, nothing is written. */
import { afterAll, describe, expect, test } from 'vitest'
import type { Problem } from '../../src/http/problem.ts'
import type { EstimateView } from '../../src/http/views/estimate.ts'
import { desk, openApi } from './api.ts'

const api = openApi({ teams: [desk] })
afterAll(() => api.close())

const dry = <T = EstimateView>(body: object, query = '?dryRun=true') => api.post<T>(`/v1/runs${query}`, body)

describe('a dry run', () => {
  test('is answered with the estimate, and writes nothing', async () => {
    api.meter.reset()
    const { status, headers, body } = await dry({ team: 'desk', input: 'go' })
    expect([status, headers.get('location')]).toEqual([200, null])
    expect(body).toMatchObject({ team: 'desk', agent: 'root', tasks: null, unpriced: [], budget: null })
    expect(body.least).toMatchObject({ calls: 1, usd: expect.stringMatching(/^0\.0000\d+$/) })
    expect(body.agents.map((a) => [a.agent, a.firstCalls?.count ?? null, a.price?.source])).toEqual([
      ['root', 1, 'team file'],
      ['worker', null, 'team file'],
    ])
    const { puts, updates } = api.meter.snapshot()
    expect({ puts, updates, events: api.events }).toEqual({ puts: 0, updates: 0, events: [] })
    expect((await api.get<{ runs: unknown[] }>('/v1/runs')).body.runs).toEqual([])
  })

  test('leaves an Idempotency-Key free for the run itself', async () => {
    const key = { 'idempotency-key': 'one' }
    expect((await api.post('/v1/runs?dryRun=true', { team: 'desk', input: 'go' }, key)).status).toBe(200)
    expect((await api.post('/v1/runs?dryRun=false', { team: 'desk', input: 'other' }, key)).status).toBe(202)
    await api.invoker.drain()
  })

  test('says whether a budget covers a first call', async () => {
    const { body } = await dry({ team: 'desk', input: 'go', budget: { usd: '100', tokens: 10 } })
    expect(body.budget).toMatchObject({ usd: '100', tokens: 10, firstCall: 'no', outputCap: null })
    const { body: enough } = await dry({ team: 'desk', input: 'go', budget: { usd: '100' } })
    expect(enough.budget).toMatchObject({ usd: '100', tokens: null, firstCall: 'whole', outputCap: 32_768 })
    expect(enough.most.usd).toBe('100')
  })

  test.each<[object, string, string | RegExp]>([
    [{ team: 'nobody', input: 'go' }, 'unknown_team', /nobody/],
    [{ team: 'desk', input: 'go', agent: 'nobody' }, 'unknown_agent', /nobody/],
    [{ team: 'desk' }, 'bad_request', /neither input nor tasks/],
    [{ team: 'desk', input: 'go', budget: { usd: 'much' } }, 'bad_request', /amount in USD/],
  ])('%j is refused as the start would be: %s', async (body, code, detail) => {
    const refused = await dry<Problem>(body)
    expect(refused.body).toMatchObject({ code, detail: expect.stringMatching(detail) })
  })

  test('is asked for with true', async () => {
    expect((await dry<Problem>({ team: 'desk', input: 'go' }, '?dryRun=yes')).body.detail).toContain('true or false')
  })
})
