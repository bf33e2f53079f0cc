// Events of the function startRun: one for each schedule in teams/schedules.yaml, by EventBridge Scheduler, and the minute
// at which queues of schedules are looked at, and schedules of the API that EventBridge Scheduler does not tick. An event carries the id of its schedule and the scheduled time, which is
// the same at every attempt.
const ROLE = { 'Fn::GetAtt': ['SchedulerRole', 'Arn'] }
const TIMER = { schedule: { rate: ['rate(1 minute)'], input: { due: true } } }

module.exports = async () => {
  const { readSchedules } = await import('../src/compose-schedules.ts')
  const { SCHEDULED_TIME } = await import('../src/invoke/tick-event.ts')
  const found = await readSchedules(process.env.SUBLEDGER_TEAMS || 'teams')
  return [
    ...found.map(({ id, expression, timezone, enabled }) => ({
      schedule: {
        method: 'scheduler',
        rate: [expression],
        ...(expression.startsWith('cron') && { timezone }),
        enabled,
        roleArn: ROLE,
        description: `Schedule ${id}`,
        input: { schedule: id, scheduledTime: SCHEDULED_TIME },
      },
    })),
    TIMER,
  ]
}
