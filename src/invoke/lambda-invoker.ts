import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda'
import type { Invoker } from '../ports.ts'
import { workerPayload } from './worker-event.ts'

/**
 * Workers as asynchronous invocations of a Lambda function. The SDK retries what is throttled or unreachable: an event
 * that is sent twice does no harm.
 * @throws Error when Lambda did not accept the event
 */
export function createLambdaInvoker(client: LambdaClient, functionName: string): Invoker {
  return {
    async invoke(ref) {
      const what = `the worker function ${functionName} for session ${ref.sessionId} of run ${ref.runId}`
      const answer = await client
        .send(new InvokeCommand({ FunctionName: functionName, InvocationType: 'Event', Payload: workerPayload(ref) }))
        .catch((e: Error) => {
          throw new Error(`Could not invoke ${what}: ${e.name}: ${e.message}`, { cause: e })
        })
      if (answer.StatusCode !== 202)
        throw new Error(`Lambda answered ${answer.StatusCode} and not 202 to the invocation of ${what}`)
    },
  }
}
