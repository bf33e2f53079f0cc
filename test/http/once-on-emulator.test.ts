/** What is done once however often and however much at once it is asked for, on the embedded emulator. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Schedule } from '../../src/domain/schedule.ts'
import { tick } from '../../src/engine/tick.ts'
import { createApp } from '../../src/http/app.ts'
import { systemClock } from '../../src/system.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { dynaliteTable, type TestTable } from '../support/tables.ts'

const echo = scriptedTeam('echo', [{ agent: agent('root'), steps: [{ text: 'you said {input}' }] }])

let table: TestTable
let engine: TestEngine
beforeAll(async () => {
  table = await dynaliteTable()
  engine = testEngine({ table: table.table, teams: [echo] })
})
afterAll(async () => {
  await engine.invoker.close()
  await table.close()
})
const runsOf = async (tenant: string) => (await engine.ctx.store.listRuns(tenant, { limit: 100 })).items

test('fifty requests at once with one key make one run, and all get the same answer', async () => {
  const app = createApp(engine.ctx, { tenantOf: () => 'posts' })
  const post = async (key: string, input = 'go') => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key }
    const response = await app.request('/v1/runs', {
      method: 'POST',
      headers,
      body: JSON.stringify({ team: 'echo', input }),
    })
    return `${response.status} ${response.headers.get('location')} ${await response.text()}`
  }
  const before = engine.scripted.bill.length
  const answers = await Promise.all(Array.from({ length: 50 }, () => post('k')))
  expect(new Set(answers).size).toBe(1)
  expect(answers[0]).toMatch(/^202 /)
  await engine.invoker.drain()
  expect((await runsOf('posts')).map((r) => r.status)).toEqual(['completed'])
  expect(engine.scripted.bill.length - before).toBe(1)
  expect(await post('k')).toBe(answers[0])
  expect(await post('k', 'something else')).toMatch(/^422 /)
  // control
  expect(await post('another')).not.toBe(answers[0])
  expect(await runsOf('posts')).toHaveLength(2)
})

test('the same tick of a schedule delivered three times at once starts one run', async () => {
  const at = Math.floor(systemClock.now() / 60_000) * 60_000
  const run = { team: 'echo', input: 'go', budget: { tokens: 1_000_000 } }
  const schedule: Schedule = {
    id: 'nightly',
    expression: 'rate(1 minute)',
    timezone: 'UTC',
    overlap: 'allow',
    run,
    createdAt: at,
  }
  await engine.ctx.store.putSchedule('ticks', schedule, at)
  const ref = { tenant: 'ticks', id: 'nightly' }
  const told = await Promise.all([1, 2, 3].map(() => tick(engine.ctx, ref, at, true)))
  expect(new Set(told.map((t) => `${t.outcome} ${t.runId}`))).toEqual(new Set([`started ${told[0]!.runId}`]))
  await engine.invoker.drain()
  expect((await runsOf('ticks')).map((r) => [r.runId, r.status])).toEqual([[told[0]!.runId, 'completed']])
  // control: the tick before starts another
  await tick(engine.ctx, ref, at - 60_000, true)
  expect(await runsOf('ticks')).toHaveLength(2)
})
