import { expect, test } from 'vitest'
import { SubledgerError } from '../../src/domain/errors.ts'
import { createApp } from '../../src/http/app.ts'
import { runId } from '../support/builders.ts'
import { expectProblem, openApi } from './api.ts'

const path = `/v1/runs/${runId(1)}`
const LOCAL = { tenantOf: () => 'local' }

test('a fault is told to the log and not to the client', async () => {
  const api = openApi({ app: { tenantOf: () => Promise.reject(new Error('password is hunter2')) } })
  const answer = await api.get(path)
  expectProblem(answer, 500, 'internal')
  expect(JSON.stringify(answer.body)).not.toContain('hunter2')
  expect(api.complaints.join()).toContain('hunter2')
  await api.close()
})

test('whoever says internal is not quoted either', async () => {
  const api = openApi({
    app: {
      tenantOf: () => {
        throw new SubledgerError('internal', 'row 17 of the secret table')
      },
    },
  })
  expect(expectProblem(await api.get(path), 500, 'internal').detail).not.toContain('secret')
  await api.close()
})

test('a client that goes away while it sends a body is no fault of ours', async () => {
  const api = openApi()
  const said: string[] = []
  const app = createApp({ ...api.ctx, log: { ...api.ctx.log, info: (message) => void said.push(message) } }, LOCAL)
  for (const route of ['/v1/runs', `${path}/cancel`, `${path}/retry`]) {
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from('{"team":')),
      pull: (controller) => controller.error(new Error('aborted')),
    })
    const headers = { 'content-type': 'application/json' }
    const response = await app.request(route, { method: 'POST', headers, body, duplex: 'half' } as RequestInit)
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'bad_request' }])
  }
  expect(said).toEqual(Array(3).fill('a request broke off'))
  expect(api.complaints).toEqual([])
  await api.close()
})

test('a busy table asks the client to come back', async () => {
  const api = openApi({
    app: {
      tenantOf: () => {
        throw new SubledgerError('throttled', 'The table is busy; try again in a moment.')
      },
    },
  })
  const answer = await api.get(path)
  expectProblem(answer, 503, 'throttled')
  expect(answer.headers.get('retry-after')).toBe('1')
  await api.close()
})

test('a tenant that is no tenant name reaches no key', async () => {
  for (const tenant of ['', '../x', 'a#b', 'x'.repeat(65)]) {
    const api = openApi({ app: { tenantOf: () => tenant } })
    expectProblem(await api.get(path), 500, 'internal')
    expect(api.meter.snapshot().queries).toBe(0)
    await api.close()
  }
})

test('who is not authenticated is told so before anything is read, except by what holds no data', async () => {
  const api = openApi({
    app: {
      tenantOf: () => {
        throw new SubledgerError('unauthorized', 'Sign the request.')
      },
    },
  })
  for (const p of ['/v1/runs', path, `${path}/sessions`, `${path}/calls`, `${path}/usage`, '/v1/teams', '/v1/usage'])
    expectProblem(await api.get(p), 401, 'unauthorized')
  expectProblem(await api.post('/v1/runs', 'not even json'), 401, 'unauthorized')
  const { gets, queries } = api.meter.snapshot()
  expect(gets + queries).toBe(0)
  expect((await api.get('/v1/health')).body).toEqual({ status: 'ok' })
  expect((await api.get('/')).body).toContain('no console')
  await api.close()
})

test('answers are not to be kept by anybody', async () => {
  const api = openApi()
  for (const p of ['/v1/runs', '/nowhere', '/v1/health']) {
    const { headers } = await api.get(p)
    expect([headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual(['no-store', 'nosniff'])
  }
  await api.close()
})
