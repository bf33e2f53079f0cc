import { noQuery, scheduleBody } from '../schemas.ts'
import { schedule, schedules } from '../shapes.ts'
import { type Operation, ok } from './operation.ts'

/** What the API can do with schedules. */
export const SCHEDULE_OPERATIONS: readonly Operation[] = [
  {
    method: 'GET',
    path: '/v1/schedules',
    id: 'listSchedules',
    summary: 'All schedules, those of the file too',
    query: noQuery,
    answer: ok(schedules, 'The schedules'),
    refusals: [],
  },
  {
    method: 'POST',
    path: '/v1/schedules',
    id: 'createSchedule',
    summary: 'Starts runs at given times',
    query: noQuery,
    body: scheduleBody,
    answer: { status: 201, says: 'The schedule', shape: schedule, location: true },
    refusals: ['unknown_team', 'bad_team', 'unknown_agent', 'unpriced_model', 'unknown_schedule'],
  },
  {
    method: 'GET',
    path: '/v1/schedules/{id}',
    id: 'getSchedule',
    summary: 'A schedule, also one of the file',
    query: noQuery,
    answer: ok(schedule, 'The schedule'),
    refusals: ['unknown_schedule'],
  },
  {
    method: 'DELETE',
    path: '/v1/schedules/{id}',
    id: 'deleteSchedule',
    summary: 'Ends a schedule that was made over the API; its runs go on',
    query: noQuery,
    answer: { status: 204, says: 'It is gone' },
    refusals: ['unknown_schedule'],
  },
]
