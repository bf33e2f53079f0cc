import type { Context } from 'aws-lambda'
import { compose, once } from '../src/compose.ts'
import { readConfig } from '../src/config.ts'
import { sweep } from '../src/engine/sweep.ts'

const engine = once(() => compose(readConfig(process.env)))

/** Every minute: looks at every run whose time has come. */
export const handler = async (_event: unknown, context: Context) => {
  const ctx = engine()
  const log = ctx.log.with({ requestId: context.awsRequestId })
  const report = await sweep({ ...ctx, log }, { deadlineAt: Date.now() + context.getRemainingTimeInMillis() })
  if (report.runs + report.folded + report.failed > 0) log.info('swept', report)
}
