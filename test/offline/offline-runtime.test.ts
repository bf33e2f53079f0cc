import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** As serverless-offline does it: the runtime is loaded in a thread and asked there, event after event. */
const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads')
  const runtime = import(workerData)
  parentPort.on('message', async ({ event, context }) => {
    const { handler } = await runtime
    parentPort.postMessage(await handler(event, context).then((value) => ({ value }), (e) => ({ error: e.message })))
  })`

let thread: Worker
beforeAll(() => {
  thread = new Worker(THREAD, {
    eval: true,
    stderr: true, // what it says about failures is not for the one who reads the tests
    workerData: path.resolve('scripts/offline-runtime.mjs'),
    env: { ...process.env, SUBLEDGER_OFFLINE_HANDLER: 'test/offline/crashing-handler.handler' },
  })
})
afterAll(() => thread.terminate())

const invoke = (how: string, context: object = {}, event: object = {}) =>
  new Promise((resolve, reject) => {
    const ended = () => reject(new Error('the thread ended'))
    thread.once('exit', ended)
    thread.once('message', (message) => {
      thread.off('exit', ended)
      resolve(message)
    })
    thread.postMessage({ event: { how, ...event }, context })
  })

test.each([
  ['throw', 'thrown'],
  ['unhandled rejection', 'rejected'],
  ['exception in a timer', expect.stringMatching(/JSON/)],
  ['exit', 'Runtime exited with code 3'],
])('%s ends the invocation with an error, and the thread serves the next one', async (how, error) => {
  expect(await invoke(how)).toEqual({ error })
  expect(await invoke('nothing', { awsRequestId: 'own' })).toEqual({ value: { requestId: 'own' } })
})

test('behind the HTTP API an error is a 500', async () => {
  expect(await invoke('throw', {}, { requestContext: { http: { path: '/x' } } })).toEqual({
    value: { statusCode: 500, body: '{"message":"Internal Server Error"}' },
  })
})

test('the request id is the one of the queue, so that retries share it', async () => {
  const context = { awsRequestId: 'own', clientContext: { custom: { requestId: 'of the event' } } }
  expect(await invoke('nothing', context)).toEqual({ value: { requestId: 'of the event' } })
})
