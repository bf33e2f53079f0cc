/** What is asked of EventBridge Scheduler. There is no emulator of it: the SDK's own client is asked, and does not send. */
import * as sdk from '@aws-sdk/client-scheduler'
import { mockClient } from 'aws-sdk-client-mock'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Schedule } from '../../src/domain/schedule.ts'
import { createSchedulerTimer } from '../../src/invoke/schedule-timer.ts'
import { readStartEvent } from '../../src/invoke/tick-event.ts'

const scheduler = mockClient(sdk.SchedulerClient)
const settings = { group: 'stack', role: 'arn:role', target: 'arn:function', deadLetters: 'arn:queue' }
const nightly: Schedule = {
  id: '0123456789abcdef',
  expression: 'cron(0 3 * * ? *)',
  timezone: 'Europe/Berlin',
  overlap: 'skip',
  run: { team: 'crew', input: 'a secret of the tenant', budget: { tokens: 1_000_000 } },
  createdAt: 0,
}
const first = Date.parse('2026-01-31T03:00:00Z')
let loaded = 0
const timer = createSchedulerTimer(settings, async () => {
  loaded++
  return { sdk, client: new sdk.SchedulerClient({ region: 'eu-central-1' }) }
})
const fault = (make: new (options: never) => Error, message = 'no') =>
  new make({ $metadata: {}, Message: message, message } as never)

beforeEach(() => {
  scheduler.reset()
  loaded = 0
})

describe('a schedule that is made', () => {
  test('ticks one function at its times, with names and the scheduled time, and nothing of what it starts', async () => {
    scheduler.on(sdk.CreateScheduleCommand).resolves({ ScheduleArn: 'arn' })
    await timer.start('acme', nightly, first)
    const { Target, ...input } = scheduler.commandCalls(sdk.CreateScheduleCommand)[0]!.args[0].input
    expect(input).toEqual({
      Name: nightly.id,
      GroupName: 'stack',
      ClientToken: nightly.id,
      Description: 'Schedule 0123456789abcdef of tenant acme',
      ScheduleExpression: 'cron(0 3 * * ? *)',
      ScheduleExpressionTimezone: 'Europe/Berlin',
      FlexibleTimeWindow: { Mode: 'OFF' },
      State: 'ENABLED',
    })
    const { Input, ...target } = Target!
    expect(target).toEqual({
      Arn: 'arn:function',
      RoleArn: 'arn:role',
      RetryPolicy: { MaximumEventAgeInSeconds: 3_600, MaximumRetryAttempts: 20 },
      DeadLetterConfig: { Arn: 'arn:queue' },
    })
    const event = JSON.parse(Input!)
    expect(event).toEqual({
      tenant: 'acme',
      schedule: nightly.id,
      scheduledTime: '<aws.scheduler.scheduled-time>',
    })
    // as it is delivered
    const delivered = JSON.parse(Input!.replace('<aws.scheduler.scheduled-time>', '2026-01-31T02:00:00Z'))
    expect(readStartEvent(delivered, first)).toEqual({
      kind: 'tick',
      tenant: 'acme',
      id: nightly.id,
      at: Date.parse('2026-01-31T02:00:00Z'),
    })
  })

  test('of a rate counts from its first tick', async () => {
    scheduler.on(sdk.CreateScheduleCommand).resolves({})
    await timer.start('acme', { ...nightly, expression: 'rate(2 hours)', timezone: 'UTC' }, first)
    expect(scheduler.commandCalls(sdk.CreateScheduleCommand)[0]!.args[0].input).toMatchObject({
      ScheduleExpression: 'rate(2 hours)',
      StartDate: new Date(first),
    })
  })

  test('and was there already is made', async () => {
    scheduler.on(sdk.CreateScheduleCommand).rejects(fault(sdk.ConflictException))
    await expect(timer.start('acme', nightly, first)).resolves.toBeUndefined()
  })

  test.each([
    ['is not valid there', sdk.ValidationException],
    ['is one too many there', sdk.ServiceQuotaExceededException],
  ])('and %s is refused', async (_, make) => {
    scheduler.on(sdk.CreateScheduleCommand).rejects(fault(make, 'because'))
    await expect(timer.start('acme', nightly, first)).rejects.toMatchObject({
      code: 'bad_request',
      message: 'EventBridge Scheduler does not take the schedule: because',
    })
  })

  test('and cannot be made now is a fault, which may pass', async () => {
    scheduler.on(sdk.CreateScheduleCommand).rejects(fault(sdk.ThrottlingException))
    await expect(timer.start('acme', nightly, first)).rejects.toBeInstanceOf(sdk.ThrottlingException)
  })
})

describe('a schedule that is ended', () => {
  const ref = { tenant: 'acme', id: nightly.id }

  test('is deleted from the group of the stack', async () => {
    scheduler.on(sdk.DeleteScheduleCommand).resolves({})
    await timer.stop(ref)
    expect(scheduler.commandCalls(sdk.DeleteScheduleCommand)[0]!.args[0].input).toEqual({
      Name: nightly.id,
      GroupName: 'stack',
    })
  })

  test('and is gone already is ended', async () => {
    scheduler.on(sdk.DeleteScheduleCommand).rejects(fault(sdk.ResourceNotFoundException))
    await expect(timer.stop(ref)).resolves.toBeUndefined()
  })

  test('and cannot be deleted now is a fault', async () => {
    scheduler.on(sdk.DeleteScheduleCommand).rejects(fault(sdk.InternalServerException))
    await expect(timer.stop(ref)).rejects.toBeInstanceOf(sdk.InternalServerException)
  })
})

test('the SDK is loaded with the first schedule, and not before', async () => {
  expect(loaded).toBe(0)
  scheduler.on(sdk.DeleteScheduleCommand).resolves({})
  await timer.stop({ tenant: 'acme', id: nightly.id })
  expect(loaded).toBe(1)
})
