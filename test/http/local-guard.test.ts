/** Local mode has no passwords: no web page may use it, whatever it makes a browser send. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { guardLocal } from '../../src/http/local-guard.ts'
import { type Api, expectProblem, openApi } from './api.ts'

describe('in local mode', () => {
  let api: Api
  beforeAll(() => {
    api = openApi({ app: { guard: guardLocal } })
  })
  afterAll(() => api.close())

  test.each<[what: string, headers: Record<string, string>]>([
    ['a name of this machine', { host: '127.0.0.1:4310' }],
    ['its other names', { host: 'localhost:4310' }],
    ['an IPv6 address of this machine', { host: '[::1]:4310' }],
    ['a page of our own', { host: '127.0.0.1:4310', origin: 'http://127.0.0.1:4310', 'sec-fetch-site': 'same-origin' }],
    ['an address typed into a browser', { host: 'localhost:4310', 'sec-fetch-site': 'none' }],
  ])('%s is let in', async (_, headers) => {
    expect((await api.get('/v1/runs', headers)).status).toBe(200)
  })

  test.each<[what: string, headers: Record<string, string>]>([
    ['a name that somebody points at this machine', { host: 'rebind.example' }],
    ['a name that only begins like ours', { host: '127.0.0.1.evil.example' }],
    ['a name with a user in it', { host: 'localhost@evil.example' }],
    ['a page of another site', { host: '127.0.0.1:4310', origin: 'https://evil.example' }],
    ['a page of another port', { host: '127.0.0.1:4310', origin: 'http://127.0.0.1:8080' }],
    ['a page that hides where it is from', { host: '127.0.0.1:4310', origin: 'null' }],
    ['an image or link of another site', { host: '127.0.0.1:4310', 'sec-fetch-site': 'cross-site' }],
    ['a page of another port, as browsers call it', { host: '127.0.0.1:4310', 'sec-fetch-site': 'same-site' }],
  ])('%s is refused by every route', async (_, headers) => {
    for (const path of ['/v1/runs', '/v1/teams', '/v1/health', '/', '/nowhere'])
      expectProblem(await api.get(path, headers), 403, 'forbidden')
    expectProblem(await api.post('/v1/runs', { team: 'echo', input: 'go' }, headers), 403, 'forbidden')
    expect(api.events).toEqual([])
  })

  test('a form of a page cannot be read as a request', async () => {
    for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain']) {
      const init = { method: 'POST', headers: { 'content-type': type }, body: '{"team":"echo","input":"go"}' }
      expectProblem(await api.send('/v1/runs', init), 415, 'unsupported_media_type')
    }
    expect(api.events).toEqual([])
  })
})
