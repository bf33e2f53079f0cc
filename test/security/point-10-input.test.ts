/** Input is measured before it is parsed, and everything that goes into a key is bounded before anything is spent. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as keys from '../../src/store/keys.ts'
import { type Api, expectProblem, openApi } from '../http/api.ts'

let api: Api
beforeAll(() => {
  api = openApi()
})
beforeEach(() => {
  api.meter.reset()
  api.events.length = 0
})
afterAll(() => api.close())

const json = { 'content-type': 'application/json' }
const post = (body: string | Uint8Array<ArrayBuffer>, headers = {}) =>
  api.send('/v1/runs', { method: 'POST', headers: { ...json, ...headers }, body })
/** nothing has been read or written, and nobody invoked */
const nothingSpent = () => {
  const { gets, puts, updates, queries } = api.meter.snapshot()
  expect({ gets, puts, updates, queries, events: api.events.length }).toEqual({
    gets: 0,
    puts: 0,
    updates: 0,
    queries: 0,
    events: 0,
  })
}

describe('a body', () => {
  test.each<[what: string, body: string | Uint8Array<ArrayBuffer>, status: number, code: string]>([
    ['that is too large, and no JSON', '['.repeat(1_000_001), 413, 'too_large'],
    ['nested as deep as it is long', '['.repeat(900_000), 400, 'bad_json'],
    ['nested deeper in objects', '{"a":'.repeat(40), 400, 'bad_json'],
    ['that is not UTF-8', new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]), 400, 'bad_json'],
    ['with a byte that UTF-8 does not have', new Uint8Array([0x22, 0xff, 0x22]), 400, 'bad_json'],
    ['in UTF-16', Uint8Array.from(Buffer.from('{"team":"echo"}', 'utf16le')), 400, 'bad_json'],
    ['with a key twice', '{"team":"echo","input":"a","input":"b"}', 400, 'bad_json'],
    ['with a key twice, once escaped', '{"team":"echo","input":"a","\\u0069nput":"b"}', 400, 'bad_json'],
    ['with __proto__', '{"__proto__":{"team":"echo"},"input":"a"}', 400, 'bad_json'],
    ['with __proto__, escaped', '{"\\u005f_proto__":{"team":"echo","input":"a"}}', 400, 'bad_json'],
    ['with __proto__ as a tag', '{"team":"echo","input":"a","tags":{"__proto__":"x"}}', 400, 'bad_json'],
    ['with a constructor', '{"team":"echo","input":"a","constructor":{"prototype":{}}}', 400, 'bad_request'],
    ['with half of a surrogate pair', '{"team":"echo","input":"\\ud800"}', 400, 'bad_request'],
    ['with half of one in a tag', '{"team":"echo","input":"a","tags":{"\\udc00":"x"}}', 400, 'bad_request'],
    ['with a number for a text', '{"team":"echo","input":1e999}', 400, 'bad_request'],
    ['that is null', 'null', 400, 'bad_request'],
  ])('%s is refused, and nothing is spent', async (_what, body, status, code) => {
    expectProblem(await post(body), status, code)
    nothingSpent()
    expect(({} as { team?: string }).team).toBeUndefined()
  })

  test('that says it is smaller than it is is measured all the same', async () => {
    expectProblem(await post(' '.repeat(1_000_001), { 'content-length': '10' }), 413, 'too_large')
    nothingSpent()
  })

  test('tags named like parts of objects are texts like others', async () => {
    const body = { team: 'echo', input: 'a', tags: { toString: 'x', hasOwnProperty: 'y', constructor: 'z' } }
    const answer = await post(JSON.stringify(body))
    expect([answer.status, (answer.body as unknown as { tags: object }).tags]).toEqual([202, body.tags])
    await api.invoker.drain()
  })
})

describe('an id', () => {
  const session = '0123456789abcdefghjk'
  test.each([
    'x',
    '01jzzzzzzzzzzzzzzzzzzzzzzz',
    '01JZZZZZZZZZZZZZZZZZZZZZZZ0',
    '01JZZZZZZZZZZZZZZZZZZZZZZI',
    '%2e%2e%2f',
    '01JZZZZZZZZZZZZZZZZZZZZZZZ%23SESSION',
    '01JZZZZZZZZZZZZZZZZZZZZZZZ%0a',
    '%00',
    '__proto__',
    'x'.repeat(5_000),
  ])('of a run of another shape (%s) is unknown before anything is read', async (id) => {
    for (const path of ['', '/sessions', `/sessions/${session}`, `/sessions/${session}/messages`, '/calls', '/usage'])
      expectProblem(await api.get(`/v1/runs/${id}${path}`), 404, 'unknown_run')
    for (const path of ['/input', '/cancel'])
      expectProblem(
        await api.post(`/v1/runs/${id}${path}`, path === '/input' ? { input: 'x' } : {}),
        404,
        'unknown_run',
      )
    nothingSpent()
  })

  test.each(['x', session.toUpperCase(), `${session}0`, `${session}%23`, '%F0%9F%98%80'])(
    'of a session of another shape (%s) is unknown before anything is read',
    async (id) => {
      expectProblem(await api.get(`/v1/runs/01JZZZZZZZZZZZZZZZZZZZZZZZ/sessions/${id}`), 404, 'unknown_session')
      nothingSpent()
    },
  )

  test('that is no text of UTF-8 is not found', async () => {
    for (const id of ['%ff', '%c3%28', '%'])
      expect([400, 404]).toContain((await api.send(`/v1/runs/${id}`, { method: 'GET' })).status)
    nothingSpent()
  })
})

describe('what goes into a key', () => {
  const long = 'x'.repeat(64)
  const T = 'T'.padEnd(64, 't')
  const run = { tenant: T, runId: '7'.padEnd(26, 'Z') }
  const ref = { ...run, sessionId: 'z'.repeat(20) }
  const day = { tenant: T, day: '2026-01-31' }
  const huge = 'x'.repeat(100_000)

  /** Each key with the longest parts that it takes. */
  const longest: readonly [what: string, key: keys.Key][] = [
    ['run', keys.runKey(run)],
    ['session', keys.sessionKey(ref)],
    ['definition', keys.definitionKey(run, 'f'.repeat(64), 9_999)],
    ['input', keys.inputKey(run, 999_999, 'x'.repeat(32), 9_999)],
    ['part', keys.partKey(ref, 999_999, 'x'.repeat(32), 'x'.repeat(12), 9_999)],
    ['usage', keys.usageItemKey({ ...run, at: Date.UTC(2026, 0, 31), round: 999_999, from: 999_999_999 })],
    ['usage part', keys.usagePartKey(day, 'x'.repeat(80), 'x'.repeat(32), 9_999)],
    ['places', keys.placesKey(T)],
    ['limit', keys.limitKey({ tenant: T, period: '2026-01-31', name: huge })],
    ['pot', keys.limitKey({ ...run, pot: long })],
    ['idempotency', keys.idempotencyKey(T, huge, huge)],
    ['state', keys.stateKey(T, huge, huge)],
  ]

  test.each(longest)('%s: at its longest it is far below what DynamoDB takes', (_what, { pk, sk }) => {
    expect(Buffer.byteLength(pk)).toBeLessThan(256)
    expect(Buffer.byteLength(sk)).toBeLessThan(256)
  })

  test.each<[what: string, make: () => unknown]>([
    ['a tenant that is too long', () => keys.runKey({ ...run, tenant: `${T}t` })],
    ['a tenant with a separator', () => keys.runsPartition('a#b')],
    ['no tenant', () => keys.placesKey('')],
    ['a run id that is too long', () => keys.runKey({ ...run, runId: `${run.runId}Z` })],
    ['a session id with a separator', () => keys.sessionKey({ ...ref, sessionId: `${'z'.repeat(19)}#` })],
    ['a number that is too large', () => keys.requestKey(ref, 1_000_000)],
    ['a number below 0', () => keys.requestKey(ref, -1)],
    ['a number with a fraction', () => keys.requestKey(ref, 0.5)],
    ['a period that is none', () => keys.limitKey({ tenant: T, period: '2026-01-31x', name: 'x' })],
    ['a pot that is too long', () => keys.limitKey({ ...run, pot: `${long}x` })],
    ['a day that is none', () => keys.usagePartition({ tenant: T, day: '2026-01-31#x' })],
  ])('%s makes none', (_what, make) => {
    expect(make).toThrow(RangeError)
  })

  test.each<[what: string, body: object]>([
    ['a team', { team: 't'.repeat(129), input: 'a' }],
    ['an agent', { team: 'echo', agent: 'a'.repeat(129), input: 'a' }],
    ['a tag', { team: 'echo', input: 'a', tags: { n: 'x'.repeat(128) } }],
    ['a tag in letters of four bytes', { team: 'echo', input: 'a', tags: { '😀': '😀'.repeat(32) } }],
    [
      'eleven tags',
      { team: 'echo', input: 'a', tags: Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`t${i}`, ''])) },
    ],
  ])('%s that is too long is refused before anything is spent', async (_what, body) => {
    expectProblem(await post(JSON.stringify(body)), 400, 'bad_request')
    nothingSpent()
  })
})
