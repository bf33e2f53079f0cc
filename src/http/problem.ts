import type { Context } from 'hono'
import { ERRORS, SubledgerError } from '../domain/errors.ts'
import type { Logger } from '../ports.ts'
import { BrokenBody } from './body.ts'
import type { Answer, problem } from './shapes.ts'

/** The one way out for everything that is refused or goes wrong: `application/problem+json` (RFC 9457). */
export type Problem = Answer<typeof problem>

/** A fault says nothing of itself to the client; it stands in the log. */
const FAULT = new SubledgerError('internal', 'Something went wrong here. It has been logged; trying again may help.')

/** The table said so again and again, until the SDK gave up. */
const BUSY = new SubledgerError('throttled', 'The table is busy: send the request again in a moment.')
const BUSY_NAMES = ['ProvisionedThroughputExceededException', 'ThrottlingException', 'RequestLimitExceeded']
const isBusy = (thrown: unknown): boolean => thrown instanceof Error && BUSY_NAMES.includes(thrown.name)

export function problemResponse(c: Context, thrown: unknown, log: Logger): Response {
  const known = SubledgerError.is(thrown) ? thrown : isBusy(thrown) ? BUSY : undefined
  if (!known || known.code === 'internal') {
    log.error('request failed', { method: c.req.method, path: c.req.path, error: errorText(thrown) })
  }
  if (thrown instanceof BrokenBody)
    log.info('a request broke off', { method: c.req.method, path: c.req.path, fault: String(thrown.cause) })
  if (known?.code === 'keys_unavailable') log.error('token not checked', { error: errorText(known.cause) })
  const error = known && known.code !== 'internal' ? known : FAULT
  const { status, retryable } = ERRORS[error.code]
  if ((status === 503 || status === 429) && retryable) c.header('Retry-After', '1')
  c.header('Content-Type', 'application/problem+json')
  return c.body(JSON.stringify(problemOf(error)), status)
}

export function problemOf(error: SubledgerError): Problem {
  const { title, status } = ERRORS[error.code]
  return {
    type: `urn:subledger:error:${error.code}`,
    title,
    status,
    code: error.code,
    detail: error.message,
    ...(error.issues.length > 0 && { errors: error.issues }),
  }
}

const errorText = (thrown: unknown): string =>
  thrown instanceof Error ? (thrown.stack ?? `${thrown.name}: ${thrown.message}`) : String(thrown)
