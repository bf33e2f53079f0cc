/** The deployed functions under serverless-offline, with the request authorizer of serverless.yml before the API. */
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OfflineProcess, startOffline } from '../offline/offline-process.ts'
import { AUDIENCE, type Issuer, startIssuer } from '../support/oidc-issuer.ts'
import { type FrontDoor, send, tenantChecks, tokenChecks } from './front-door.ts'

let issuer: Issuer
let offline: OfflineProcess
beforeAll(async () => {
  issuer = await startIssuer()
  offline = await startOffline({
    SUBLEDGER_TEAMS: path.resolve('test/offline/teams'),
    SUBLEDGER_AUTH: 'oidc',
    SUBLEDGER_OIDC_ISSUER: issuer.url,
    SUBLEDGER_OIDC_AUDIENCE: AUDIENCE,
    SUBLEDGER_OIDC_COOLDOWN_SECONDS: '0',
  })
}, 60_000)
afterAll(async () => {
  await offline?.stop()
  await issuer.close()
})

const door = (): FrontDoor => ({ issuer, url: offline.api.replace(/\/v1$/, ''), fetch: (request) => fetch(request) })

describe('two tenants', () => tenantChecks(door))
describe('tokens', () => tokenChecks(door))

test('a forged token is refused by the gateway, and one without a scope by the API behind it', async () => {
  const forged = (await issuer.forged()).find(([what]) => what === 'alg none, unsigned')![1]
  const atTheGate = await send(door(), 'GET /v1/runs', forged)
  expect([atTheGate.status, atTheGate.body.code]).toEqual([403, undefined])
  const inside = await send(door(), 'GET /v1/runs', await issuer.token({ scope: '' }))
  expect([inside.status, inside.body.code]).toEqual([403, 'forbidden'])
})

test('a path that does not exist is shut as well', async () => {
  expect((await send(door(), 'GET /v1/nowhere', null)).status).toBe(401)
  expect((await send(door(), 'GET /v1/nowhere', await issuer.token())).status).toBe(404)
})
