import type { Context } from 'aws-lambda'
import { type LambdaContext, once } from '../src/compose.ts'
import { composeWorker } from '../src/compose-worker.ts'
import { readConfig } from '../src/config.ts'
import { SubledgerError } from '../src/domain/errors.ts'
import { runSession } from '../src/engine/run-session.ts'
import { readWorkerEvent } from '../src/invoke/worker-event.ts'

/** Drives the session of the event. What it throws is a fault: Lambda tries again, and at last gives the event up. */
export const workerHandler = (engine: () => LambdaContext) => async (event: unknown, context: Context) => {
  const ctx = engine()
  const log = ctx.log.with({ requestId: context.awsRequestId })
  const ref = readWorkerEvent(event)
  // a bad event would be as bad the next time
  if (ref instanceof SubledgerError) return log.error('event dropped', { error: ref.message, issues: ref.issues })
  log.info('worker began', ref)
  await runSession({ ...ctx, log }, ref, { deadlineAt: Date.now() + context.getRemainingTimeInMillis() })
  log.info('worker ended', ref)
}

export const handler = workerHandler(once(() => composeWorker(readConfig(process.env))))
