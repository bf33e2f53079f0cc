import type { LambdaContext } from './compose.ts'
import { composeStarter } from './compose-starter.ts'
import type { Config } from './config.ts'
import { createSchedulerTimer } from './invoke/schedule-timer.ts'
import type { ScheduleTimer } from './ports/schedule-timer.ts'
import { once } from './system.ts'

/** For the API: it starts runs, and makes schedules where the stack has a place for them. */
export function composeHttp(config: Config): LambdaContext & { readonly scheduleTimer?: ScheduleTimer } {
  const ctx = composeStarter(config)
  if (!config.scheduler) return ctx
  // loaded with the first schedule, so that no other request carries it through a cold start
  const load = once(async () => {
    const sdk = await import('@aws-sdk/client-scheduler')
    return { sdk, client: new sdk.SchedulerClient({}) }
  })
  return { ...ctx, scheduleTimer: createSchedulerTimer(config.scheduler, load) }
}
