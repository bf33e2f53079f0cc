import type { Context } from 'hono'
import { ERRORS, SubledgerError } from '../domain/errors.ts'
import type { Logger } from '../ports.ts'

/** The one way out for everything that is refused or goes wrong: `application/problem+json` (RFC 9457). */
export interface Problem {
  /** `urn:subledger:error:<code>` */
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: string
  /** what is wrong, where, and what to do */
  readonly detail: string
  readonly errors?: readonly { readonly path: string; readonly message: string }[]
}

/** A fault says nothing of itself to the client; it stands in the log. */
const FAULT = new SubledgerError('internal', 'Something went wrong here. It has been logged; trying again may help.')

export function problemResponse(c: Context, thrown: unknown, log: Logger): Response {
  const known = SubledgerError.is(thrown) ? thrown : undefined
  if (!known || known.code === 'internal') {
    log.error('request failed', { method: c.req.method, path: c.req.path, error: errorText(thrown) })
  }
  if (known?.code === 'keys_unavailable') log.error('token not checked', { error: errorText(known.cause) })
  const error = known && known.code !== 'internal' ? known : FAULT
  const { title, status, retryable } = ERRORS[error.code]
  const problem: Problem = {
    type: `urn:subledger:error:${error.code}`,
    title,
    status,
    code: error.code,
    detail: error.message,
    ...(error.issues.length > 0 && { errors: error.issues }),
  }
  if ((status === 503 || status === 429) && retryable) c.header('Retry-After', '1')
  c.header('Content-Type', 'application/problem+json')
  return c.body(JSON.stringify(problem), status)
}

const errorText = (thrown: unknown): string =>
  thrown instanceof Error ? (thrown.stack ?? `${thrown.name}: ${thrown.message}`) : String(thrown)
