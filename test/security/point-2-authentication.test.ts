/** Nothing answers without authentication but what holds no data: the app itself, without a network in front of it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readAuth } from '../../src/config-auth.ts'
import { authorizer } from '../../src/http/auth/authorizer.ts'
import { doorOf } from '../../src/http/auth/identify.ts'
import { scopeOf } from '../../src/http/auth/scopes.ts'
import type { OidcSettings } from '../../src/http/auth/settings.ts'
import { type Embedded, startEmbedded } from '../../src/local/embedded.ts'
import { AUDIENCE, type Issuer, startIssuer } from '../support/oidc-issuer.ts'
import { type FrontDoor, routesWithData, send, tokenChecks } from './front-door.ts'

const URL = 'http://localhost'
let issuer: Issuer
beforeAll(async () => {
  issuer = await startIssuer()
})
afterAll(() => issuer.close())

const oidc = (more: { [name: string]: string } = {}) =>
  readAuth(
    {
      SUBLEDGER_AUTH: 'oidc',
      SUBLEDGER_OIDC_ISSUER: issuer.url,
      SUBLEDGER_OIDC_AUDIENCE: AUDIENCE,
      SUBLEDGER_OIDC_COOLDOWN_SECONDS: '0',
      ...more,
    },
    'local',
  ) as OidcSettings

describe('the app', () => {
  let embedded: Embedded
  beforeAll(async () => {
    embedded = await open(oidc())
  })
  afterAll(() => embedded.stop())
  tokenChecks(() => ({ issuer, url: URL, fetch: embedded.fetch }))
})

const open = (settings: OidcSettings) =>
  startEmbedded({
    dataDir: null,
    teamsDir: 'test/offline/teams',
    env: {},
    work: false,
    door: doorOf(settings, 'local'),
  })

describe('every route', () => {
  test.each(routesWithData())('%s has a scope', (route) => {
    const [method, path] = route.split(' ')
    expect(scopeOf(method!, path!)).toMatch(/^(read|run|approve|admin)$/)
  })

  test('that has none keeps the app from being made', () => {
    expect(() => scopeOf('GET', '/v1/secrets')).toThrow('The route GET /v1/secrets has no scope')
    expect(() => scopeOf('GET', 'constructor')).toThrow('has no scope')
  })
})

describe('a refusal', () => {
  test.each([
    ['exp', { exp: 1 }, 'The token has expired: get a new one.'],
    ['nbf', { nbf: 4_000_000_000 }, 'The token is not valid yet.'],
    ['iss', { iss: 'https://other.example' }, 'The token is of another issuer.'],
    ['aud', { aud: 'other' }, 'The token is for another audience.'],
    ['sub', { sub: undefined }, 'The token has no valid claim "sub".'],
    [
      'the type of sub',
      { sub: 42 },
      'The token has no valid claim "sub": it must be a text of 1 to 1024 bytes without control characters.',
    ],
  ])('says what is wrong with %s, and how to authenticate', async (_claim, claims, detail) => {
    const embedded = await open(oidc())
    const answer = await send({ issuer, url: URL, fetch: embedded.fetch }, 'GET /v1/runs', await issuer.token(claims))
    expect([answer.status, answer.body.detail]).toEqual([401, detail])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    await embedded.stop()
  })

  test('clocks may differ by the tolerance and no more', async () => {
    const embedded = await open(oidc({ SUBLEDGER_OIDC_TOLERANCE_SECONDS: '30' }))
    const door: FrontDoor = { issuer, url: URL, fetch: embedded.fetch }
    const now = Math.floor(Date.now() / 1000)
    expect((await send(door, 'GET /v1/runs', await issuer.token({ exp: now - 10 }))).status).toBe(200)
    expect((await send(door, 'GET /v1/runs', await issuer.token({ exp: now - 60 }))).status).toBe(401)
    await embedded.stop()
  })

  test('claims and scopes may have other names', async () => {
    const embedded = await open(
      oidc({
        SUBLEDGER_OIDC_TENANT_CLAIM: 'custom:team',
        SUBLEDGER_OIDC_SCOPE_CLAIM: 'scp',
        SUBLEDGER_OIDC_SCOPE_PREFIX: 'subledger/',
      }),
    )
    const door: FrontDoor = { issuer, url: URL, fetch: embedded.fetch }
    const good = { tenant: undefined, scope: undefined, 'custom:team': 'acme', scp: ['subledger/read'] }
    expect((await send(door, 'GET /v1/runs', await issuer.token(good))).status).toBe(200)
    expect((await send(door, 'GET /v1/runs', await issuer.token())).status).toBe(403)
    expect((await send(door, 'GET /v1/runs', await issuer.token({ ...good, scp: ['read'] }))).status).toBe(403)
    await embedded.stop()
  })
})

describe('the keys of the issuer', () => {
  const verifying = async (settings: OidcSettings) => {
    const { tokenVerifier } = await import('../../src/http/auth/oidc.ts')
    return tokenVerifier(settings)
  }

  test('are read once for many tokens, and not at all for what cannot be a token of theirs', async () => {
    const verify = await verifying(oidc({ SUBLEDGER_OIDC_COOLDOWN_SECONDS: '3600' }))
    const before = issuer.keyReads()
    for (const [what, token] of await issuer.forged())
      if (/none|HS256/.test(what)) await expect(verify(token)).rejects.toThrow()
    expect(issuer.keyReads()).toBe(before)
    const tokens = await Promise.all(Array.from({ length: 20 }, () => issuer.token()))
    await Promise.all(tokens.map(verify))
    expect(issuer.keyReads()).toBe(before + 1)
  })

  test('are not read again for each token of an unknown key: nobody can make us ask the issuer without end', async () => {
    const verify = await verifying(oidc({ SUBLEDGER_OIDC_COOLDOWN_SECONDS: '3600' }))
    await verify(await issuer.token())
    const before = issuer.keyReads()
    const stranger = (await issuer.forged()).find(([what]) => what === 'of a key that the issuer does not have')![1]
    for (let i = 0; i < 10; i++) await expect(verify(stranger)).rejects.toMatchObject({ code: 'unauthorized' })
    expect(issuer.keyReads()).toBe(before)
  })

  test('that cannot be read make a refusal that may be tried again, and no open door', async () => {
    const embedded = await open(oidc())
    const door: FrontDoor = { issuer, url: URL, fetch: embedded.fetch }
    issuer.fail(true)
    const answer = await send(door, 'GET /v1/runs', await issuer.token())
    expect([answer.status, answer.body.code, answer.headers.get('retry-after')]).toEqual([503, 'keys_unavailable', '1'])
    issuer.fail(false)
    expect((await send(door, 'GET /v1/runs', await issuer.token())).status).toBe(200)
    await embedded.stop()
  })

  test('of an issuer whose document is of another one are not used', async () => {
    const verify = await verifying({ ...oidc(), issuer: `${issuer.url}/` })
    await expect(verify(await issuer.token({ iss: `${issuer.url}/` }))).rejects.toMatchObject({
      code: 'keys_unavailable',
    })
  })
})

describe('the second lock', () => {
  const log = { info: () => {}, warn: () => {}, error: () => {} }

  test('takes the tokens that the API takes, and hands nothing on', async () => {
    const check = authorizer(oidc(), log)
    expect(await check({ authorization: `Bearer ${await issuer.token()}` }, 'r')).toEqual({ isAuthorized: true })
    expect(await check({ Authorization: `Bearer ${await issuer.token({ scope: '' })}` }, 'r')).toEqual({
      isAuthorized: true,
    })
  })

  test('takes no other', async () => {
    const check = authorizer(oidc(), log)
    for (const headers of [undefined, {}, { authorization: 'Basic x' }, { authorization: 'Bearer' }])
      expect(await check(headers, 'r')).toEqual({ isAuthorized: false })
    for (const [what, token] of await issuer.forged())
      expect([what, await check({ authorization: `Bearer ${token}` }, 'r')]).toEqual([what, { isAuthorized: false }])
  })

  test('stands only where there are tokens', () => {
    expect(() => authorizer({ kind: 'none' }, log)).toThrow('SUBLEDGER_AUTH is not oidc')
  })
})
