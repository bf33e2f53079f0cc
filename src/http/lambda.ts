import type { Context } from 'aws-lambda'
import type { Hono } from 'hono'
import { handle, type LambdaEvent } from 'hono/aws-lambda'
import { SubledgerError } from '../domain/errors.ts'
import { problemOf } from './problem.ts'

/** What API Gateway takes for an answer. */
type Result = Awaited<ReturnType<ReturnType<typeof handle>>>

/** Methods that a `Request` cannot have. */
const NOT_OF_REQUESTS = ['TRACE', 'TRACK', 'CONNECT']

/** The app for events of API Gateway: what no `Request` can be made of is answered as the app would, and not in plain text. */
export function lambdaHandler(app: Hono): (event: LambdaEvent, context: Context) => Promise<Result> {
  return async (event, context) => {
    const method = methodOf(event)
    let reached = false
    const fetch: Hono['fetch'] = (request, env) => {
      reached = true
      // under its own name again: the app says what is allowed in its place
      if (NOT_OF_REQUESTS.includes(method)) Object.defineProperty(request, 'method', { value: method })
      return app.fetch(request, env)
    }
    const result = await handle({ fetch } as Hono)(asRequest(event, method), context)
    return reached ? result : REFUSED
  }
}

const methodOf = (event: LambdaEvent): string =>
  'requestContext' in event && 'http' in event.requestContext ? event.requestContext.http.method.toUpperCase() : ''

/** An event that a `Request` can be made of. */
function asRequest(event: LambdaEvent, method: string): LambdaEvent {
  // a body of these means nothing, and a `Request` refuses it
  if (method === 'GET' || method === 'HEAD') return { ...event, body: null } as LambdaEvent
  if (!NOT_OF_REQUESTS.includes(method)) return event
  const { requestContext } = event as { requestContext: { http: object } }
  return {
    ...event,
    body: null,
    requestContext: { ...requestContext, http: { ...requestContext.http, method: 'OPTIONS' } },
  } as LambdaEvent
}

const REFUSED: Result = {
  statusCode: 400,
  headers: {
    'cache-control': 'no-store',
    'content-type': 'application/problem+json',
    'x-content-type-options': 'nosniff',
  },
  body: JSON.stringify(
    problemOf(
      new SubledgerError('bad_request', 'This is no request that can be answered: look at its path and headers.'),
    ),
  ),
  isBase64Encoded: false,
}
