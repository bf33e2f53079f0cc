import path from 'node:path'
import type { Context } from 'aws-lambda'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import type { SessionRef } from '../../src/domain/run.ts'
import { createStore } from '../../src/store/store.ts'
import { type LambdaServer, startLambdaServer } from '../support/lambda-server.ts'
import { dynaliteTable, type TestTable } from '../support/tables.ts'

type Handler = (event: unknown, context: Context) => Promise<unknown>
const FUNCTIONS = ['http', 'start-run', 'worker', 'sweep', 'dead-letter'] as const
const context = { awsRequestId: 'request-1', getRemainingTimeInMillis: () => 60_000 } as Context

let table: TestTable
let lambda: LambdaServer
/** the handlers as Lambda loads them: settings from the environment, adapters for AWS, here against emulators */
const handlers = {} as { [name in (typeof FUNCTIONS)[number]]: Handler }
const invoked: SessionRef[] = []
/** lines that the handlers logged */
const lines: string[] = []
let mayInvoke = true

beforeAll(async () => {
  table = await dynaliteTable()
  lambda = await startLambdaServer({ worker: async (event) => void invoked.push(event as SessionRef) }, () =>
    mayInvoke ? undefined : { status: 403, type: 'AccessDeniedException', body: { Message: 'not allowed' } },
  )
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => lines.push(String(text)) > 0)
  Object.assign(process.env, {
    SUBLEDGER_TABLE: table.server!.name,
    SUBLEDGER_DYNAMODB_ENDPOINT: table.server!.endpoint,
    SUBLEDGER_LAMBDA_ENDPOINT: lambda.url,
    SUBLEDGER_WORKER: 'worker',
    SUBLEDGER_TENANT: 'ours',
    SUBLEDGER_AUTH: 'iam',
    SUBLEDGER_IAM_PRINCIPALS: JSON.stringify([
      { principal: '123456789012', tenant: 'ours', scopes: ['read', 'run'] },
      { principal: '210987654321', tenant: 'theirs', scopes: ['read'] },
    ]),
    SUBLEDGER_EVENT_AGE_SECONDS: '0.001',
    SUBLEDGER_TEAMS: path.resolve('test/offline/teams'),
  })
  for (const name of FUNCTIONS) handlers[name] = (await import(`../../handlers/${name}.ts`)).handler
})
beforeEach(() => {
  invoked.length = 0
  lines.length = 0
  mayInvoke = true
})
afterAll(async () => {
  vi.restoreAllMocks()
  await lambda.close()
  await table.close()
})

const store = () => createStore(table.table)
let requests = 0
/** @param awsRequestId of an event that is delivered again */
const start = async (event: object, awsRequestId = `start-${++requests}`) =>
  (await handlers['start-run'](event, { ...context, awsRequestId })) as { runId: string }

/** Runs workers until nobody is invoked any more. */
async function work(): Promise<void> {
  for (await lambda.settled(); invoked.length > 0; await lambda.settled())
    await handlers.worker(invoked.shift()!, context)
}

describe('start-run, again', () => {
  test('an event that Lambda delivers twice starts one run', async () => {
    const event = { team: 'fan-out', input: 'Go' }
    const [one, two] = [await start(event, 'same'), await start(event, 'same')]
    expect(two.runId).toBe(one.runId)
    await work()
    const runs = await store().listRuns('ours', { limit: 100 })
    expect(runs.items.filter((r) => r.runId === one.runId)).toHaveLength(1)
  })

  test('a tick of a schedule that is not there starts nothing', async () => {
    const tick = { schedule: 'nobody', scheduledTime: '<aws.scheduler.scheduled-time>' }
    await expect(start(tick)).rejects.toThrow('There is no schedule "nobody"')
  })

  test('a tick of a schedule of the API starts a run of its tenant, and is at an end when the schedule is gone', async () => {
    const tick = { tenant: 'third', schedule: 'made', scheduledTime: '<aws.scheduler.scheduled-time>' }
    const run = { team: 'fan-out', input: 'Go', budget: { tokens: 1_000_000 } }
    const schedule = { id: 'made', expression: 'rate(1 day)', timezone: 'UTC', overlap: 'allow', createdAt: 0 } as const
    await store().putSchedule('third', { ...schedule, run }, Date.now())
    const { runId } = await start(tick)
    expect(await store().getRun({ tenant: 'third', runId })).toMatchObject({ team: 'fan-out' })
    await work()
    await store().deleteSchedule({ tenant: 'third', id: 'made' })
    expect(await start({ ...tick, scheduledTime: '2026-01-01T00:00:00Z' }).catch((e) => e.code)).toBe('bad_request')
    const minuteAgo = new Date(Date.now() - 60_000).toISOString()
    expect(await start({ ...tick, scheduledTime: minuteAgo })).toBeUndefined()
    expect(lines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ level: 'warn', message: 'tick of a schedule that is gone', schedule: 'made' }),
    )
  })
})

describe('http', () => {
  const request = (method: string, rawPath: string, more: object = {}) => ({
    version: '2.0',
    rawPath,
    rawQueryString: '',
    headers: { host: 'example.test' },
    requestContext: { http: { method, path: rawPath, sourceIp: '192.0.2.1' }, domainName: 'example.test', ...more },
    isBase64Encoded: false,
  })
  const iam = { authorizer: { iam: { userArn: 'arn:aws:iam::123456789012:user/somebody', accountId: '123456789012' } } }
  const call = async (...args: Parameters<typeof request>) => {
    const answer = (await handlers.http(request(...args), context)) as { statusCode: number; body: string }
    return { status: answer.statusCode, body: JSON.parse(answer.body) }
  }

  test.each(['GET', 'HEAD'])('a body of %s means nothing', async (method) => {
    const event = { ...request(method, '/v1/health'), body: '{', isBase64Encoded: false }
    expect(await handlers.http(event, context)).toMatchObject({ statusCode: 200 })
  })

  test.each(['TRACE', 'TRACK', 'CONNECT', 'PATCH', 'FOO'])(
    '%s is refused as any method that is not there',
    async (method) => {
      expect(await handlers.http(request(method, '/v1/runs'), context)).toMatchObject({
        statusCode: 405,
        headers: { 'content-type': 'application/problem+json', allow: 'POST, GET, HEAD' },
        body: expect.stringContaining(`${method} is not allowed here`),
      })
      expect(await call(method, '/nowhere')).toMatchObject({ status: 404, body: { code: 'not_found' } })
    },
  )

  test.each<[string, object]>([
    ['a path that is another host', { rawPath: '@evil.example/v1/runs' }],
    ['a path that is a port', { rawPath: ':99999/v1/runs' }],
    ['a header with a line break', { headers: { x: 'a\r\nb' } }],
    ['a name of a header that is none', { headers: { 'a b': 'x' } }],
  ])('%s is no request: problem+json as for all that is refused', async (_what, wrong) => {
    const silent = vi.spyOn(console, 'error').mockImplementation(() => {})
    const answer = await handlers.http({ ...request('GET', '/v1/runs', iam), ...wrong }, context)
    silent.mockRestore()
    const { headers, body, ...rest } = answer as { headers: object; body: string }
    expect(rest).toEqual({ statusCode: 400, isBase64Encoded: false })
    expect(headers).toMatchObject({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' })
    expect(JSON.parse(body)).toMatchObject({ status: 400, code: 'bad_request' })
  })

  test('health is open', async () => {
    expect(await call('GET', '/v1/health')).toEqual({ status: 200, body: { status: 'ok' } })
  })

  test.each([
    ['GET', '/v1/runs'],
    ['GET', '/v1/teams'],
    ['POST', '/v1/runs'],
  ])('%s %s is refused when no principal stands behind it', async (method, route) => {
    expect(await call(method, route)).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
    expect(await call(method, route, { authorizer: { jwt: { claims: {} } } })).toMatchObject({ status: 401 })
  })

  test('a principal sees its own tenant, and another one does not', async () => {
    const { runId } = await start({ team: 'fan-out', input: 'Go' })
    await work()
    const { status, body } = await call('GET', `/v1/runs/${runId}`, iam)
    expect([status, body.status]).toEqual([200, 'completed'])
    const other = { authorizer: { iam: { userArn: 'arn:aws:sts::210987654321:assumed-role/any/session' } } }
    expect(await call('GET', `/v1/runs/${runId}`, other)).toMatchObject({ status: 404, body: { code: 'unknown_run' } })
    expect(await call('GET', '/v1/runs', other)).toMatchObject({ status: 200, body: { runs: [] } })
    expect(await call('POST', `/v1/runs/${runId}/cancel`, other)).toMatchObject({ status: 403 })
  })

  test('a principal of no tenant is refused', async () => {
    const stranger = { authorizer: { iam: { userArn: 'arn:aws:iam::111111111111:user/somebody' } } }
    expect(await call('GET', '/v1/runs', stranger)).toMatchObject({ status: 403, body: { code: 'forbidden' } })
  })
})

describe('start-run', () => {
  test('starts a run for the tenant of the deployment and invokes its root with ids alone', async () => {
    const { runId } = await start({ team: 'fan-out', input: 'Go', tags: { by: 'schedule' } })
    await lambda.settled()
    expect(invoked).toEqual([{ tenant: 'ours', runId, sessionId: rootSessionId(runId) }])
    expect(await store().getRun({ tenant: 'ours', runId })).toMatchObject({ team: 'fan-out', tags: { by: 'schedule' } })
  })

  test.each([
    ['a tenant of its own choice', { team: 'fan-out', input: 'Go', tenant: 'theirs' }, /tenant/],
    ['no team', { input: 'Go' }, /team/],
    ['an unknown team', { team: 'nobody', input: 'Go' }, /nobody/],
    ['neither input nor tasks', { team: 'fan-out' }, /neither input nor tasks/],
    [
      'an event of EventBridge without input',
      { source: 'aws.events', 'detail-type': 'Scheduled Event' },
      /source|team/,
    ],
  ])('%s is refused before anything is written', async (_what, event, message) => {
    const before = await store().listRuns('ours', { limit: 100 })
    await expect(start(event)).rejects.toThrow(message)
    await lambda.settled()
    expect(invoked).toEqual([])
    expect((await store().listRuns('ours', { limit: 100 })).items).toHaveLength(before.items.length)
  })
})

describe('worker', () => {
  test('a bad event is dropped without an error, so that Lambda does not bring it again', async () => {
    await expect(handlers.worker({ tenant: 'ours' }, context)).resolves.toBeUndefined()
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: 'error',
        message: 'event dropped',
        requestId: 'request-1',
        issues: [{ path: '/runId' }, { path: '/sessionId' }],
      },
    ])
  })

  test('an event of a run that is not there ends without an error', async () => {
    const runId = '01JZZZZZZZZZZZZZZZZZZZZZZZ'
    await expect(
      handlers.worker({ tenant: 'ours', runId, sessionId: rootSessionId(runId) }, context),
    ).resolves.toBeUndefined()
  })
})

describe('what finds lost events', () => {
  const letter = (messageId: string, requestPayload: unknown) => ({
    messageId,
    body: JSON.stringify({ requestContext: { condition: 'RetriesExhausted' }, requestPayload }),
  })

  test('a dead letter sends its run a new event; a message that is none is dropped', async () => {
    const { runId } = await start({ team: 'fan-out', input: 'Go' })
    await lambda.settled()
    const [lost] = invoked.splice(0)
    const answer = await handlers['dead-letter'](
      { Records: [letter('m1', { hello: 'world' }), { messageId: 'm2', body: '{' }, letter('m3', lost)] },
      context,
    )
    expect(answer).toEqual({ batchItemFailures: [] })
    await lambda.settled()
    expect(invoked).toEqual([lost])
    await work()
    expect(await store().getRun({ tenant: 'ours', runId })).toMatchObject({ status: 'completed' })
  })

  test('the sweep does so too', async () => {
    const { runId } = await start({ team: 'fan-out', input: 'Go' })
    await lambda.settled()
    invoked.splice(0)
    await handlers.sweep({}, context)
    await work()
    expect(await store().getRun({ tenant: 'ours', runId })).toMatchObject({ status: 'completed' })
  })

  test('a dead letter whose run cannot be looked at is given back, and the others are not', async () => {
    await start({ team: 'fan-out', input: 'Go' })
    await lambda.settled()
    const [lost] = invoked.splice(0)
    const elsewhere = { ...lost, runId: '01JZZZZZZZZZZZZZZZZZZZZZZZ' }
    mayInvoke = false
    const answer = await handlers['dead-letter']({ Records: [letter('m1', lost), letter('m2', elsewhere)] }, context)
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: 'm1' }] })
  })
})
