import type { Schedule, ScheduleState } from '../domain/schedule.ts'
import type { Page, Put } from '../ports.ts'

export interface ScheduleRef {
  readonly tenant: string
  readonly id: string
}

/** Schedules made over the API, and what all schedules have done. Every read but `dueSchedules` is consistent. */
export interface ScheduleStore {
  putSchedule(tenant: string, schedule: Schedule, dueAt: number): Promise<Put>
  /** `schedule` is null for one whose definition is elsewhere, in a file */
  getSchedule(ref: ScheduleRef): Promise<{ schedule: Schedule | null; state: ScheduleState } | undefined>
  listSchedules(tenant: string): Promise<readonly { id: string; schedule: Schedule | null; state: ScheduleState }[]>
  /** what a schedule has done, if it still is as it was seen (v 0: nothing is there) */
  moveSchedule(ref: ScheduleRef, seenV: number, to: Omit<ScheduleState, 'v'>): Promise<Put>
  deleteSchedule(ref: ScheduleRef): Promise<void>
  /** schedules whose time has come, earliest first; eventually consistent */
  dueSchedules(now: number, options: { limit: number; after?: string }): Promise<Page<ScheduleRef>>
}
