import { SubledgerError } from '../domain/errors.ts'
import { SCHEDULE_ID, TENANT } from '../domain/ids.ts'
import type { ScheduleRef } from '../ports/schedule-store.ts'

/** What starts a run by itself: the tick of a schedule, or the timer's minute. */
export type StartEvent =
  /** `tenant`: of a schedule that was made over the API; without it the schedule is one of the file */
  | { readonly kind: 'tick'; readonly id: string; readonly at: number; readonly tenant?: string }
  | { readonly kind: 'due' }
  /** a direct invocation: what `POST /v1/runs` takes */
  | { readonly kind: 'start'; readonly body: unknown }

/** EventBridge Scheduler replaces this; what stands in for it on one's own machine passes it on as it is. */
export const SCHEDULED_TIME = '<aws.scheduler.scheduled-time>'
const MINUTE_MS = 60_000

/** What EventBridge Scheduler sends for a schedule that was made over the API, as JSON text. */
export const tickPayload = ({ tenant, id }: ScheduleRef): string =>
  JSON.stringify({ tenant, schedule: id, scheduledTime: SCHEDULED_TIME })

/**
 * A tick says which schedule and which time, and nothing else of it is taken.
 * @throws SubledgerError bad_request; unknown_schedule where no schedule can have such an id
 */
export function readStartEvent(event: unknown, now: number): StartEvent {
  if (event === null || typeof event !== 'object') return { kind: 'start', body: event }
  if ('due' in event && event.due === true) return { kind: 'due' }
  if (!('schedule' in event)) return { kind: 'start', body: event }
  const { schedule: id, scheduledTime, tenant } = event as { [name: string]: unknown }
  const at = timeOf(scheduledTime, now)
  if (typeof id !== 'string' || at === undefined)
    throw new SubledgerError('bad_request', 'A tick needs the id of its schedule and its scheduledTime, as ISO 8601.')
  if (!SCHEDULE_ID.test(id))
    throw new SubledgerError('unknown_schedule', `There is no schedule ${JSON.stringify(id.slice(0, 64))}.`)
  if (tenant === undefined) return { kind: 'tick', id, at }
  if (typeof tenant !== 'string' || !TENANT.test(tenant))
    throw new SubledgerError('bad_request', 'The tenant of a tick must be the name of a tenant.')
  return { kind: 'tick', id, at, tenant }
}

function timeOf(text: unknown, now: number): number | undefined {
  if (text === SCHEDULED_TIME) return Math.floor(now / MINUTE_MS) * MINUTE_MS
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at
}
