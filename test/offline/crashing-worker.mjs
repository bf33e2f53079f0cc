/**
 * The worker, but while the file `crash` is in TEST_CRASHES the first delivery of every event ends the hard way before the
 * worker itself is called: each event in one of the ways in which a handler can die.
 */
import { existsSync, openSync } from 'node:fs'
import path from 'node:path'

const { code } = JSON.parse(process.env.SUBLEDGER_OFFLINE)
const { handler: worker } = await import(path.join(code, 'worker/index.mjs'))
const folder = process.env.TEST_CRASHES
const forever = () => new Promise(() => {})

const WAYS = [
  () => {
    throw new Error('thrown')
  },
  () => {
    Promise.reject(new Error('rejected and never handled'))
    return forever()
  },
  () => {
    setTimeout(() => JSON.parse('{'))
    return forever()
  },
  () => process.exit(1),
]

export async function handler(event, context) {
  if (event.die === 'thread') return dieAsThread()
  if (existsSync(path.join(folder, 'crash')) && isFirst(context.awsRequestId)) {
    const digit = Number.parseInt(context.awsRequestId.slice(-2), 16)
    return WAYS[digit % WAYS.length]()
  }
  return worker(event, context)
}

/** What no handler can do on purpose, but a lack of memory can: the thread is gone, and the runtime could not say so. */
function dieAsThread() {
  process.removeAllListeners('uncaughtException')
  setTimeout(() => JSON.parse('{'))
  return forever()
}

function isFirst(requestId) {
  try {
    openSync(path.join(folder, requestId), 'wx')
    return true
  } catch {
    return false
  }
}
