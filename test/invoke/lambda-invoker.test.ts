import { LambdaClient } from '@aws-sdk/client-lambda'
import { afterEach, describe, expect, test } from 'vitest'
import { createLambdaInvoker } from '../../src/invoke/lambda-invoker.ts'
import { type LambdaServer, type Refusal, startLambdaServer } from '../support/lambda-server.ts'
import { invokerContract } from './contract.ts'
import { REF } from './fixtures.ts'

const clientOf = (server: LambdaServer) =>
  new LambdaClient({
    endpoint: server.url,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  })

describe('contract', () => {
  invokerContract(async (worker) => {
    const server = await startLambdaServer({ 'sub-worker': worker })
    const client = clientOf(server)
    return {
      invoker: createLambdaInvoker(client, 'sub-worker'),
      settled: server.settled,
      async close() {
        client.destroy()
        await server.close()
      },
    }
  })
})

const open: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

async function against(refuse: Refusal, functionName = 'sub-worker') {
  const server = await startLambdaServer({ 'sub-worker': async () => {} }, refuse)
  const client = clientOf(server)
  open.push(() => client.destroy(), server.close)
  return { server, invoker: createLambdaInvoker(client, functionName) }
}

test('the function is invoked asynchronously', async () => {
  const { server, invoker } = await against(() => undefined)
  await invoker.invoke(REF)
  expect(server.requests).toEqual([{ functionName: 'sub-worker', type: 'Event', body: JSON.stringify(REF) }])
})

test('an answer that is not 202 is an error that names function, session and answer', async () => {
  const { invoker } = await against(() => ({ status: 200, body: {} }))
  await expect(invoker.invoke(REF)).rejects.toThrow(
    `Lambda answered 200 and not 202 to the invocation of the worker function sub-worker for session ${REF.sessionId} of run ${REF.runId}`,
  )
})

test('a function that is not there is an error that says so', async () => {
  const { invoker } = await against(() => undefined, 'sub-wroker')
  await expect(invoker.invoke(REF)).rejects.toThrow(
    /Could not invoke the worker function sub-wroker .*ResourceNotFoundException: Function not found: sub-wroker/,
  )
})

test('a throttled invocation is sent again', async () => {
  const { server, invoker } = await against((n) =>
    n === 0 ? { status: 429, type: 'TooManyRequestsException', body: { message: 'Rate Exceeded.' } } : undefined,
  )
  await invoker.invoke(REF)
  expect(server.requests).toHaveLength(2)
})
