/** The roles of serverless.yml allow what the handlers do: every request to the table is looked up in its function's role. */
import { readFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import * as sdk from '@aws-sdk/client-scheduler'
import type { Context } from 'aws-lambda'
import { mockClient } from 'aws-sdk-client-mock'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import type { SessionRef } from '../../src/domain/run.ts'
import { type LambdaServer, startLambdaServer } from '../support/lambda-server.ts'
import { dynaliteTable, type TestTable } from '../support/tables.ts'

type Handler = (event: unknown, context: Context) => Promise<unknown>
const ROLES = {
  http: 'HttpRole',
  'start-run': 'StartRunRole',
  worker: 'WorkerRole',
  sweep: 'SweepRole',
  'dead-letter': 'DeadLetterRole',
} as const
type Name = keyof typeof ROLES
let requests = 0
const context = {
  get awsRequestId() {
    return `request-${++requests}`
  },
  getRemainingTimeInMillis: () => 60_000,
} as Context

let table: TestTable
let proxy: Server
let lambda: LambdaServer
const invoked: SessionRef[] = []
let current: Name
/** `dynamodb:Query on index due`, by the function that asked for it */
const used = new Map<Name, Set<string>>()

/** no emulator has it: the client is asked, and does not send */
const scheduler = mockClient(sdk.SchedulerClient)
const SCHEDULER = {
  SUBLEDGER_SCHEDULER_GROUP: 'group',
  SUBLEDGER_SCHEDULER_ROLE: 'arn:role',
  SUBLEDGER_SCHEDULER_TARGET: 'arn:function',
  SUBLEDGER_SCHEDULER_DEAD_LETTERS: 'arn:queue',
}

beforeAll(async () => {
  scheduler.on(sdk.CreateScheduleCommand).resolves({})
  scheduler.on(sdk.DeleteScheduleCommand).resolves({})
  table = await dynaliteTable()
  proxy = await startProxy(table.server!.endpoint)
  lambda = await startLambdaServer({ worker: async (event) => void invoked.push(event as SessionRef) })
  vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  Object.assign(process.env, {
    ...SCHEDULER,
    SUBLEDGER_TABLE: table.server!.name,
    SUBLEDGER_DYNAMODB_ENDPOINT: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    SUBLEDGER_LAMBDA_ENDPOINT: lambda.url,
    SUBLEDGER_WORKER: 'worker',
    SUBLEDGER_AUTH: 'iam',
    SUBLEDGER_IAM_PRINCIPALS: JSON.stringify([{ principal: '123456789012', tenant: 'local', scopes: ['admin'] }]),
    SUBLEDGER_EVENT_AGE_SECONDS: '0.001',
    SUBLEDGER_TEAMS: path.resolve('test/offline/teams'),
  })
  await use()
}, 60_000)

afterAll(async () => {
  vi.restoreAllMocks()
  await lambda.close()
  await new Promise((resolve) => {
    proxy.close(resolve)
    proxy.closeAllConnections()
  })
  await table.close()
})

/** Hands requests on to the emulator and writes down who asked for what. */
async function startProxy(endpoint: string): Promise<Server> {
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const action = `dynamodb:${String(req.headers['x-amz-target']).split('.')[1]}`
    const { IndexName: index } = JSON.parse(body.toString())
    const of = used.get(current) ?? new Set()
    used.set(current, of.add(index === undefined ? action : `${action} on index ${index}`))
    const onwards = request(endpoint, { method: req.method, headers: req.headers, path: req.url }, (answer) => {
      res.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(res)
    })
    onwards.end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

/** Uses every function for all that it is there for. */
async function use(): Promise<void> {
  const run = async <T>(name: Name, event: unknown): Promise<T> => {
    current = name
    const { handler } = (await import(`../../handlers/${name}.ts`)) as { handler: Handler }
    return (await handler(event, context)) as T
  }
  const work = async () => {
    for (await lambda.settled(); invoked.length > 0; await lambda.settled()) await run('worker', invoked.shift())
  }
  const call = async (method: string, route: string, body?: object) => {
    const [rawPath, rawQueryString = ''] = route.split('?')
    const answer = await run<{ statusCode: number; body: string }>('http', {
      version: '2.0',
      rawPath,
      rawQueryString,
      headers: { host: 'example.test', 'content-type': 'application/json' },
      requestContext: {
        http: { method, path: rawPath, sourceIp: '192.0.2.1' },
        domainName: 'example.test',
        authorizer: { iam: { userArn: 'arn:aws:iam::123456789012:user/somebody' } },
      },
      ...(body && { body: JSON.stringify(body) }),
      isBase64Encoded: false,
    })
    const expected =
      route === '/v1/schedules' && method === 'POST' ? 201 : { POST: 202, GET: 200, PUT: 200, DELETE: 204 }[method]
    expect([method, route, answer.statusCode]).toEqual([method, route, expected])
    return answer.body ? JSON.parse(answer.body) : undefined
  }

  await run('start-run', { team: 'fan-out', input: 'Go' })
  await lambda.settled()
  const [lost] = invoked.splice(0)
  await run('sweep', {})
  await run('start-run', { due: true })
  await work()
  await run('sweep', {})
  await run('start-run', { team: 'fan-out', tasks: [{ agent: 'worker', task: 'Go' }] })
  await work()

  const { runId, rootSessionId } = await call('POST', '/v1/runs', { team: 'fan-out', input: 'Go' })
  await work()
  await call('POST', `/v1/runs/${runId}/input`, { input: 'And on' })
  await call('POST', `/v1/runs/${runId}/cancel`)
  await work()
  for (const route of ['', '?exact=true', '/sessions', '/calls', '/usage', `/sessions/${rootSessionId}`])
    await call('GET', `/v1/runs/${runId}${route}`)
  await call('GET', `/v1/runs/${runId}/sessions/${rootSessionId}/messages`)
  await call('GET', '/v1/runs')

  await call('DELETE', `/v1/runs/${runId}`)
  const poor = await call('POST', '/v1/runs', { team: 'fan-out', input: 'Go', budget: { tokens: 1 } })
  await work()
  await call('PUT', `/v1/runs/${poor.runId}/budget`, { tokens: 1_000_000 })
  await work()
  const { scheduleId } = await call('POST', '/v1/schedules', {
    rate: '1 day',
    team: 'fan-out',
    input: 'Go',
    budget: { tokens: 1_000_000 },
  })
  await call('GET', '/v1/schedules')
  await call('DELETE', `/v1/schedules/${scheduleId}`)
  await run('start-run', { schedule: 'x', scheduledTime: '<aws.scheduler.scheduled-time>' }).catch(() => undefined)
  for (const event of [lost, { ...lost, runId }])
    await run('dead-letter', { Records: [{ messageId: 'm', body: JSON.stringify({ requestPayload: event }) }] })
  await work()
}

/** What a role may do with the table and its indexes, as serverless.yml has it. */
function allowed(role: string): Set<string> {
  const { Resources } = parse(readFileSync('serverless.yml', 'utf8')).resources
  const places: { [arn: string]: string } = {
    '${self:custom.tableArn}': '',
    '${self:custom.runsIndexArn}': ' on index runs',
    '${self:custom.dueIndexArn}': ' on index due',
  }
  const statements: { Action: string | string[]; Resource: string }[] =
    Resources[role].Properties.Policies[0].PolicyDocument.Statement
  return new Set(
    statements
      .filter((s) => s.Resource in places)
      .flatMap((s) => [s.Action].flat().map((action) => `${action}${places[s.Resource]}`)),
  )
}

test.each(Object.entries(ROLES) as [Name, string][])(
  '%s does nothing with the table that its role forbids',
  (name, role) => {
    expect([...used.get(name)!].filter((action) => !allowed(role).has(action))).toEqual([])
  },
)

test('http asks EventBridge Scheduler for what its role allows, in the group and with the role of the stack', () => {
  const statements: { Action: string | string[]; Resource: string }[] = parse(readFileSync('serverless.yml', 'utf8'))
    .resources.Resources.HttpRole.Properties.Policies[0].PolicyDocument.Statement
  const asked = scheduler.calls().map((call) => `scheduler:${call.args[0].constructor.name.replace('Command', '')}`)
  expect(asked).toEqual(['scheduler:CreateSchedule', 'scheduler:DeleteSchedule'])
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the framework's
  const about = statements.find((s) => s.Resource === '${self:custom.schedulesArn}')
  expect(about!.Action).toEqual(asked)
  for (const { args } of scheduler.calls()) expect(args[0].input).toMatchObject({ GroupName: 'group' })
  expect(scheduler.commandCalls(sdk.CreateScheduleCommand)[0]!.args[0].input.Target).toMatchObject({
    Arn: 'arn:function',
    RoleArn: 'arn:role',
  })
})

test('what was written down is what functions do: the check can fail', () => {
  expect([...used.get('start-run')!].sort()).toContain('dynamodb:PutItem')
  expect([...used.get('http')!]).toContain('dynamodb:Query on index runs')
  expect([...used.get('sweep')!]).toContain('dynamodb:Query on index due')
  expect([...used.get('sweep')!].every((action) => allowed('StartRunRole').has(action))).toBe(false)
})
