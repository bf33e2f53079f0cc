/** Wrong input is refused before anything is spent, or even written. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SubledgerError } from '../../src/domain/errors.ts'
import { MAX_BODY_BYTES } from '../../src/domain/limits.ts'
import { createApp } from '../../src/http/app.ts'
import { runId } from '../support/builders.ts'
import { type Api, expectProblem, openApi } from './api.ts'

const good = { team: 'echo', input: 'go' }
const NO_RUN = runId(7)
const NO_SESSION = '0123456789abcdefghjk'

describe('refusals', () => {
  let api: Api
  beforeEach(() => {
    api = openApi()
    api.meter.reset()
  })
  afterEach(async () => {
    const { puts, updates, refused } = api.meter.snapshot()
    expect({ written: puts + updates - refused, calls: api.scripted.bill.length, events: api.events.length }).toEqual({
      written: 0,
      calls: 0,
      events: 0,
    })
    await api.close()
  })

  describe('of a new run', () => {
    test.each<[what: string, body: unknown, status: number, code: string, path: string | undefined]>([
      ['an unknown team', { ...good, team: 'nobody' }, 404, 'unknown_team', undefined],
      ['an unknown agent', { ...good, agent: 'nobody' }, 400, 'unknown_agent', '/agent'],
      [
        'an unknown agent of a task',
        {
          team: 'echo',
          tasks: [
            { agent: 'root', task: 'a' },
            { agent: 'x', task: 'b' },
          ],
        },
        400,
        'unknown_agent',
        '/tasks/1/agent',
      ],
      ['neither input nor tasks', { team: 'echo' }, 400, 'bad_request', ''],
      ['both input and tasks', { ...good, tasks: [{ agent: 'root', task: 'a' }] }, 400, 'bad_request', ''],
      [
        'tasks with an agent beside them',
        { team: 'echo', agent: 'root', tasks: [{ agent: 'root', task: 'a' }] },
        400,
        'bad_request',
        '',
      ],
      ['no team', { input: 'go' }, 400, 'bad_request', '/team'],
      ['an empty input', { ...good, input: ' ' }, 400, 'bad_request', '/input'],
      ['an input that is no text', { ...good, input: 7 }, 400, 'bad_request', '/input'],
      ['half of a surrogate pair', { ...good, input: 'a\ud83d' }, 400, 'bad_request', '/input'],
      ['no tasks in the list', { team: 'echo', tasks: [] }, 400, 'bad_request', '/tasks'],
      [
        'more tasks than a run may have',
        { team: 'echo', tasks: Array.from({ length: 10_001 }, () => ({ agent: 'root', task: 'a' })) },
        400,
        'bad_request',
        '/tasks',
      ],
      ['a field that is not known', { ...good, prio: 1 }, 400, 'bad_request', '/prio'],
      [
        'a field of a task that is not known',
        { team: 'echo', tasks: [{ agent: 'root', task: 'a', 'x/y': 1 }] },
        400,
        'bad_request',
        '/tasks/0/x~1y',
      ],
      ['a concurrency of nothing', { ...good, maxConcurrency: 0 }, 400, 'bad_request', '/maxConcurrency'],
      ['a concurrency beyond the highest', { ...good, maxConcurrency: 1001 }, 400, 'bad_request', '/maxConcurrency'],
      ['a broken concurrency', { ...good, maxConcurrency: 1.5 }, 400, 'bad_request', '/maxConcurrency'],
      ['a tag that is no text', { ...good, tags: { a: 1 } }, 400, 'bad_request', '/tags/a'],
      [
        'more tags than ten',
        { ...good, tags: Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`t${i}`, 'x'])) },
        400,
        'bad_request',
        '/tags',
      ],
      ['a tag that is too long', { ...good, tags: { a: 'é'.repeat(64) } }, 400, 'bad_request', '/tags'],
      ['a list', [good], 400, 'bad_request', ''],
      ['a text', '"go"', 400, 'bad_request', ''],
      ['null', 'null', 400, 'bad_request', ''],
      ['a budget of nothing', { ...good, budget: {} }, 400, 'bad_request', '/budget'],
      ['a budget that is no amount', { ...good, budget: { usd: '1e3' } }, 400, 'bad_request', '/budget/usd'],
      ['a budget below 0', { ...good, budget: { usd: '-1' } }, 400, 'bad_request', '/budget/usd'],
      ['a budget of half a token', { ...good, budget: { tokens: 0.5 } }, 400, 'bad_request', '/budget/tokens'],
      ['a budget in euros', { ...good, budget: { eur: '1' } }, 400, 'bad_request', '/budget/eur'],
      [
        'a webhook, which this version does not know',
        { ...good, webhook: 'https://example.com' },
        501,
        'not_supported',
        '/webhook',
      ],
    ])('%s', async (_, body, status, code, path) => {
      const problem = expectProblem(await api.post('/v1/runs', body), status, code)
      if (path !== undefined) expect(problem.errors?.map((e) => e.path)).toContain(path)
    })

    test('every place that is wrong is told, up to twenty', async () => {
      const tasks = Array.from({ length: 30 }, () => ({ agent: 'root' }))
      const problem = expectProblem(await api.post('/v1/runs', { team: 'echo', tasks }), 400, 'bad_request')
      expect(problem.errors).toHaveLength(20)
      expect(problem.errors![0]).toEqual({ path: '/tasks/0/task', message: 'is missing' })
      expect(problem.detail).toBe('The body: /tasks/0/task is missing (and 29 more).')
    })

    test('a team file that names what is not there', async () => {
      const issues = [{ path: 'broken.yaml:7:5', message: 'agents.root.model: there is no model "gpt"' }]
      const teams = {
        list: async () => [],
        get: () =>
          Promise.reject(new SubledgerError('bad_team', 'the team file "broken.yaml" has an error', { issues })),
      }
      const app = createApp({ ...api.ctx, teams }, { tenantOf: () => 'local' })
      const headers = { 'content-type': 'application/json' }
      const response = await app.request('/v1/runs', { method: 'POST', headers, body: JSON.stringify(good) })
      const answer = { status: response.status, headers: response.headers, body: await response.json() }
      expect(expectProblem(answer, 400, 'bad_team').errors).toEqual(issues)
    })
  })

  describe('of a body', () => {
    const send = (
      body: string | Uint8Array<ArrayBuffer>,
      headers: Record<string, string> = { 'content-type': 'application/json' },
    ) => api.send('/v1/runs', { method: 'POST', headers, body })

    test('over a megabyte', async () => {
      const body = JSON.stringify({ ...good, input: 'x'.repeat(MAX_BODY_BYTES) })
      expectProblem(await send(body), 413, 'too_large')
      const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }
      expectProblem(await send(body, headers), 413, 'too_large')
    })

    test('over a megabyte, whatever content-length says, and no more of it is read', async () => {
      let sent = 0
      const endless = new ReadableStream({
        pull(controller) {
          sent += 65_536
          controller.enqueue(new Uint8Array(65_536).fill(0x20))
        },
      })
      const headers = { 'content-type': 'application/json', 'content-length': '20' }
      const init = { method: 'POST', headers, body: endless, duplex: 'half' } as RequestInit
      expectProblem(await api.send('/v1/runs', init), 413, 'too_large')
      expect(sent).toBeLessThan(MAX_BODY_BYTES + 4 * 65_536)
    })

    test('over a megabyte, where no body is taken', async () => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: 'x'.repeat(1_000_001) }
      expectProblem(await api.send(`/v1/runs/${NO_RUN}/cancel`, init), 413, 'too_large')
    })

    test('of just a megabyte is read', async () => {
      const frame = JSON.stringify({ ...good, team: 'nobody', input: '' }).length
      const body = JSON.stringify({ ...good, team: 'nobody', input: 'x'.repeat(MAX_BODY_BYTES - frame) })
      expect(body.length).toBe(MAX_BODY_BYTES)
      expectProblem(await send(body), 404, 'unknown_team')
    })

    test.each<[what: string, text: string, where: string]>([
      ['an unfinished object', '{"team": "echo"', 'line 1, column 16'],
      ['a comma too many', '{\n  "team": "echo",\n}', 'line 3, column 1'],
      ['single quotes', "{'team': 'echo'}", 'line 1, column 2'],
      ['text behind the end', '{} {}', 'line 1, column 4'],
      ['a key that is there twice', '{"team": "echo", "team": "desk"}', 'line 1, column 18'],
      ['the key __proto__', '{"tags": {"__proto__": {"polluted": "yes"}}}', 'line 1, column 11'],
      ['the key __proto__ in disguise', '{"\\u005f_proto__": {}}', 'line 1, column 2'],
      ['deep nesting', `${'['.repeat(100_000)}`, 'line 1, column 33'],
      ['NaN', '{"maxConcurrency": NaN}', 'line 1, column 20'],
      ['a number with a leading zero', '{"maxConcurrency": 01}', 'line 1, column 21'],
      ['a bad escape', '{"team": "\\x"}', 'line 1, column 10'],
      ['a raw line break in a text', '{"team": "a\nb"}', 'line 1, column 12'],
      ['nothing', '', 'is empty'],
    ])('that is not JSON: %s', async (_, text, where) => {
      expect(expectProblem(await send(text), 400, 'bad_json').detail).toContain(where)
    })

    test('that is not UTF-8', async () => {
      const bytes = new Uint8Array([...new TextEncoder().encode('{"team":"'), 0xc3, 0x28, 0x22, 0x7d])
      expect(expectProblem(await send(bytes), 400, 'bad_json').detail).toContain('UTF-8')
    })

    test.each<[what: string, headers: Record<string, string>]>([
      ['without a content type', {}],
      ['as a form', { 'content-type': 'application/x-www-form-urlencoded' }],
      ['as plain text', { 'content-type': 'text/plain' }],
      ['in another charset', { 'content-type': 'application/json; charset=latin1' }],
      ['compressed', { 'content-type': 'application/json', 'content-encoding': 'gzip' }],
    ])('%s', async (_, headers) => {
      const body = new TextEncoder().encode(JSON.stringify(good))
      expectProblem(await send(body, headers), 415, 'unsupported_media_type')
    })

    test('for a route that takes none', async () => {
      const path = `/v1/runs/${NO_RUN}/cancel`
      expectProblem(await api.post(path, { now: true }), 400, 'bad_request')
      expectProblem(await api.post(path, {}), 404, 'unknown_run')
      expectProblem(await api.send(path, { method: 'POST', body: 'a=b' }), 415, 'unsupported_media_type')
    })
  })

  test('of an Idempotency-Key that is none', async () => {
    const headers = { 'idempotency-key': 'two words' }
    const problem = expectProblem(await api.post('/v1/runs', good, headers), 400, 'bad_request')
    expect(problem.errors![0]!.path).toBe('Idempotency-Key')
    for (const path of ['input', 'cancel'])
      expectProblem(
        await api.post(`/v1/runs/${NO_RUN}/${path}`, path === 'input' ? { input: 'x' } : {}, headers),
        400,
        'bad_request',
      )
  })

  describe('of a query', () => {
    test.each<[query: string, path: string]>([
      ['limit=0', '?limit'],
      ['limit=101', '?limit'],
      ['limit=-1', '?limit'],
      ['limit=1e1', '?limit'],
      ['limit=', '?limit'],
      ['limit=2&limit=3', '?limit'],
      ['status=done', '?status'],
      ['team=', '?team'],
      ['order=asc', '?order'],
      ['__proto__=1', '?__proto__'],
      ['team=%ff', '?team'],
      ['team=a%C3', '?team'],
      ['team=%C3%C3%A9', '?team'],
      ['team=%ED%A0%80', '?team'],
      ['limit=5&%ff=1', '?\ufffd'],
    ])('%s', async (query, path) => {
      const problem = expectProblem(await api.get(`/v1/runs?${query}`), 400, 'bad_request')
      expect(problem.errors!.map((e) => e.path)).toEqual([path])
    })

    test('but not by routes that hold no data: whoever watches may add something to get past a cache', async () => {
      for (const route of ['/', '/v1/health', '/v1/openapi.json'])
        expect((await api.get(`${route}?x=1`)).status).toBe(200)
    })

    test('control: what is UTF-8, and a per cent sign, are taken', async () => {
      for (const team of ['%C3%A9', '%F0%9F%99%82', 'é', '100%', '%2B', '%zz'])
        expect((await api.get(`/v1/runs?team=${team}`)).status).toBe(200)
    })

    test('exact that is neither true nor false', async () => {
      expectProblem(await api.get(`/v1/runs/${NO_RUN}?exact=yes`), 400, 'bad_request')
    })

    test.each(['x', '%00', 'bm90LW91cnM', 'a'.repeat(4000), '🙂'])('the cursor %s', async (cursor) => {
      for (const path of ['/v1/runs', `/v1/runs/${NO_RUN}/sessions`, `/v1/runs/${NO_RUN}/calls`])
        expectProblem(await api.get(`${path}?cursor=${encodeURIComponent(cursor)}`), 400, 'bad_cursor')
      const messages = `/v1/runs/${NO_RUN}/sessions/${NO_SESSION}/messages`
      expectProblem(await api.get(`${messages}?cursor=${encodeURIComponent(cursor)}`), 400, 'bad_cursor')
    })
  })

  test('of a run that is not there, by every route', async () => {
    for (const id of [NO_RUN, 'nonsense', NO_RUN.toLowerCase(), 'a%00b']) {
      for (const path of [
        '',
        '/sessions',
        `/sessions/${NO_SESSION}`,
        `/sessions/${NO_SESSION}/messages`,
        '/calls',
        '/usage',
      ])
        expectProblem(await api.get(`/v1/runs/${id}${path}`), 404, 'unknown_run')
      expectProblem(await api.post(`/v1/runs/${id}/input`, { input: 'x' }), 404, 'unknown_run')
      expectProblem(await api.post(`/v1/runs/${id}/cancel`, {}), 404, 'unknown_run')
    }
  })

  test('of a path that is not there', async () => {
    for (const path of ['/v2/runs', '/v1', '/v1/runs/', '/v1/run', `/v1/runs/${NO_RUN}/what`])
      expectProblem(await api.get(path), 404, 'not_found')
  })

  test('of a method that is not for this path, with those that are', async () => {
    for (const [method, path, allow] of [
      ['PUT', '/v1/runs', 'POST, GET, HEAD'],
      ['POST', `/v1/runs/${NO_RUN}`, 'GET, DELETE, HEAD'],
      ['GET', `/v1/runs/${NO_RUN}/cancel`, 'POST'],
      ['DELETE', '/v1/health', 'GET, HEAD'],
      ['POST', '/', 'GET, HEAD'],
    ] as const) {
      const answer = await api.send(path, { method })
      expectProblem(answer, 405, 'method_not_allowed')
      expect(answer.headers.get('allow')).toBe(allow)
    }
  })

  test('of a team that is not there', async () => {
    expectProblem(await api.get('/v1/teams/nobody'), 404, 'unknown_team')
  })
})
