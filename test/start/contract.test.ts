/** `npm start` answers as its own OpenAPI document says. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { driveContract, TEAMS } from '../openapi/contract.ts'
import { readDocument } from '../openapi/document.ts'
import { type Product, startProduct, type Workplace, workplace } from '../support/product.ts'

let place: Workplace
let product: Product
beforeAll(async () => {
  place = await workplace(TEAMS)
  product = await startProduct(place)
})
afterAll(async () => {
  // a model call that goes on would keep the process from ending
  await product?.kill()
  await place.remove()
})

test('each documented answer of each operation, but those that need a fault or authentication', async () => {
  const doc = readDocument(await product.get('/openapi.json'))
  const origin = new URL(product.api).origin
  const { driven, beyond } = await driveContract(doc, {
    send: (path, init) => fetch(`${origin}${path}`, init),
    beyond: {
      unauthorized: 'local mode has no authentication',
      internal: 'nothing is out of order',
      throttled: 'the embedded table is never busy',
      keys_unavailable: 'there are no tokens, so there is no issuer',
      too_many_streams: 'it would take a hundred streams at once',
      too_many_runs: 'it would take ten thousand sessions at once',
    },
  })
  expect(driven).toBeGreaterThan(85)
  expect(beyond).toEqual([
    'internal',
    'keys_unavailable',
    'throttled',
    'too_many_runs',
    'too_many_streams',
    'unauthorized',
  ])
})
