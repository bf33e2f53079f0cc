import { SubledgerError } from '../domain/errors.ts'
import { RUN_ID, SESSION_ID, TENANT } from '../domain/ids.ts'
import type { SessionRef } from '../domain/run.ts'

/** The event of a worker as JSON text: three ids and nothing else. The worker reads the rest from the table. */
export const workerPayload = ({ tenant, runId, sessionId }: SessionRef): string =>
  JSON.stringify({ tenant, runId, sessionId })

const PARTS = [
  ['tenant', TENANT],
  ['runId', RUN_ID],
  ['sessionId', SESSION_ID],
] as const

/** Reads a worker's event; keys that it does not know are left out. @throws SubledgerError bad_request, with each part that is wrong */
export function parseWorkerEvent(event: unknown): SessionRef {
  const given: { [key: string]: unknown } = typeof event === 'object' && event !== null ? { ...event } : {}
  const issues = PARTS.filter(([name, pattern]) => !matches(given[name], pattern)).map(([name, pattern]) => ({
    path: `/${name}`,
    message: `must be text of the form ${pattern.source}`,
  }))
  if (issues.length > 0) {
    const wrong = issues.map((i) => i.path.slice(1)).join(', ')
    throw new SubledgerError('bad_request', `Not an event of a worker, {tenant, runId, sessionId}: wrong ${wrong}`, {
      issues,
    })
  }
  return { tenant: given.tenant as string, runId: given.runId as string, sessionId: given.sessionId as string }
}

/** The same for who wants to go on: what is wrong with the event as a value. */
export function readWorkerEvent(event: unknown): SessionRef | SubledgerError {
  try {
    return parseWorkerEvent(event)
  } catch (e) {
    if (SubledgerError.is(e)) return e
    throw e
  }
}

const matches = (value: unknown, pattern: RegExp): boolean => typeof value === 'string' && pattern.test(value)

/** One message of the dead-letter queue: whose event it was, or why that cannot be told. */
export type DeadLetterRecord =
  | { readonly messageId: string; readonly ref: SessionRef; readonly condition: string | null }
  | { readonly messageId: string; readonly error: SubledgerError }

/**
 * Reads a batch of the queue that is the worker's on-failure destination: each body is Lambda's envelope
 * `{requestContext: {condition}, requestPayload, …}`. A body that is something else is told apart, not thrown.
 * @throws SubledgerError bad_request when it is no batch of SQS messages at all
 */
export function parseDeadLetters(event: unknown): readonly DeadLetterRecord[] {
  const records = (event as { Records?: unknown } | null)?.Records
  if (!Array.isArray(records))
    throw new SubledgerError('bad_request', 'Not a batch of SQS messages: there is no list Records')
  return records.map((record: { messageId?: unknown; body?: unknown } | null) => {
    const messageId = String(record?.messageId ?? '')
    try {
      const letter = parseJson(record?.body)
      const ref = parseWorkerEvent(letter?.requestPayload)
      const condition = letter?.requestContext?.condition
      return { messageId, ref, condition: typeof condition === 'string' ? condition : null }
    } catch (e) {
      if (!SubledgerError.is(e)) throw e
      return { messageId, error: e }
    }
  })
}

interface Envelope {
  readonly requestPayload?: unknown
  readonly requestContext?: { readonly condition?: unknown } | null
}

function parseJson(body: unknown): Envelope | null {
  try {
    return JSON.parse(String(body)) as Envelope | null
  } catch (cause) {
    throw new SubledgerError('bad_request', 'The body of the message is not JSON', { cause })
  }
}
