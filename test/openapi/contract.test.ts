/** The OpenAPI document is valid, whole, and true of the app in process. */
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, describe, expect, test } from 'vitest'
import { ERRORS, SubledgerError } from '../../src/domain/errors.ts'
import { createApp } from '../../src/http/app.ts'
import { guardLocal } from '../../src/http/local-guard.ts'
import { openApiDocument } from '../../src/http/openapi/document.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { parseTeam } from '../../src/team/parse-team.ts'
import { fixedTeams, testEngine } from '../support/engine.ts'
import { documentedAnswers, driveContract, type Target, TEAMS } from './contract.ts'
import { readDocument } from './document.ts'

const teams = ['good', 'slow', 'asking', 'failing', 'unpriced'].map(
  (name) => parseTeam(TEAMS[name]!, { file: `${name}.yaml` }).team!,
)
const engine = testEngine({ table: memoryTable(), teams })
const known = fixedTeams(teams)
const ctx = {
  ...engine.ctx,
  teams: {
    ...known,
    get: async (name: string) => {
      if (name === 'broken') throw new SubledgerError('bad_team', 'the team file has an error', { issues: [] })
      return known.get(name)
    },
  },
}
const options = { tenantOf: () => 'local', guard: guardLocal }
const app = createApp(ctx, options)
afterAll(() => engine.invoker.close())

/** The same API over parts that all fail alike. */
function failing(fault: () => Error): ReturnType<typeof createApp> {
  const fail = () => Promise.reject(fault())
  const table: TableClient = { get: fail, put: fail, update: fail, delete: fail, query: fail }
  return createApp({ ...ctx, store: createStore(table), teams: { list: fail, get: fail } }, options)
}
const named = (name: string) => Object.assign(new Error('as DynamoDB says it'), { name })
const FAULTY: { readonly [code: string]: ReturnType<typeof createApp> } = {
  unauthorized: createApp(ctx, {
    ...options,
    tenantOf: () => {
      throw new SubledgerError('unauthorized', 'Sign the request.')
    },
  }),
  keys_unavailable: createApp(ctx, {
    ...options,
    tenantOf: () => {
      throw new SubledgerError('keys_unavailable', 'The issuer of tokens does not answer.')
    },
  }),
  too_many_runs: createApp(
    { ...ctx, store: { ...ctx.store, takePlace: async () => ({ taken: false, places: [] }) } },
    options,
  ),
  too_many_streams: createApp(ctx, { ...options, streams: 0 }),
  internal: failing(() => new Error('out of order')),
  throttled: failing(() => named('ProvisionedThroughputExceededException')),
}
const target: Target = {
  send: async (path, init, code) => (FAULTY[code ?? ''] ?? app).request(path, init),
}

const document = openApiDocument()
const doc = readDocument(JSON.parse(JSON.stringify(document)))

describe('the OpenAPI document', () => {
  test('is valid', async () => {
    const result = await new Validator().validate(structuredClone(document))
    expect(result.errors ?? []).toEqual([])
    expect(result.valid).toBe(true)
  })

  test('control: one that is not valid would be found', async () => {
    const result = await new Validator().validate({ ...structuredClone(document), paths: { runs: { fetch: {} } } })
    expect(result.valid).toBe(false)
  })

  test('is what GET /v1/openapi.json gives to everybody', async () => {
    const response = await FAULTY.unauthorized!.request('/v1/openapi.json')
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(document)))
  })

  test('has the routes that the app has, and no others', () => {
    const routes = new Set(
      app.routes.filter((r) => r.method !== 'ALL').map((r) => `${r.method} ${r.path.replace(/:(\w+)/g, '{$1}')}`),
    )
    expect(doc.operations.map((o) => o.name).sort()).toEqual([...routes].sort())
  })

  test('has every code, each with its status', () => {
    expect([...doc.codes].sort()).toEqual(Object.keys(ERRORS).sort())
    const used = new Set(documentedAnswers(doc).flatMap(({ code }) => (code === null ? [] : [code])))
    const ofNoOperation = ['not_found', 'method_not_allowed']
    expect([...used, ...ofNoOperation].sort()).toEqual(Object.keys(ERRORS).sort())
    for (const { status, code } of documentedAnswers(doc))
      if (code !== null) expect(ERRORS[code as keyof typeof ERRORS].status).toBe(status)
  })

  test('each of its answers, every status and every code, is what the app gives', async () => {
    const { driven, beyond } = await driveContract(doc, target)
    expect(beyond).toEqual([])
    expect(driven).toBe(documentedAnswers(doc).length)
  })

  test('control: an answer of another shape would be found', () => {
    const health = doc.operations.find((o) => o.id === 'health')!
    const headers = { 'content-type': 'application/json' }
    expect(doc.check(health, new Response('{}', { headers }), '{}')).not.toEqual([])
    expect(doc.check(health, new Response('', { status: 418 }), '')).not.toEqual([])
  })
})
