/** `npm start` with authentication on, over HTTP, against an issuer of its own. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AUDIENCE, type Issuer, startIssuer } from '../support/oidc-issuer.ts'
import { type Product, startProduct, type Workplace, workplace } from '../support/product.ts'
import { type FrontDoor, tenantChecks, tokenChecks } from './front-door.ts'

let issuer: Issuer
let place: Workplace
let product: Product
beforeAll(async () => {
  issuer = await startIssuer()
  place = await workplace({})
  product = await startProduct(
    { ...place, teams: 'test/offline/teams' },
    {
      SUBLEDGER_AUTH: 'oidc',
      SUBLEDGER_OIDC_ISSUER: issuer.url,
      SUBLEDGER_OIDC_AUDIENCE: AUDIENCE,
      SUBLEDGER_OIDC_COOLDOWN_SECONDS: '0',
    },
  )
}, 60_000)
afterAll(async () => {
  await product?.stop()
  await issuer.close()
  await place.remove()
})

const door = (): FrontDoor => ({ issuer, url: product.api.replace(/\/v1$/, ''), fetch: (request) => fetch(request) })

test('it says who must have what', async () => {
  await expect.poll(() => product.output()).toContain(`callers need a token of ${issuer.url}`)
})

describe('two tenants', () => tenantChecks(door))
describe('tokens', () => tokenChecks(door))

test('a good token does not open the door to a web page', async () => {
  const response = await fetch(`${product.api}/runs`, {
    headers: { authorization: `Bearer ${await issuer.token()}`, origin: 'https://evil.example' },
  })
  expect(response.status).toBe(403)
})
