/** Deletion and retention: a run is gone at once for every read; its money stays in the reports; the sweep removes the rest. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { dayOf } from '../../src/domain/report.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { createApp } from '../../src/http/app.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { type MemoryTable, memoryTable } from '../../src/store/memory-table.ts'
import { systemClock } from '../../src/system.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { desk, echo } from './api.ts'

const DAY_MS = 86_400_000
const SOON_MS = 21 * 60_000
/** The machine's own time, moved on. */
let ahead = 0
const clock = { now: () => systemClock.now() + ahead, sleep: systemClock.sleep }
let table: MemoryTable
let engine: TestEngine
let app: ReturnType<typeof createApp>

function open(retentionMs?: number): void {
  ahead = 0
  table = memoryTable()
  engine = testEngine({ table, teams: [desk, echo], clock, ...(retentionMs !== undefined && { retentionMs }) })
  app = createApp(engine.ctx, { tenantOf: () => 'local' })
}
beforeEach(() => open())
afterEach(() => engine.invoker.close())

const post = (path: string, body: object) =>
  app.request(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
async function run(team: string): Promise<RunView> {
  const started = (await (await post('/v1/runs', { team, input: 'go' })).json()) as RunView
  await engine.invoker.drain()
  return (await (await app.request(`/v1/runs/${started.runId}`)).json()) as RunView
}
const remove = (runId: string) => app.request(`/v1/runs/${runId}`, { method: 'DELETE' })
const listed = async () =>
  ((await (await app.request('/v1/runs')).json()) as { runs: RunView[] }).runs.map((r) => r.runId)
const itemsOf = (runId: string) => table.items().filter((item) => String(item.pk).endsWith(`#RUN#${runId}`))
const spent = async () => engine.ctx.store.readUsage({ tenant: 'local', day: dayOf(systemClock.now()) })
const sweepNow = () => sweep(engine.ctx, { deadlineAt: clock.now() + 120_000 })

/** Every route that tells of a run or does something to it. */
async function statuses({ runId, rootSessionId }: RunView): Promise<number[]> {
  const path = `/v1/runs/${runId}`
  const answers = [
    ...[
      '',
      '?exact=true',
      '/sessions',
      `/sessions/${rootSessionId}`,
      `/sessions/${rootSessionId}/messages`,
      '/calls',
      '/approvals',
      '/audit',
      '/events',
    ].map((p) => app.request(path + p)),
    app.request(`${path}/usage`),
    post(`${path}/input`, { input: 'and on' }),
    post(`${path}/cancel`, {}),
    post(`${path}/retry`, {}),
    post(`${path}/approvals/${rootSessionId}.0.0`, { decision: 'approve' }),
    post(`${path}/receipts`, { receipts: [{ responseId: 'x', inputTokens: 1, outputTokens: 1 }] }),
    remove(runId),
  ]
  return (await Promise.all(answers)).map((a) => a.status)
}

describe('DELETE', () => {
  test('an ended run is gone at once, for every route and in the list', async () => {
    const [gone, other] = [await run('desk'), await run('echo')]
    const answer = await remove(gone.runId)
    expect([answer.status, await answer.text()]).toEqual([204, ''])
    expect(new Set(await statuses(gone))).toEqual(new Set([404]))
    expect(await listed()).toEqual([other.runId])
    expect((await app.request(`/v1/runs/${other.runId}`)).status).toBe(200)
  })

  test('what it has written is removed in the background, and its money stays in the reports', async () => {
    const [gone, other] = [await run('desk'), await run('echo')]
    const before = await spent()
    const kept = itemsOf(other.runId)
    await remove(gone.runId)
    // late answers to its calls may still come
    expect((await sweepNow()).purged).toBe(0)
    const items = itemsOf(gone.runId).length
    expect(items).toBeGreaterThan(10)
    ahead = SOON_MS
    expect((await sweepNow()).purged).toBe(items)
    expect(itemsOf(gone.runId)).toEqual([])
    expect(itemsOf(other.runId)).toEqual(kept)
    expect(await spent()).toEqual(before)
    expect(before.length).toBeGreaterThan(0)
    expect((await sweepNow()).runs).toBe(0)
    expect((await remove(gone.runId)).status).toBe(404)
  })

  test('a run that goes on is not deleted', async () => {
    engine.lose = () => true
    const { runId } = (await (await post('/v1/runs', { team: 'echo', input: 'go' })).json()) as RunView
    const answer = await remove(runId)
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([409, 'run_active'])
    expect((await app.request(`/v1/runs/${runId}`)).status).toBe(200)
  })

  test('an input that looked before the run was deleted opens no round after it', async () => {
    const { runId } = await run('echo')
    const ref = { tenant: 'local', runId }
    await remove(runId)
    const late = { seenRound: 1, inputRef: 'x', dueAt: clock.now(), now: clock.now() }
    expect(await engine.ctx.store.openRound(ref, late)).toEqual({ written: false })
  })

  test("another tenant's run is not there to be deleted", async () => {
    const { runId } = await run('echo')
    const foreign = createApp(engine.ctx, { tenantOf: () => 'foreign' })
    expect((await foreign.request(`/v1/runs/${runId}`, { method: 'DELETE' })).status).toBe(404)
    expect(await listed()).toEqual([runId])
  })

  test('a sweep that has no time left goes on the next time', async () => {
    const { runId } = await run('desk')
    await remove(runId)
    ahead = SOON_MS
    const items = itemsOf(runId).length
    const ref = (await engine.ctx.store.getRun({ tenant: 'local', runId }, { gone: true }))!
    expect(await engine.ctx.store.purgeRun(ref, 3)).toEqual({ removed: 3, done: false })
    expect(itemsOf(runId)).toHaveLength(items - 3)
    expect(itemsOf(runId).map((item) => item.sk)).toContain('RUN')
    expect((await sweepNow()).purged).toBe(items - 3)
    expect(itemsOf(runId)).toEqual([])
  })
})

describe('retention', () => {
  test('a run is gone when its time is over, whether or not the table has removed it, and the sweep removes the rest', async () => {
    await engine.invoker.close()
    open(30 * DAY_MS)
    const old = await run('desk')
    ahead = 30 * DAY_MS - 60_000
    expect((await app.request(`/v1/runs/${old.runId}`)).status).toBe(200)
    expect(await listed()).toEqual([old.runId])
    ahead = 30 * DAY_MS + 60_000
    expect(itemsOf(old.runId).length).toBeGreaterThan(10)
    expect(new Set(await statuses(old))).toEqual(new Set([404]))
    expect(await listed()).toEqual([])
    expect((await sweepNow()).purged).toBeGreaterThan(10)
    expect(itemsOf(old.runId)).toEqual([])
  })

  test('the table itself removes RUN a week later, and no item of a run but RUN has a time', async () => {
    await engine.invoker.close()
    open(30 * DAY_MS)
    const { runId } = await run('desk')
    const timed = itemsOf(runId).filter((item) => item.ttl !== undefined)
    expect(timed.map((item) => item.sk)).toEqual(['RUN'])
    const days = (Number(timed[0]!.ttl) * 1000 - clock.now()) / DAY_MS
    expect(Math.round(days)).toBe(37)
  })

  test('a run that goes on in a new round has all its time again', async () => {
    await engine.invoker.close()
    open(30 * DAY_MS)
    const { runId } = await run('echo')
    ahead = 29 * DAY_MS
    await post(`/v1/runs/${runId}/input`, { input: 'and on' })
    await engine.invoker.drain()
    ahead = 31 * DAY_MS
    expect((await sweepNow()).purged).toBe(0)
    expect((await app.request(`/v1/runs/${runId}`)).status).toBe(200)
  })

  test('without a setting a run is kept for ever', async () => {
    const { runId } = await run('echo')
    ahead = 20 * 365 * DAY_MS
    expect((await sweepNow()).purged).toBe(0)
    expect((await app.request(`/v1/runs/${runId}`)).status).toBe(200)
  })
})
