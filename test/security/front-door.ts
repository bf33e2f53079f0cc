/**
 * What points 1 and 2 of the security page ask of the API, whatever stands in front of it: the app in this process, `npm
 * start`, and serverless-offline with its request authorizer.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { createApp } from '../../src/http/app.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { testEngine } from '../support/engine.ts'
import { type Claims, type Issuer, powerless } from '../support/oidc-issuer.ts'

export interface FrontDoor {
  readonly issuer: Issuer
  /** without `/v1` */
  readonly url: string
  readonly fetch: (request: Request) => Promise<Response>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes; undefined where it is no JSON
  readonly body: any
}

/** A team with a root and eight workers, in test/offline/teams. */
export const TEAM = 'fan-out'
/** Routes that hold no data. */
const PUBLIC = ['GET /', 'GET /v1/health', 'GET /v1/openapi.json']

/** Every route of the app that holds data, as `GET /v1/runs/:runId`. */
export function routesWithData(): string[] {
  const engine = testEngine({ table: memoryTable(), teams: [] })
  const app = createApp(engine.ctx, { tenantOf: () => 'local' })
  const routes = app.routes.filter((r) => r.method !== 'ALL').map((r) => `${r.method} ${r.path}`)
  return [...new Set(routes)].filter((route) => !PUBLIC.includes(route)).sort()
}

export async function send(
  door: FrontDoor,
  route: string,
  token: string | null,
  options: { readonly body?: object; readonly headers?: { readonly [name: string]: string } } = {},
): Promise<Answer> {
  const [method, path = ''] = route.split(' ')
  const response = await door.fetch(
    new Request(`${door.url}${path}`, {
      method: method!,
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(options.body && { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(options.body && { body: JSON.stringify(options.body) }),
    }),
  )
  const text = await response.text()
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // it is no JSON
  }
  return { status: response.status, headers: response.headers, text, body }
}

/** A body that each route takes. */
const BODIES: { readonly [route: string]: object } = {
  'POST /v1/runs': { team: TEAM, input: 'Go' },
  'POST /v1/runs/:runId/input': { input: 'And on' },
  'POST /v1/runs/:runId/retry': {},
  'POST /v1/runs/:runId/cancel': {},
  'POST /v1/runs/:runId/receipts': { receipts: [{ responseId: 'r-1', inputTokens: 1, outputTokens: 1 }] },
  'PUT /v1/runs/:runId/budget': { usd: '1' },
  'POST /v1/runs/:runId/approvals/:approvalId': { decision: 'approve' },
  'POST /v1/schedules': { team: TEAM, input: 'Go', rate: '1 day', budget: { tokens: 1_000_000 } },
}

export interface Ids {
  readonly [name: string]: string
}
const withIds = (route: string, ids: Ids): string => route.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? 'none')
const bodyOf = (route: string) => (BODIES[route] ? { body: BODIES[route] } : {})

async function ended(door: FrontDoor, runId: string, token: string): Promise<Answer> {
  for (;;) {
    const answer = await send(door, `GET /v1/runs/${runId}`, token)
    if (answer.status !== 200 || !['running', 'waiting'].includes(answer.body.status)) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Point 1: nothing of one tenant is there for another. */
export function tenantChecks(door: () => FrontDoor): void {
  const secret = 'the input of acme alone'
  const ids: { [name: string]: string } = {}
  let acme: string
  let globex: string

  beforeAll(async () => {
    acme = await door().issuer.token({ tenant: 'acme' })
    globex = await door().issuer.token({ tenant: 'globex' })
    const started = await send(door(), 'POST /v1/runs', acme, {
      body: { team: TEAM, input: secret, tags: { owner: secret } },
    })
    expect([started.status, started.text]).toEqual([202, started.text])
    ids.runId = started.body.runId
    ids.sessionId = started.body.rootSessionId
    expect((await ended(door(), ids.runId!, acme)).body).toMatchObject({ status: 'completed', input: secret })
    ids.approvalId = `${ids.sessionId}.0.0`
    const body = { team: TEAM, input: secret, rate: '1 day', budget: { tokens: 1_000_000 } }
    ids.id = (await send(door(), 'POST /v1/schedules', acme, { body })).body.scheduleId
    expect(ids.id).toEqual(expect.any(String))
    ids.name = TEAM
  }, 60_000)

  const foreign = routesWithData().filter((route) => /:(runId|sessionId|approvalId|id)\b/.test(route))

  test.each(foreign)('%s with the ids of another tenant: 404', async (route) => {
    const answer = await send(door(), withIds(route, ids), globex, bodyOf(route))
    // what is not there yet says so to everybody, whatever the id
    if (answer.status !== 501)
      expect([answer.status, answer.body?.code]).toEqual([404, expect.stringMatching(/^unknown_|^not_found$/)])
    expect(answer.text).not.toContain(secret)
  })

  test('a run of a tenant of the same name but for a part is as foreign', async () => {
    for (const tenant of ['acm', 'acme2', 'ACME', 'acme.', 'acme_RUN', 'local', 'default']) {
      const token = await door().issuer.token({ tenant })
      expect((await send(door(), `GET /v1/runs/${ids.runId}`, token)).status).toBe(404)
      expect((await send(door(), 'GET /v1/runs', token)).body.runs).toEqual([])
    }
  })

  const lists = routesWithData().filter((route) => route.startsWith('GET ') && !route.includes(':'))

  const today = new Date().toISOString().slice(0, 10)
  test.each(lists)('%s shows nothing of another tenant', async (route) => {
    const query = route === 'GET /v1/usage' ? `?from=${today}&to=${today}&groupBy=team,tag:owner` : ''
    const answer = await send(door(), route + query, globex)
    expect([200, 501]).toContain(answer.status)
    expect(answer.text).not.toContain(ids.runId)
    expect(answer.text).not.toContain(secret)
    if (route === 'GET /v1/runs') expect(answer.body).toEqual({ runs: [], next: null })
  })

  test('a cursor of one tenant leads another nowhere', async () => {
    const second = await send(door(), 'POST /v1/runs', acme, { body: { team: TEAM, input: secret } })
    await ended(door(), second.body.runId, acme)
    const { next } = (await send(door(), 'GET /v1/runs?limit=1', acme)).body
    expect(next).toEqual(expect.any(String))
    const answer = await send(door(), `GET /v1/runs?limit=1&cursor=${next}`, globex)
    expect([answer.status, answer.body.code]).toEqual([400, 'bad_cursor'])
  }, 60_000)

  test('a run is of the tenant of the token, whatever the request says', async () => {
    const said = await send(door(), 'POST /v1/runs', globex, { body: { team: TEAM, input: 'Go', tenant: 'acme' } })
    expect([said.status, said.body.code]).toEqual([400, 'bad_request'])
    const headers = { 'x-tenant': 'acme', 'x-subledger-tenant': 'acme', 'x-amzn-tenant': 'acme' }
    const listed = await send(door(), 'GET /v1/runs?tenant=acme', globex, { headers })
    expect([listed.status, listed.body.code]).toEqual([400, 'bad_request'])
    expect((await send(door(), 'GET /v1/runs', globex, { headers })).body.runs).toEqual([])
  })

  test('none of this touched the run, and its own tenant sees it: the checks can fail', async () => {
    expect((await send(door(), `GET /v1/runs/${ids.runId}`, acme)).body).toMatchObject({
      status: 'completed',
      round: 1,
    })
    const reads = foreign.filter((route) => route.startsWith('GET '))
    for (const route of reads) {
      if (route.endsWith('/events')) continue // it waits for more
      const answer = await send(door(), withIds(route, ids), acme)
      expect([route, [200, 501].includes(answer.status)]).toEqual([route, true])
    }
    const { runs } = (await send(door(), 'GET /v1/runs', acme)).body
    expect(runs.map((r: { runId: string }) => r.runId)).toContain(ids.runId)
  })
}

/** Point 2: who has no good token is let in nowhere. */
export function tokenChecks(door: () => FrontDoor): void {
  const routes = routesWithData()
  const ids = { runId: '01JZZZZZZZZZZZZZZZZZZZZZZZ', sessionId: '0123456789abcdefghjk', name: TEAM }
  const refused = async (route: string, token: string | null, headers = {}) => {
    const answer = await send(door(), withIds(route, ids), token, { ...bodyOf(route), headers })
    expect([route, [401, 403].includes(answer.status), answer.status, answer.text]).toEqual([
      route,
      true,
      answer.status,
      answer.text,
    ])
    return answer
  }

  test('what holds no data is open', async () => {
    for (const path of ['/', '/v1/health']) expect((await send(door(), `GET ${path}`, null)).status).toBe(200)
  })

  test('a good token is let in: the checks can fail', async () => {
    expect((await send(door(), 'GET /v1/runs', await door().issuer.token())).status).toBe(200)
    const { status } = await send(door(), `GET /v1/runs`, null, {
      headers: { authorization: `bearer  ${await door().issuer.token({ aud: ['x', 'subledger-tests'] })}` },
    })
    expect(status).toBe(200)
  })

  test('no route answers without a token, or to another way of authentication', async () => {
    for (const route of routes) {
      await refused(route, null)
      await refused(route, null, { authorization: 'Basic c29tZWJvZHk6c2VjcmV0' })
      await refused(route, null, {
        authorization: 'AWS4-HMAC-SHA256 Credential=AKIA/20260101/x/execute-api/aws4_request',
      })
    }
  })

  test('no forged token opens any route', async () => {
    const forged = await door().issuer.forged()
    expect(forged.length).toBeGreaterThan(20)
    for (const [what, token] of forged) {
      for (const route of routes) await refused(route, token, { 'x-case': what })
    }
  }, 120_000)

  test('a proved token without a scope or a tenant opens none either', async () => {
    for (const [what, token] of await powerless(door().issuer)) {
      for (const route of routes) expect([what, (await refused(route, token)).status]).toEqual([what, 403])
    }
  }, 60_000)

  test('each scope opens its own routes', async () => {
    const opened = async (claims: Claims) => {
      const token = await door().issuer.token(claims)
      const found: string[] = []
      for (const route of routes.filter((r) => !r.endsWith('/events'))) {
        const answer = await send(door(), withIds(route, ids), token, route === 'POST /v1/runs' ? {} : bodyOf(route))
        if (answer.status !== 403) found.push(route)
        expect([route, answer.status]).not.toEqual([route, 401])
      }
      return found
    }
    const all = routes.filter((r) => !r.endsWith('/events'))
    const reads = all.filter((route) => route.startsWith('GET '))
    expect(await opened({ scope: 'read' })).toEqual(reads)
    const runs = await opened({ scope: ['run'] })
    expect(runs).toEqual(expect.arrayContaining(['POST /v1/runs', 'POST /v1/runs/:runId/cancel']))
    expect(runs.filter((route) => reads.includes(route))).toEqual([])
    const approves = await opened({ scope: 'openid approve' })
    expect([...reads, ...runs].filter((route) => approves.includes(route))).toEqual([])
    expect(await opened({ scope: 'admin' })).toEqual(all)
  }, 60_000)

  describe('when the issuer changes its keys', () => {
    test('tokens of the new key are taken, and those of the old one while it is in the set', async () => {
      const old = await door().issuer.token()
      await door().issuer.rotate()
      const fresh = await door().issuer.token()
      for (const token of [fresh, old]) expect((await send(door(), 'GET /v1/runs', token)).status).toBe(200)
    })

    test('a key that has been taken away is no longer good once the set has been read again', async () => {
      const old = await door().issuer.token()
      await door().issuer.rotate({ keepOld: false })
      expect((await send(door(), 'GET /v1/runs', await door().issuer.token())).status).toBe(200)
      await refused('GET /v1/runs', old)
    })
  })
}
