/** Large runs are read whole, page by page, each item once, and no answer is more than Lambda gives back. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallView } from '../../src/http/views/call.ts'
import type { MessageView } from '../../src/http/views/message.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'
import {
  aChild,
  aHeader,
  aRequest,
  aResponse,
  aRun,
  childRef,
  DRIVER,
  rootRef,
  runId,
  T0,
} from '../support/builders.ts'
import { type Api, openApi } from './api.ts'

/** What Lambda gives back at most, the answer being a string in JSON. */
const LAMBDA_BYTES = 6_291_556
let api: Api
beforeAll(async () => {
  api = openApi()
  const { store } = api.ctx
  await store.putDefinition(aRun(), aRun().definition, await api.ctx.teams.get('desk'))
  await store.createRun(aRun())
})
afterAll(() => api.close())

interface Read<T> {
  readonly items: T[]
  readonly pages: number
  readonly empty: number
  readonly largest: number
}

/** Every page of a list, as Lambda would send it. */
async function readAll<T>(path: string, key: string, limit: number, filter = ''): Promise<Read<T>> {
  const read = { items: [] as T[], pages: 0, empty: 0, largest: 0 }
  let cursor = ''
  do {
    const { status, body } = await api.get<Record<string, unknown>>(`${path}?limit=${limit}${filter}${cursor}`)
    expect(status).toBe(200)
    const items = body[key] as T[]
    read.items.push(...items)
    read.pages++
    if (items.length === 0) read.empty++
    read.largest = Math.max(read.largest, Buffer.byteLength(JSON.stringify({ body: JSON.stringify(body) })))
    cursor = body.next === null ? '' : `&cursor=${encodeURIComponent(String(body.next))}`
  } while (cursor !== '')
  return read
}

describe('a transcript of 7 MB', () => {
  const path = `/v1/runs/${aRun().runId}/sessions/${childRef(rootRef(), 7_000).sessionId}/messages`
  const TURNS = 100
  /** quotes, which are escaped twice on their way, and letters of more than one byte */
  const text = (n: number) => `${n} said: ${'"ä" '.repeat(9_000)}`
  let bytes = 0
  beforeAll(async () => {
    const { store } = api.ctx
    const ref = childRef(rootRef(), 7_000)
    await store.putHeader(aChild(7_000, { status: 'running', lease: T0 + 90_000 }))
    for (let n = 0; n < TURNS; n++) {
      const call = { id: `c${n}`, name: 'tool', arguments: '{}' }
      const result = { role: 'tool' as const, toolCallId: `c${n - 1}`, toolName: 'tool', content: text(n) }
      await store.putRequest(ref, n === 0 ? aRequest(0) : aRequest(n, { messages: [result] }), DRIVER)
      const message = { role: 'assistant' as const, content: text(n), toolCalls: [call] }
      await store.putResponse(ref, aResponse(n, { message }), DRIVER)
      bytes += 2 * Buffer.byteLength(text(n))
    }
  })

  test.each([7, 100])('is read whole in pages of %i, each message once', async (limit) => {
    expect(bytes).toBeGreaterThan(7_000_000)
    const { items, largest } = await readAll<MessageView>(path, 'messages', limit)
    const said = items.filter((m) => m.role === 'assistant').map((m) => m.content)
    expect(said).toEqual(Array.from({ length: TURNS }, (_, n) => text(n)))
    expect(items.filter((m) => m.role === 'tool').map((m) => m.content)).toEqual(said.slice(1))
    expect(largest).toBeLessThan(LAMBDA_BYTES)
  })
})

describe('a run of 2,000 sessions', () => {
  const SESSIONS = 2_000
  const run = aRun({ runId: runId(2_000), tasks: SESSIONS, status: 'completed' })
  const path = `/v1/runs/${run.runId}`
  const children = Array.from({ length: SESSIONS }, (_, i) => childRef(rootRef(run), i).sessionId)
  beforeAll(async () => {
    const { store } = api.ctx
    await store.putDefinition(run, run.definition, await api.ctx.teams.get('desk'))
    await store.createRun(run)
    const of = { runId: run.runId, status: 'completed' as const, finishedAt: T0 }
    await store.putHeader(aHeader({ ...of, ...rootRef(run), agent: null, parentId: null }))
    for (const [i, sessionId] of children.entries()) {
      // every twentieth is a group, which is hidden
      const kind = i % 20 === 0 ? 'group' : 'task'
      await store.putHeader(aChild(i, { ...of, sessionId, kind, parentId: rootRef(run).sessionId }))
      await store.putResponse({ ...run, sessionId }, aResponse(0), DRIVER)
    }
  })

  test.each([7, 100])('is listed whole in pages of %i, each session once', async (limit) => {
    const { items, largest } = await readAll<SessionView>(`${path}/sessions`, 'sessions', limit)
    const shown = children.filter((_, i) => i % 20 !== 0)
    expect(items.map((s) => s.sessionId)).toEqual([rootRef(run).sessionId, ...shown].toSorted())
    expect(largest).toBeLessThan(LAMBDA_BYTES)
  })

  test('has all its calls in its list, each once', async () => {
    const { items } = await readAll<CallView>(`${path}/calls`, 'calls', 100)
    expect(items.map((c) => c.sessionId)).toEqual(children.toSorted())
  })

  test('is shown by the route of the run', async () => {
    const { body } = await api.get<RunView>(path)
    expect(body.sessions!.total).toBe(SESSIONS * 0.95 + 1)
  })
})

test('a run of 1,000 sessions is listed in less than 130 read units', async () => {
  const run = aRun({ runId: runId(1_000), tasks: 999, status: 'completed' })
  const { store } = api.ctx
  await store.putDefinition(run, run.definition, await api.ctx.teams.get('desk'))
  await store.createRun(run)
  const of = { runId: run.runId, status: 'completed' as const, finishedAt: T0 }
  await store.putHeader(aHeader({ ...of, ...rootRef(run), agent: null, parentId: null }))
  const preview = 'x'.repeat(120)
  for (let i = 0; i < 999; i++)
    await store.putHeader(
      aChild(i, {
        ...of,
        sessionId: childRef(rootRef(run), i).sessionId,
        parentId: rootRef(run).sessionId,
        taskPreview: preview,
        outputPreview: preview,
      }),
    )
  api.meter.reset()
  const { items } = await readAll<SessionView>(`/v1/runs/${run.runId}/sessions`, 'sessions', 100)
  const { readUnits } = api.meter.snapshot()
  expect(items).toHaveLength(1_000)
  expect(readUnits).toBeLessThan(130)
})

test('a filter that leaves pages empty does not end the list, and loses nothing', async () => {
  const { store } = api.ctx
  const rare = new Set([0, 700, 1_999])
  for (let i = 0; i < 2_000; i++)
    await store.createRun(aRun({ runId: runId(10_000 + i), team: rare.has(i) ? 'rare' : 'common' }))
  const { items, empty } = await readAll<RunView>('/v1/runs', 'runs', 1, '&team=rare')
  expect(items.map((r) => r.runId)).toEqual([1_999, 700, 0].map((i) => runId(10_000 + i)))
  expect(empty).toBeGreaterThan(0)
  const all = await readAll<RunView>('/v1/runs', 'runs', 100)
  expect(new Set(all.items.map((r) => r.runId)).size).toBe(all.items.length)
  expect(all.items.length).toBe(2_003)
})
