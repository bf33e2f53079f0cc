import type { CreateScheduleCommandInput, SchedulerClient } from '@aws-sdk/client-scheduler'
import { SubledgerError } from '../domain/errors.ts'
import type { Schedule } from '../domain/schedule.ts'
import type { ScheduleRef } from '../ports/schedule-store.ts'
import type { ScheduleTimer } from '../ports/schedule-timer.ts'
import { tickPayload } from './tick-event.ts'

export interface TimerSettings {
  /** the schedule group of this stack: it holds nothing else, and goes with the stack */
  readonly group: string
  /** ARN of the role in whose name the target is invoked */
  readonly role: string
  /** ARN of the function that is ticked */
  readonly target: string
  /** ARN of the queue for ticks that could not be delivered */
  readonly deadLetters: string
}

/** A tick that could not be delivered for an hour has passed: the next one may be near. */
const MOST_AGE_SECONDS = 3_600
const MOST_RETRIES = 20

/** A rate counts from its first tick, which may not be long past when it is made. */
const isRate = (schedule: Schedule): boolean => schedule.expression.startsWith('rate')

/**
 * Schedules as resources of EventBridge Scheduler, named by their ids, which are random and never given twice.
 * @param load the SDK is loaded with the first schedule: no other request needs it
 */
export function createSchedulerTimer(
  settings: TimerSettings,
  load: () => Promise<{ sdk: typeof import('@aws-sdk/client-scheduler'); client: SchedulerClient }>,
): ScheduleTimer {
  return {
    async start(tenant, schedule, first) {
      const { sdk, client } = await load()
      try {
        await client.send(new sdk.CreateScheduleCommand(inputOf(settings, tenant, schedule, first)))
      } catch (e) {
        if (e instanceof sdk.ConflictException) return // it is there: whoever made it did not hear so
        if (e instanceof sdk.ValidationException || e instanceof sdk.ServiceQuotaExceededException)
          throw new SubledgerError('bad_request', `EventBridge Scheduler does not take the schedule: ${e.message}`, {
            cause: e,
          })
        throw e
      }
    },
    async stop({ id }: ScheduleRef) {
      const { sdk, client } = await load()
      try {
        await client.send(new sdk.DeleteScheduleCommand({ Name: id, GroupName: settings.group }))
      } catch (e) {
        if (!(e instanceof sdk.ResourceNotFoundException)) throw e
      }
    },
  }
}

function inputOf(
  { group, role, target, deadLetters }: TimerSettings,
  tenant: string,
  schedule: Schedule,
  first: number,
): CreateScheduleCommandInput {
  return {
    Name: schedule.id,
    GroupName: group,
    ClientToken: schedule.id,
    Description: `Schedule ${schedule.id} of tenant ${tenant}`,
    ScheduleExpression: schedule.expression,
    ScheduleExpressionTimezone: schedule.timezone,
    // without it a rate would tick at once
    ...(isRate(schedule) && { StartDate: new Date(first) }),
    FlexibleTimeWindow: { Mode: 'OFF' },
    State: 'ENABLED',
    Target: {
      Arn: target,
      RoleArn: role,
      Input: tickPayload({ tenant, id: schedule.id }),
      RetryPolicy: { MaximumEventAgeInSeconds: MOST_AGE_SECONDS, MaximumRetryAttempts: MOST_RETRIES },
      DeadLetterConfig: { Arn: deadLetters },
    },
  }
}
