/** Who acts for others takes names from them and nothing else: the rest is read from the table or from configuration. */
import path from 'node:path'
import type { Context } from 'aws-lambda'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import type { SessionRef } from '../../src/domain/run.ts'
import { parseWorkerEvent, workerPayload } from '../../src/invoke/worker-event.ts'
import { createStore } from '../../src/store/store.ts'
import { type LambdaServer, startLambdaServer } from '../support/lambda-server.ts'
import { dynaliteTable, type TestTable } from '../support/tables.ts'

type Handler = (event: unknown, context: Context) => Promise<unknown>
const context = { awsRequestId: 'request-1', getRemainingTimeInMillis: () => 60_000 } as Context
const ids = { tenant: 'ours', runId: '01JZZZZZZZZZZZZZZZZZZZZZZZ', sessionId: '0123456789abcdefghjk' }

let table: TestTable
let lambda: LambdaServer
let start: Handler
let worker: Handler
let deadLetter: Handler
const invoked: SessionRef[] = []

beforeAll(async () => {
  table = await dynaliteTable()
  lambda = await startLambdaServer({ worker: async (event) => void invoked.push(event as SessionRef) })
  vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  Object.assign(process.env, {
    SUBLEDGER_TABLE: table.server!.name,
    SUBLEDGER_DYNAMODB_ENDPOINT: table.server!.endpoint,
    SUBLEDGER_LAMBDA_ENDPOINT: lambda.url,
    SUBLEDGER_WORKER: 'worker',
    SUBLEDGER_TENANT: 'ours',
    SUBLEDGER_TEAMS: path.resolve('test/offline/teams'),
  })
  start = (await import('../../handlers/start-run.ts')).handler
  worker = (await import('../../handlers/worker.ts')).handler
  deadLetter = (await import('../../handlers/dead-letter.ts')).handler
})
afterAll(async () => {
  vi.restoreAllMocks()
  await lambda.close()
  await table.close()
})
const store = () => createStore(table.table)
const event = { team: 'fan-out', input: 'Go' }

describe('a worker', () => {
  test('is told three ids and nothing else', () => {
    const more = { ...ids, agent: 'root', model: 'dear', budget: { usd: '1000' } }
    expect(JSON.parse(workerPayload(more))).toEqual(ids)
  })

  test('takes three ids and nothing else, whatever an event says', () => {
    expect(parseWorkerEvent({ ...ids, team: 'x', agent: 'admin', limit: 1e9, definition: '…' })).toEqual(ids)
  })

  test.each([
    ['a tenant that would leave its partition', { ...ids, tenant: 'ours#RUN#x' }],
    ['a run of another shape', { ...ids, runId: '../01JZZZZZZZZZZZZZZZZZZZZZZZ' }],
    ['a session that is a prefix', { ...ids, sessionId: '0123456789' }],
    ['ids that are objects', { tenant: { S: 'ours' }, runId: [ids.runId], sessionId: true }],
    ['ids behind a prototype', Object.create(ids)],
    ['nothing', null],
  ])('refuses %s', (_what, event) => {
    expect(() => parseWorkerEvent(event)).toThrow('Not an event of a worker')
  })

  test("does nothing for a session that is not in its tenant's books", async () => {
    const { runId } = (await start(event, context)) as { runId: string }
    await lambda.settled()
    expect(invoked.splice(0)).toHaveLength(1)
    await worker({ tenant: 'theirs', runId, sessionId: rootSessionId(runId) }, context)
    expect(await store().getRun({ tenant: 'theirs', runId })).toBeUndefined()
    expect(await store().getHeader({ tenant: 'ours', runId, sessionId: rootSessionId(runId) })).toMatchObject({
      status: 'queued',
      attempt: 0,
    })
  })

  test('a dead letter names a run and decides nothing about it', async () => {
    const { runId } = (await start(event, context)) as { runId: string }
    await lambda.settled()
    invoked.splice(0)
    const requestPayload = { tenant: 'theirs', runId, sessionId: rootSessionId(runId), status: 'failed' }
    const body = JSON.stringify({ requestContext: { condition: 'RetriesExhausted' }, requestPayload })
    await deadLetter({ Records: [{ messageId: 'm', body }] }, context)
    await lambda.settled()
    expect(invoked).toEqual([])
    expect(await store().getRun({ tenant: 'ours', runId })).toMatchObject({ status: 'running' })
  })
})

describe('a tick', () => {
  const at = () => new Date().toISOString()

  test('names a schedule and decides nothing about what it starts', async () => {
    const run = { team: 'fan-out', input: 'third', budget: { tokens: 1_000_000 } }
    const schedule = { id: 'made', expression: 'rate(1 day)', timezone: 'UTC', overlap: 'allow', createdAt: 0 } as const
    await store().putSchedule('third', { ...schedule, run }, Date.now())
    const more = { team: 'dear', input: 'ours', budget: { usd: '1000' }, runId: ids.runId }
    const tick = { tenant: 'third', schedule: 'made', scheduledTime: at(), ...more }
    const { runId } = (await start(tick, context)) as { runId: string }
    expect(runId).not.toBe(ids.runId)
    expect(await store().getRun({ tenant: 'third', runId })).toMatchObject({ team: 'fan-out', tags: {} })
    expect(await store().getInput({ tenant: 'third', runId }, 1, '0'.repeat(16))).toEqual({ input: 'third' })
  })

  test.each([
    ['table', false],
    ['eventbridge', true],
  ])('with the scheduler %s, proves that somebody ticks outside: %s', async (scheduler, outside) => {
    vi.stubEnv('SUBLEDGER_SCHEDULER', scheduler)
    vi.resetModules()
    const { handler } = (await import('../../handlers/start-run.ts')) as { handler: Handler }
    const run = { team: 'fan-out', input: 'third', budget: { tokens: 1_000_000 } }
    const ref = { tenant: 'third', id: `by-${scheduler}` }
    const schedule = { expression: 'rate(1 day)', timezone: 'UTC', overlap: 'allow', createdAt: 0 } as const
    await store().putSchedule('third', { id: ref.id, ...schedule, run }, Date.now())
    await handler({ tenant: 'third', schedule: ref.id, scheduledTime: at() }, context)
    vi.unstubAllEnvs()
    expect((await store().getSchedule(ref))!.state).toMatchObject({ outside, ticks: [{ outcome: 'started' }] })
  })

  test.each(['..', 'x'.repeat(65), 'a\0b', '', 'a#b'])('of %j finds no schedule, and writes nothing', async (id) => {
    const before = await table.items()
    for (const tenant of [undefined, 'third'])
      await expect(start({ tenant, schedule: id, scheduledTime: at() }, context)).rejects.toMatchObject({
        code: 'unknown_schedule',
      })
    expect(await table.items()).toEqual(before)
  })

  test('of another tenant finds no schedule of this one', async () => {
    const before = (await store().listRuns('ours', { limit: 100 })).items.length
    expect(await start({ tenant: 'ours', schedule: 'made', scheduledTime: at() }, context)).toBeUndefined()
    expect((await store().listRuns('ours', { limit: 100 })).items).toHaveLength(before)
  })
})

describe('a start that is invoked directly', () => {
  test('is for the tenant of the configuration', async () => {
    const { runId } = (await start(event, context)) as { runId: string }
    expect(await store().getRun({ tenant: 'ours', runId })).toMatchObject({ team: 'fan-out' })
    expect((await store().listRuns('theirs', { limit: 10 })).items).toEqual([])
  })

  test.each([
    ['tenant', 'theirs'],
    ['runId', '01JZZZZZZZZZZZZZZZZZZZZZZZ'],
    ['sessionId', '0123456789abcdefghjk'],
    ['limits', { depth: 50 }],
    ['definition', { agents: [] }],
    ['requestContext', { authorizer: { iam: { userArn: 'arn:aws:iam::123456789012:root' } } }],
  ])('refuses an event that brings its own %s', async (name, value) => {
    const before = (await store().listRuns('ours', { limit: 100 })).items.length
    await expect(start({ ...event, [name]: value }, context)).rejects.toThrow(name)
    expect((await store().listRuns('ours', { limit: 100 })).items).toHaveLength(before)
  })
})
