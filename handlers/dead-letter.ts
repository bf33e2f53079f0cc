import type { Context, SQSBatchResponse } from 'aws-lambda'
import { compose, once } from '../src/compose.ts'
import { readConfig } from '../src/config.ts'
import { sweepSession } from '../src/engine/sweep-run.ts'
import { parseDeadLetters } from '../src/invoke/worker-event.ts'

const engine = once(() => compose(readConfig(process.env)))

/** Looks at the session of each event that Lambda gave up. A message whose session could not be looked at comes again. */
export const handler = async (event: unknown, context: Context): Promise<SQSBatchResponse> => {
  const ctx = engine()
  const log = ctx.log.with({ requestId: context.awsRequestId })
  const batchItemFailures: { itemIdentifier: string }[] = []
  for (const letter of parseDeadLetters(event)) {
    if ('error' in letter) log.error('dead letter dropped: it is no event of a worker', letter)
    else
      await sweepSession({ ...ctx, log }, letter.ref)
        .then((report) => log.warn('worker event given up', { ...letter, report }))
        .catch((error) => {
          log.error('dead letter not handled', { ...letter, error })
          batchItemFailures.push({ itemIdentifier: letter.messageId })
        })
  }
  return { batchItemFailures }
}
