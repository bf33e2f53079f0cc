/** docs/http-api.md says what the API does: its routes, its errors, its shapes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ERRORS, type ErrorCode } from '../../src/domain/errors.ts'
import { createApp } from '../../src/http/app.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { UsageReport } from '../../src/http/views/usage.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { parseTeam } from '../../src/team/parse-team.ts'
import { testEngine } from '../support/engine.ts'
import { blocks, code, page, ROOT, table } from './pages.ts'

const doc = page('docs/http-api.md')
const demo = parseTeam(readFileSync(join(ROOT, 'teams/demo.yaml'), 'utf8'), { file: 'demo.yaml' }).team!
const engine = testEngine({ table: memoryTable(), teams: [demo] })
const app = createApp(engine.ctx, { tenantOf: () => 'local' })
afterAll(() => engine.invoker.close())
const PROBLEM = 'application/problem+json'
/** the parts of answers that are looked into */
interface Answer {
  readonly [key: string]: unknown
}
const read = async <T = Answer>(response: Response): Promise<T> => (await response.json()) as T

/** `GET /v1/runs/{runId}`, as the API knows it. */
const routes = [
  ...new Set(
    app.routes.filter((r) => r.method !== 'ALL').map((r) => `${r.method} ${r.path.replace(/:(\w+)/g, '{$1}')}`),
  ),
]
const documented = table(doc, 'route', 'answer').map(([route]) => code(route!))

describe('the routes', () => {
  test('that the page lists are those that the API has', () => {
    expect(documented.toSorted()).toEqual(routes.toSorted())
  })

  test.each(['webhook'])('the field %s answers 501', async (field) => {
    const body = JSON.stringify({ team: 'demo', input: 'x', [field]: {} })
    const headers = { 'content-type': 'application/json' }
    expect((await app.request('/v1/runs', { method: 'POST', headers, body })).status).toBe(501)
  })
})

describe('the errors', () => {
  test('that the page lists are those that the code has, with their statuses', () => {
    const listed = table(doc, 'code', 'status', 'when').map(([name, status]) => [code(name!), Number(status)])
    expect(Object.fromEntries(listed)).toEqual(
      Object.fromEntries(Object.entries(ERRORS).map(([name, { status }]) => [name, status])),
    )
    expect(listed).toHaveLength(Object.keys(ERRORS).length)
  })

  test('the example is what the API answers', async () => {
    const example = JSON.parse(blocks(doc).find((b) => b.language === 'json')!.text)
    const body = /`(\{[^`]+\})` is answered with/.exec(doc.text)![1]!
    const headers = { 'content-type': 'application/json' }
    const response = await app.request('/v1/runs', { method: 'POST', headers, body })
    expect(response.headers.get('content-type')).toBe(PROBLEM)
    expect(await read(response)).toEqual(example)
    expect(example).toMatchObject({ status: ERRORS[example.code as ErrorCode].status })
  })
})

describe('the shapes', () => {
  const shapes = new Map(
    [
      ...blocks(doc)
        .find((b) => b.text.startsWith('run '))!
        .text.matchAll(/^(\w+) +\{ ([^}]+) \}/gm),
    ].map((m) => [m[1]!, m[2]!.split(/,\s*/)]),
  )
  const required = (name: string) => shapes.get(name)!.filter((k) => !k.endsWith('?'))
  const all = (name: string) => shapes.get(name)!.map((k) => k.replace('?', ''))
  let run: RunView
  const get = async <T = Answer>(path: string) => read<T>(await app.request(path))

  beforeAll(async () => {
    const body = JSON.stringify({ team: 'demo', input: 'Write the notes.' })
    const headers = { 'content-type': 'application/json' }
    run = await read<RunView>(await app.request('/v1/runs', { method: 'POST', headers, body }))
    await engine.invoker.drain()
  })

  test('of a run are what the API answers', async () => {
    expect(Object.keys(run).sort()).toEqual(all('run').sort())
    const ended = await get<RunView>(`/v1/runs/${run.runId}`)
    expect(Object.keys(ended).sort()).toEqual(all('run').sort())
    expect(ended.status).toBe('completed')
    expect(Object.keys(ended.usage).sort()).toEqual(all('usage').sort())
  })

  test('of sessions, messages and calls are what the API answers', async () => {
    const { sessions } = await get<{ sessions: Answer[] }>(`/v1/runs/${run.runId}/sessions`)
    const { calls } = await get<{ calls: Answer[] }>(`/v1/runs/${run.runId}/calls`)
    const { messages } = await get<{ messages: Answer[] }>(
      `/v1/runs/${run.runId}/sessions/${run.rootSessionId}/messages`,
    )
    for (const [name, items] of Object.entries({ session: sessions, call: calls, message: messages })) {
      expect(items.length).toBeGreaterThan(3)
      for (const item of items) {
        expect(Object.keys(item)).toEqual(expect.arrayContaining(required(name)))
        expect(all(name)).toEqual(expect.arrayContaining(Object.keys(item)))
      }
    }
  })

  test('of an estimate are what the API answers', async () => {
    const body = JSON.stringify({ team: 'demo', input: 'Write the notes.' })
    const headers = { 'content-type': 'application/json' }
    const estimate = await read(await app.request('/v1/runs?dryRun=true', { method: 'POST', headers, body }))
    expect(Object.keys(estimate).sort()).toEqual(all('estimate').sort())
  })

  test('of the books are what the API answers', async () => {
    const books = await get<UsageReport>(`/v1/runs/${run.runId}/usage`)
    expect(Object.keys(books).sort()).toEqual(all('books').sort())
    expect(Object.keys(books.total).sort()).toEqual(all('figures').sort())
  })
})
