import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatUsd, parseUsd } from '../../src/domain/money.ts'
import { booksOf, known, NO_TOTALS } from '../../src/domain/usage.ts'
import { createApp } from '../../src/http/app.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { aChild, aRun, aRunningHeader, money, row, T0 } from '../support/builders.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { type Api, desk, echo, expectProblem, openApi } from './api.ts'

const slow = scriptedTeam('slow', [{ agent: agent('root'), steps: [{ text: 'late', delayMs: 600_000 }] }])
const unknownRow = (calls: number) => row(calls, { outcome: 'unknown' })

describe('runs', () => {
  let api: Api
  beforeEach(() => {
    api = openApi({ teams: [desk, echo, slow] })
  })
  afterEach(() => api.close())

  test('a run is accepted with its place, and is whole from the first answer on', async () => {
    const { status, headers, body } = await api.post<RunView>('/v1/runs', {
      team: 'echo',
      input: 'good day',
      tags: { desk: 'north' },
      maxConcurrency: 3,
    })
    expect(status).toBe(202)
    expect(headers.get('location')).toBe(`/v1/runs/${body.runId}`)
    expect(body).toMatchObject({
      team: 'echo',
      agent: 'root',
      status: 'running',
      stopReason: null,
      round: 1,
      input: 'good day',
      tasks: null,
      output: null,
      error: null,
      usage: { calls: 0, inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 },
      costUsd: '0',
      costComplete: true,
      unpricedCalls: 0,
      budget: null,
      sessions: { total: 1, queued: 1, running: 0, waiting: 0, completed: 0, failed: 0, cancelled: 0 },
      maxConcurrency: 3,
      tags: { desk: 'north' },
      cancelRequestedAt: null,
      finishedAt: null,
    })
    expect(body.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  test('a run that has ended tells its answer, its figures and its sessions', async () => {
    const run = await api.run({ team: 'desk', input: 'go' })
    expect(run).toMatchObject({
      status: 'completed',
      stopReason: 'end_turn',
      input: 'go',
      output: 'all done',
      usage: { calls: 8, inputTokens: 6300, cacheReadTokens: 400, outputTokens: 223 },
      // 3 in, 0.3 cached and 15 out per million: 5,900·3 + 400·0.3 + 223·15
      costUsd: '0.021165',
      costComplete: true,
      waste: { calls: 0, costUsd: '0' },
      unknown: { calls: 0, costUsd: '0' },
      sessions: { total: 4, completed: 4 },
    })
    expect(run.finishedAt).not.toBeNull()
    expect(api.complaints).toEqual([])
  })

  test('the sum of the sessions, the sum of the calls and the settled total are the same', async () => {
    const run = await api.run({ team: 'desk', input: 'go' })
    const ref = { tenant: 'local', runId: run.runId }
    const { run: stored, headers } = await api.ctx.store.getRunWithSessions(ref)
    expect(known(booksOf(headers.flatMap((h) => h.rows)))).toEqual(known(stored!.books))
    const exact = await api.get<RunView>(`/v1/runs/${run.runId}?exact=true`)
    expect(exact.body).toEqual({ ...run, asOf: exact.body.asOf })
  })

  test('a run that goes on shows what its sessions have spent so far, and how old that is', async () => {
    const run = aRun()
    await api.ctx.store.createRun(run)
    await api.ctx.store.putHeader(aRunningHeader({ rows: [row(2)], lease: T0 + 130_000, updatedAt: T0 + 50_000 }))
    await api.ctx.store.putHeader(aChild(0, { status: 'running', lease: T0 + 100_000, rows: [row(1), unknownRow(1)] }))
    await api.ctx.store.putHeader(aChild(1, { status: 'failed', rows: [row(1, { outcome: 'failed' })] }))
    await api.ctx.store.putHeader(aChild(2, { kind: 'group', agent: null, status: 'waiting' }))
    const { body } = await api.get<RunView>(`/v1/runs/${run.runId}`)
    expect(body).toMatchObject({
      status: 'running',
      usage: { calls: 4, inputTokens: 400, outputTokens: 200 },
      costUsd: '0.0018',
      waste: { calls: 1, costUsd: '0.00045' },
      unknown: { calls: 1, costUsd: '0.00045' },
      // the group is hidden
      sessions: { total: 3, queued: 0, running: 2, waiting: 0, completed: 0, failed: 1, cancelled: 0 },
      // the oldest lease was renewed 90 s before it ends
      asOf: new Date(T0 + 10_000).toISOString(),
    })
  })

  test('calls without a price leave the cost incomplete, and say how many they are', async () => {
    await api.ctx.store.createRun(aRun())
    const totals = { ...NO_TOTALS, calls: 2, inputTokens: 9, unpricedCalls: 1, cost: 5n }
    await api.ctx.store.putHeader(
      aRunningHeader({ rows: [{ agent: 'root', model: 'm', outcome: 'accepted', totals }] }),
    )
    const { body } = await api.get<RunView>(`/v1/runs/${aRun().runId}`)
    expect(body).toMatchObject({ costUsd: '0.000000000005', costComplete: false, unpricedCalls: 1 })
  })

  test('a run with a limit shows its budget as parts that make up the whole', async () => {
    await api.ctx.store.createRun(aRun({ limit: money(5) }))
    await api.ctx.store.putHeader(aRunningHeader({ rows: [row(2), unknownRow(1)], avail: money(3) }))
    const { body } = await api.get<RunView>(`/v1/runs/${aRun().runId}`)
    expect(body.budget).toEqual({ usd: '5', tokens: 5_000_000, availableUsd: '3', heldUsd: '1.99865', warnedAt: null })
    const parts = [body.costUsd, body.unknown.costUsd, body.budget!.heldUsd!, body.budget!.availableUsd!]
    expect(formatUsd(parts.map(parseUsd).reduce((a, b) => a + b))).toBe(body.budget!.usd)
  })

  test('looking at a run that goes on takes at most three requests to the table, whatever its size', async () => {
    await api.ctx.store.putInput(aRun(), 1, aRun().inputRef, { input: 'go' })
    await api.ctx.store.createRun(aRun())
    await api.ctx.store.putHeader(aRunningHeader())
    for (let i = 0; i < 200; i++) await api.ctx.store.putHeader(aChild(i, { kind: 'task', status: 'running' }))
    api.meter.reset()
    const { body } = await api.get<RunView>(`/v1/runs/${aRun().runId}`)
    const { gets, queries, puts, updates } = api.meter.snapshot()
    expect({ input: body.input, sessions: body.sessions!.total }).toEqual({ input: 'go', sessions: 201 })
    expect(gets + queries).toBeLessThanOrEqual(3)
    expect(puts + updates).toBe(0)
  })

  test('lists are newest first, filtered, and page without a gap or a double', async () => {
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push((await api.run({ team: i % 2 ? 'desk' : 'echo', input: 'go' })).runId)
    await api.post('/v1/runs', { team: 'slow', input: 'go' })
    const listed = (await api.pages<RunView>('/v1/runs', 'runs', 2)).flat()
    expect(listed.slice(1).map((r) => r.runId)).toEqual(ids.toReversed())
    const one = await api.get<{ runs: RunView[]; next: string | null }>('/v1/runs?team=desk&status=completed')
    expect(one.body.runs.map((r) => r.runId)).toEqual([ids[3], ids[1]])
    expect(one.body.next).toBeNull()
    const running = await api.get<{ runs: RunView[] }>('/v1/runs?status=running')
    expect(running.body.runs.map((r) => r.team)).toEqual(['slow'])
    // what is not in the run's own item is null, not zero
    expect(listed[0]).toMatchObject({ input: null, output: null, sessions: null })
    expect(listed[1]!.costUsd).toBe('0.000105')
  })

  test('an input opens the next round, with its own input and the whole sum', async () => {
    const first = await api.run({ team: 'echo', input: 'one' })
    const { status, headers, body } = await api.post<RunView>(`/v1/runs/${first.runId}/input`, { input: 'two' })
    expect(status).toBe(202)
    expect(headers.get('location')).toBe(`/v1/runs/${first.runId}`)
    expect(body).toMatchObject({ round: 2, status: 'running', input: 'two', output: null })
    await api.invoker.drain()
    const second = (await api.get<RunView>(`/v1/runs/${first.runId}`)).body
    expect(second).toMatchObject({
      round: 2,
      status: 'completed',
      input: 'two',
      output: 'you said two',
      usage: { calls: 2, inputTokens: 20, outputTokens: 10 },
    })
  })

  test('an input to a run that goes on is refused', async () => {
    const { body } = await api.post<RunView>('/v1/runs', { team: 'slow', input: 'go' })
    expectProblem(await api.post(`/v1/runs/${body.runId}/input`, { input: 'more' }), 409, 'run_active')
  })

  test('cancel answers with the run, also when it has ended', async () => {
    const { body } = await api.post<RunView>('/v1/runs', { team: 'slow', input: 'go' })
    const cancelled = await api.send(`/v1/runs/${body.runId}/cancel`, { method: 'POST' })
    expect(cancelled.status).toBe(202)
    await api.invoker.drain()
    const ended = (await api.get<RunView>(`/v1/runs/${body.runId}`)).body
    expect(ended).toMatchObject({ status: 'cancelled', stopReason: 'cancelled', input: 'go' })
    expect(ended.cancelRequestedAt).not.toBeNull()
    const again = await api.post<RunView>(`/v1/runs/${body.runId}/cancel`, {})
    expect([again.status, again.body.status]).toEqual([202, 'cancelled'])
  })

  test('a run of another tenant is not there', async () => {
    const run = await api.run({ team: 'echo', input: 'go' })
    const foreign = createApp(api.ctx, { tenantOf: () => 'other' })
    for (const path of ['', '/sessions', `/sessions/${run.rootSessionId}`, '/calls', '/usage'])
      expect((await foreign.request(`/v1/runs/${run.runId}${path}`)).status).toBe(404)
    expect((await foreign.request(`/v1/runs/${run.runId}/cancel`, { method: 'POST' })).status).toBe(404)
    expect(await (await foreign.request('/v1/runs')).json()).toEqual({ runs: [], next: null })
  })
})
