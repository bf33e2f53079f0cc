import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunView } from '../../src/http/views/run.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { type Api, echo, expectProblem, openApi } from './api.ts'

const failing = scriptedTeam('failing', [
  { agent: agent('worker'), steps: [{ error: { class: 'invalid_request', message: 'never' } }] },
])
let api: Api
beforeAll(() => {
  api = openApi({ teams: [echo, failing] })
})
afterAll(() => api.close())

test('a retry is answered with the run in its next round, and sent again it opens no other', async () => {
  const { runId } = await api.run({ team: 'failing', tasks: [{ agent: 'worker', task: 'x' }] })
  const key = { 'idempotency-key': 'once' }
  const retry = () => api.post<RunView>(`/v1/runs/${runId}/retry`, {}, key)
  const [first, second] = await Promise.all([retry(), retry()])
  expect(first).toMatchObject({ status: 202, body: { runId, status: 'running', round: 2 } })
  expect(first.headers.get('location')).toBe(`/v1/runs/${runId}`)
  expect(second.body).toEqual(first.body)
  await api.invoker.drain()
  expect((await retry()).body).toEqual(first.body)
  const other = await api.post(`/v1/runs/${runId}/retry`, { sessions: ['x'] }, key)
  expectProblem(other, 422, 'idempotency_mismatch')
  expect((await api.get<RunView>(`/v1/runs/${runId}`)).body).toMatchObject({ round: 2, sessions: { failed: 2 } })
})

test('needs no body, and names what is wrong with one', async () => {
  const { runId } = await api.run({ team: 'failing', tasks: [{ agent: 'worker', task: 'x' }] })
  const path = `/v1/runs/${runId}/retry`
  for (const body of [{ sessions: [] }, { sessions: [1] }, { sessions: 'x' }, { other: 1 }, []])
    expectProblem(await api.post(path, body), 400, 'bad_request')
  const { errors } = expectProblem(await api.post(path, { sessions: ['nobody'] }), 400, 'bad_request')
  expect(errors).toEqual([{ path: '/sessions/0', message: '"nobody" is no task of the list' }])
  expect((await api.send(path, { method: 'POST' })).status).toBe(202)
  await api.invoker.drain()
})

test('where all was completed says that there is nothing to retry', async () => {
  const { runId } = await api.run({ team: 'echo', input: 'x' })
  expectProblem(await api.post(`/v1/runs/${runId}/retry`, {}), 409, 'nothing_to_retry')
})
