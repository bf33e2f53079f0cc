/** The functions of serverless.yml under serverless-offline answer as their own OpenAPI document says. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { driveContract, TEAMS } from '../openapi/contract.ts'
import { readDocument } from '../openapi/document.ts'
import { type Workplace, workplace } from '../support/product.ts'
import { type OfflineProcess, startOffline } from './offline-process.ts'

let place: Workplace
let offline: OfflineProcess
beforeAll(async () => {
  place = await workplace(TEAMS)
  offline = await startOffline({ SUBLEDGER_TEAMS: place.teams })
}, 60_000)
afterAll(async () => {
  await offline?.stop()
  await place.remove()
}, 60_000)

test('each documented answer of each operation, but those that need a fault or authentication', async () => {
  const doc = readDocument((await (await fetch(`${offline.api}/openapi.json`)).json()) as object)
  const origin = new URL(offline.api).origin
  const { driven, beyond } = await driveContract(doc, {
    send: (path, init) => fetch(`${origin}${path}`, init),
    beyond: {
      unauthorized: 'it is started without authentication',
      internal: 'nothing is out of order',
      throttled: 'the embedded table is never busy',
      keys_unavailable: 'there are no tokens, so there is no issuer',
      too_many_streams: 'there are no streams, answers are given whole',
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
}, 120_000)
