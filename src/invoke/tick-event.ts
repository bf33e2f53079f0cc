import { SubledgerError } from '../domain/errors.ts'

/** What starts a run by itself: the tick of a schedule, or the timer's minute. */
export type StartEvent =
  | { readonly kind: 'tick'; readonly id: string; readonly at: number }
  | { readonly kind: 'due' }
  /** a direct invocation: what `POST /v1/runs` takes */
  | { readonly kind: 'start'; readonly body: unknown }

/** EventBridge Scheduler replaces this; what stands in for it on one's own machine passes it on as it is. */
export const SCHEDULED_TIME = '<aws.scheduler.scheduled-time>'
const MINUTE_MS = 60_000

/**
 * A tick says which schedule and which time, and nothing else of it is taken.
 * @throws SubledgerError bad_request
 */
export function readStartEvent(event: unknown, now: number): StartEvent {
  if (event === null || typeof event !== 'object') return { kind: 'start', body: event }
  if ('due' in event && event.due === true) return { kind: 'due' }
  if (!('schedule' in event)) return { kind: 'start', body: event }
  const { schedule: id, scheduledTime } = event as { schedule: unknown; scheduledTime?: unknown }
  const at = timeOf(scheduledTime, now)
  if (typeof id !== 'string' || at === undefined)
    throw new SubledgerError('bad_request', 'A tick needs the id of its schedule and its scheduledTime, as ISO 8601.')
  return { kind: 'tick', id, at }
}

function timeOf(text: unknown, now: number): number | undefined {
  if (text === SCHEDULED_TIME) return Math.floor(now / MINUTE_MS) * MINUTE_MS
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at
}
