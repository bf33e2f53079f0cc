/**
 * Lambda's Invoke operation in front of serverless-offline's own, which knows no retries, no event age and no failure
 * destination, and ends its process when an asynchronous handler throws. Here an asynchronous invocation goes into a queue
 * with Lambda's manners, and each delivery is a synchronous invocation of serverless-offline: a real one, in a thread of
 * its own. Settings are those of serverless.yml; only the delays of retries are shorter.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createEventQueue, type DeadLetter, type EventQueue } from '../src/invoke/event-queue.ts'
import type { JsonLogger } from '../src/logger.ts'
import { systemClock } from '../src/system.ts'

/** A function as serverless.yml has it. */
export interface OfflineFunction {
  readonly name: string
  /** seconds */
  readonly timeout: number
  /** 0 to 2 */
  readonly maximumRetryAttempts: number
  /** seconds */
  readonly maximumEventAge: number
  /** ARN of the queue that gets what this function could not do; unresolved, as a key */
  readonly onFailure?: string
  /** ARNs of the queues it reads */
  readonly reads: readonly string[]
}

export interface OfflineLambdaOptions {
  readonly functions: readonly OfflineFunction[]
  /** where serverless-offline takes invocations, on loopback */
  readonly innerPort: number
  /** 0: any free one */
  readonly port: number
  /** before the first and the second retry, ms */
  readonly retryDelaysMs: readonly [number, number]
  readonly log: JsonLogger
}

export interface OfflineLambda {
  readonly port: number
  /** one synchronous invocation. @throws Error when the function throws */
  invoke(functionName: string, payload: string): Promise<string>
  close(): Promise<void>
}

const ROUTE = /^\/2015-03-31\/functions\/([^/]+)\/invocations\/?(\?.*)?$/
const MAX_EVENT_BYTES = 1_048_576
/** a queue gives a message that was not handled again: as often, and then it is lost here */
const QUEUE_RETRIES = 3

export async function startOfflineLambda(options: OfflineLambdaOptions): Promise<OfflineLambda> {
  const { functions, innerPort, log, retryDelaysMs } = options
  const queues = new Map(functions.map((f) => [f.name, functionQueue(f)]))
  const deadLetters = new Map(functions.flatMap((f) => f.reads.map((arn) => [arn, letterQueue(f, arn)] as const)))

  function functionQueue(f: OfflineFunction): EventQueue {
    return createEventQueue({
      functionName: f.name,
      clock: systemClock,
      log,
      settings: {
        // serverless-offline ends it first; this is for the case that it does not
        timeoutMs: f.timeout * 1000 + 5_000,
        retryDelaysMs: retryDelaysMs.slice(0, f.maximumRetryAttempts),
        maxEventAgeMs: f.maximumEventAge * 1000,
      },
      deliver: (payload, { requestId, n }) => deliver(f.name, payload, requestId, n),
      onDeadLetter: async (letter) => {
        log.warn('event given up', { function: f.name, ...letter.requestContext, to: f.onFailure ?? null })
        if (f.onFailure) deadLetters.get(f.onFailure)?.send(JSON.stringify(letter))
      },
    })
  }

  /** What SQS does between a queue and the function that reads it: batches of one here. */
  function letterQueue(f: OfflineFunction, arn: string): EventQueue {
    return createEventQueue({
      functionName: f.name,
      clock: systemClock,
      log,
      settings: { timeoutMs: f.timeout * 1000 + 5_000, retryDelaysMs: Array(QUEUE_RETRIES).fill(retryDelaysMs[1]) },
      deliver: async (letter, { requestId, n }) => {
        const answer = await deliver(f.name, sqsEvent(letter as DeadLetter, requestId, arn, n), randomUUID(), n)
        if (failedItems(answer).includes(requestId)) throw new Error('the function gave the message back')
      },
    })
  }

  async function deliver(functionName: string, payload: unknown, requestId: string, n: number): Promise<string> {
    const began = Date.now()
    const line = { function: functionName, requestId, delivery: n, event: payload }
    try {
      const answer = await invokeInner(innerPort, functionName, JSON.stringify(payload), requestId)
      log.info('invocation', { ...line, ok: true, ms: Date.now() - began })
      return answer
    } catch (e) {
      log.warn('invocation', { ...line, ok: false, ms: Date.now() - began, error: (e as Error).message })
      throw e
    }
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const functionName = decodeURIComponent(ROUTE.exec(req.url ?? '')?.[1] ?? '')
    const refuse = (status: number, type: string, Message: string) => {
      res.writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': type })
      res.end(JSON.stringify({ Type: 'User', Message }))
    }
    if (req.method !== 'POST' || !functionName)
      return refuse(404, 'NotFoundException', `No route ${req.method} ${req.url}`)
    const queue = queues.get(functionName)
    if (!queue) return refuse(404, 'ResourceNotFoundException', `Function not found: ${functionName}`)
    const body = await read(req)
    if (body === null) return refuse(413, 'RequestTooLargeException', `An event has at most ${MAX_EVENT_BYTES} bytes`)
    const payload = body === '' ? '{}' : body
    if (!isJson(payload)) return refuse(400, 'InvalidRequestContentException', 'The event is not JSON')
    if (req.headers['x-amz-invocation-type'] === 'Event') {
      queue.send(payload)
      res.writeHead(202, { 'x-amzn-requestid': randomUUID() }).end()
      return
    }
    await invokeInner(innerPort, functionName, payload, randomUUID()).then(
      (text) => res.writeHead(200, { 'content-type': 'application/json' }).end(text || 'null'),
      (e: Error) => {
        res.writeHead(200, { 'content-type': 'application/json', 'x-amz-function-error': 'Unhandled' })
        res.end(JSON.stringify({ errorType: e.name, errorMessage: e.message }))
      },
    )
  }

  const server = createServer((req, res) => {
    answer(req, res).catch((e) => {
      log.error('the Lambda endpoint broke', { error: e })
      if (!res.headersSent) res.writeHead(500, { 'x-amzn-errortype': 'ServiceException' })
      res.end()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as { port: number }).port,
    invoke: (functionName, payload) => invokeInner(innerPort, functionName, payload, randomUUID()),
    async close() {
      server.close()
      server.closeAllConnections()
      await Promise.all([...queues.values(), ...deadLetters.values()].map((queue) => queue.close()))
    },
  }
}

/** One synchronous invocation through serverless-offline. The client context carries the request id to the runtime. */
function invokeInner(port: number, functionName: string, payload: string, requestId: string): Promise<string> {
  const clientContext = Buffer.from(JSON.stringify({ custom: { requestId } })).toString('base64')
  return new Promise((resolve, reject) => {
    const req = request(
      {
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: `/2015-03-31/functions/${encodeURIComponent(functionName)}/invocations`,
        headers: { 'x-amz-invocation-type': 'RequestResponse', 'x-amz-client-context': clientContext },
      },
      async (res) => {
        try {
          const text = (await read(res, Number.POSITIVE_INFINITY)) ?? ''
          if (res.statusCode === 200 && !res.headers['x-amz-function-error']) return resolve(text)
          reject(functionError(text, res.statusCode))
        } catch (e) {
          reject(e)
        }
      },
    )
    req.on('error', reject)
    req.end(payload)
  })
}

function functionError(text: string, status: number | undefined): Error {
  const said = isJson(text) ? (JSON.parse(text) as { errorMessage?: string; Message?: string } | null) : null
  return new Error(said?.errorMessage ?? said?.Message ?? `serverless-offline answered ${status}`)
}

async function read(stream: AsyncIterable<Buffer>, max = MAX_EVENT_BYTES): Promise<string | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes <= max) chunks.push(chunk)
  }
  return bytes > max ? null : Buffer.concat(chunks).toString('utf8')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const sqsEvent = (letter: DeadLetter, messageId: string, arn: string, n: number) => ({
  Records: [
    {
      messageId,
      receiptHandle: messageId,
      body: JSON.stringify(letter),
      attributes: { ApproximateReceiveCount: String(n) },
      messageAttributes: {},
      eventSource: 'aws:sqs',
      eventSourceARN: arn,
      awsRegion: 'local',
    },
  ],
})

function failedItems(answer: string): readonly string[] {
  const said = isJson(answer)
    ? (JSON.parse(answer) as { batchItemFailures?: { itemIdentifier: string }[] } | null)
    : null
  return (said?.batchItemFailures ?? []).map((f) => f.itemIdentifier)
}
