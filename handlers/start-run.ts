import type { Context } from 'aws-lambda'
import { once } from '../src/compose.ts'
import { composeStarter } from '../src/compose-starter.ts'
import { readConfig } from '../src/config.ts'
import { SubledgerError } from '../src/domain/errors.ts'
import { startOnce } from '../src/engine/start-once.ts'
import { runDueSchedules, tick } from '../src/engine/tick.ts'
import { checkBody, createRunBody } from '../src/http/schemas.ts'
import { readStartEvent } from '../src/invoke/tick-event.ts'

const starter = once(() => {
  const config = readConfig(process.env)
  return { ctx: composeStarter(config), tenant: config.tenant, tickedOutside: config.tickedOutside }
})

/**
 * A tick of a schedule, the timer's minute, or a direct invocation with what `POST /v1/runs` takes; for the tenant of this
 * deployment, whatever the event says. Only a tick of a schedule that was made over the API names its tenant; it proves
 * that somebody ticks it outside where this deployment has somebody outside. An event that is delivered again starts
 * nothing again. Bad input is thrown: whoever invoked sees it, and nothing has been started.
 */
export const handler = async (event: unknown, context: Context) => {
  const { ctx: composed, tenant, tickedOutside } = starter()
  const log = composed.log.with({ requestId: context.awsRequestId })
  const ctx = { ...composed, log }
  const asked = readStartEvent(event, Date.now())
  if (asked.kind === 'due') {
    const report = await runDueSchedules(ctx, { deadlineAt: Date.now() + context.getRemainingTimeInMillis() })
    if (report.started + report.failed > 0) log.info('schedules run', report)
    return report
  }
  if (asked.kind === 'tick') {
    const ofApi = asked.tenant !== undefined
    const ref = { tenant: asked.tenant ?? tenant, id: asked.id }
    const ticked = await tick(ctx, ref, asked.at, ofApi && tickedOutside).catch((e) => {
      // it was deleted while it ticked: nobody needs to send this again
      if (ofApi && SubledgerError.is(e) && e.code === 'unknown_schedule') return undefined
      throw e
    })
    if (!ticked) return log.warn('tick of a schedule that is gone', { tenant: asked.tenant, schedule: asked.id })
    log.info('schedule ticked', { schedule: asked.id, ...ticked })
    return ticked
  }
  const name = { tenant, route: 'invocation', key: context.awsRequestId }
  const run = await startOnce(ctx, name, { ...checkBody(createRunBody, asked.body), tenant })
  log.info('run started', { runId: run.runId, team: run.team })
  return { runId: run.runId, team: run.team, status: run.status }
}
