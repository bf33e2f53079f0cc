import type { Schedule } from '../domain/schedule.ts'
import type { ScheduleRef } from './schedule-store.ts'

/**
 * Ticks the schedules that were made over the API, from outside: an event at each of their times. Where there is none, the
 * timer that looks at the table ticks them.
 */
export interface ScheduleTimer {
  /**
   * From now on the schedule ticks. Again for the same schedule: nothing changes.
   * @param first epoch ms of its first tick, from which a rate counts
   * @throws SubledgerError bad_request, when the timer does not take it: then it does not tick
   */
  start(tenant: string, schedule: Schedule, first: number): Promise<void>
  /** It ticks no more, also where it never did. */
  stop(ref: ScheduleRef): Promise<void>
}
