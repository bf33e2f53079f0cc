import type { Context } from 'aws-lambda'
import { once } from '../src/compose.ts'
import { composeStarter } from '../src/compose-starter.ts'
import { readConfig } from '../src/config.ts'
import { startRun } from '../src/engine/start-run.ts'
import { checkBody, createRunBody } from '../src/http/schemas.ts'

const starter = once(() => {
  const config = readConfig(process.env)
  return { ctx: composeStarter(config), tenant: config.tenant }
})

/**
 * A schedule's event or a direct invocation: what `POST /v1/runs` takes, for the tenant of this deployment. Bad input is
 * thrown: whoever invoked sees it, and nothing has been written.
 */
export const handler = async (event: unknown, { awsRequestId }: Context) => {
  const { ctx, tenant } = starter()
  const log = ctx.log.with({ requestId: awsRequestId })
  const run = await startRun({ ...ctx, log }, { ...checkBody(createRunBody, event), tenant })
  log.info('run started', { runId: run.runId, team: run.team })
  return { runId: run.runId, team: run.team, status: run.status }
}
