import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda'
import { afterEach, expect, test } from 'vitest'
import { type OfflineFunction, startOfflineLambda } from '../../scripts/offline-lambda.ts'
import { createJsonLogger } from '../../src/logger.ts'

type Handler = (event: unknown, requestId: string) => unknown
interface SqsEvent {
  readonly Records: readonly {
    messageId: string
    body: string
    eventSourceARN: string
    attributes: { ApproximateReceiveCount: string }
  }[]
}

const open: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

/** Synchronous invocation as serverless-offline answers it: what a handler throws is a header and a body with status 200. */
async function startInner(handlers: { readonly [name: string]: Handler }): Promise<number> {
  const server = createServer(async (req, res) => {
    let body = ''
    for await (const chunk of req) body += chunk
    const context = JSON.parse(Buffer.from(String(req.headers['x-amz-client-context']), 'base64').toString())
    const name = req.url!.split('/')[3]!
    try {
      const answer = await handlers[name]!(JSON.parse(body), context.custom.requestId)
      res.end(answer === undefined ? '' : JSON.stringify(answer))
    } catch (e) {
      res.setHeader('x-amz-function-error', 'Unhandled')
      res.end(JSON.stringify({ errorMessage: (e as Error).message, errorType: 'Error' }))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => server.close())
  return (server.address() as AddressInfo).port
}

const QUEUE = '{"Fn::GetAtt":["DeadLetters","Arn"]}'
const of = (name: string, more: Partial<OfflineFunction> = {}): OfflineFunction => ({
  name,
  timeout: 10,
  maximumRetryAttempts: 2,
  maximumEventAge: 600,
  reads: [],
  ...more,
})

async function start(functions: readonly OfflineFunction[], handlers: { readonly [name: string]: Handler }) {
  const lines: { message: string; [field: string]: unknown }[] = []
  const lambda = await startOfflineLambda({
    functions,
    innerPort: await startInner(handlers),
    port: 0,
    retryDelaysMs: [1, 2],
    log: createJsonLogger((line) => lines.push(JSON.parse(line))),
  })
  const url = `http://127.0.0.1:${lambda.port}`
  const client = new LambdaClient({
    endpoint: url,
    region: 'local',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  })
  open.push(lambda.close, () => client.destroy())
  return { client, url, lines }
}

/** A promise and the function that resolves it. */
const signal = <T>() => Promise.withResolvers<T>()

test('an asynchronous invocation that fails is tried twice more under one request id, and then its letter is dead', async () => {
  const requestIds: string[] = []
  const letter = signal<SqsEvent>()
  const { client, lines } = await start([of('worker', { onFailure: QUEUE }), of('dead-letter', { reads: [QUEUE] })], {
    worker: (_event, requestId) => {
      requestIds.push(requestId)
      throw new Error('the worker broke')
    },
    'dead-letter': (event) => letter.resolve(event as SqsEvent),
  })
  const { StatusCode } = await client.send(
    new InvokeCommand({ FunctionName: 'worker', InvocationType: 'Event', Payload: '{"a":1}' }),
  )
  expect(StatusCode).toBe(202)
  const [record] = (await letter.promise).Records
  expect(record!.eventSourceARN).toBe(QUEUE)
  expect(JSON.parse(record!.body)).toMatchObject({
    requestContext: { requestId: requestIds[0], condition: 'RetriesExhausted', approximateInvokeCount: 3 },
    requestPayload: { a: 1 },
    responsePayload: { errorMessage: 'the worker broke' },
  })
  expect(requestIds).toEqual(Array(3).fill(requestIds[0]))
  expect(
    lines.filter((l) => l.message === 'invocation' && l.function === 'worker').map((l) => [l.delivery, l.ok]),
  ).toEqual([
    [1, false],
    [2, false],
    [3, false],
  ])
})

test('a function without retries is not tried again', async () => {
  const letter = signal<SqsEvent>()
  let calls = 0
  const { client } = await start(
    [of('once', { maximumRetryAttempts: 0, onFailure: QUEUE }), of('reader', { reads: [QUEUE] })],
    {
      once: () => {
        calls++
        throw new Error('no')
      },
      reader: (event) => letter.resolve(event as SqsEvent),
    },
  )
  await client.send(new InvokeCommand({ FunctionName: 'once', InvocationType: 'Event', Payload: '{}' }))
  await letter.promise
  expect(calls).toBe(1)
})

test('a message that its reader gives back comes again', async () => {
  const counts: string[] = []
  const twice = signal<void>()
  const { client } = await start(
    [of('worker', { maximumRetryAttempts: 0, onFailure: QUEUE }), of('reader', { reads: [QUEUE] })],
    {
      worker: () => {
        throw new Error('no')
      },
      reader: (event) => {
        const [record] = (event as SqsEvent).Records
        counts.push(record!.attributes.ApproximateReceiveCount)
        if (counts.length === 1) return { batchItemFailures: [{ itemIdentifier: record!.messageId }] }
        twice.resolve()
        return { batchItemFailures: [] }
      },
    },
  )
  await client.send(new InvokeCommand({ FunctionName: 'worker', InvocationType: 'Event', Payload: '{}' }))
  await twice.promise
  expect(counts).toEqual(['1', '2'])
})

test('a synchronous invocation brings the answer, or the error', async () => {
  const { client } = await start([of('good'), of('bad')], {
    good: (event) => ({ got: event }),
    bad: () => {
      throw new Error('broken')
    },
  })
  const good = await client.send(new InvokeCommand({ FunctionName: 'good', Payload: '{"x":2}' }))
  expect([good.FunctionError, good.Payload!.transformToString()]).toEqual([undefined, '{"got":{"x":2}}'])
  const bad = await client.send(new InvokeCommand({ FunctionName: 'bad', Payload: '{}' }))
  expect([bad.FunctionError, JSON.parse(bad.Payload!.transformToString())]).toEqual([
    'Unhandled',
    { errorType: 'Error', errorMessage: 'broken' },
  ])
})

test.each([
  ['a function that is not there', 'nobody', '{}', 404, 'ResourceNotFoundException'],
  ['an event that is not JSON', 'worker', '{', 400, 'InvalidRequestContentException'],
  ['an event over a megabyte', 'worker', JSON.stringify('x'.repeat(1_048_576)), 413, 'RequestTooLargeException'],
])('%s is refused and never delivered', async (_what, name, body, status, type) => {
  const { url, lines } = await start([of('worker')], { worker: () => expect.unreachable() })
  const answer = await fetch(`${url}/2015-03-31/functions/${name}/invocations`, {
    method: 'POST',
    headers: { 'x-amz-invocation-type': 'Event' },
    body,
  })
  expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([status, type])
  expect(lines).toEqual([])
})
