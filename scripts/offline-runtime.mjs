/**
 * What stands between serverless-offline and a handler: the manners of Lambda's runtime that serverless-offline lacks. A
 * rejection that nobody handles, an exception in a callback and process.exit end the invocation with an error, and nothing
 * else; without this they would end the thread, and its caller would wait for the time-out.
 *
 * SUBLEDGER_OFFLINE_HANDLER names the handler, `file.export` without the file's extension.
 */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

let fail = null

function broken(error) {
  if (fail) fail(error)
  else process.stderr.write(`an error after the end of an invocation: ${error?.stack ?? error}\n`)
}

process.on('uncaughtException', broken)
process.on('unhandledRejection', broken)
process.exit = (code) => {
  const error = new Error(`Runtime exited with code ${code ?? 0}`)
  broken(error)
  throw error
}

async function load(reference) {
  const dot = reference.lastIndexOf('.')
  const file = path.resolve(reference.slice(0, dot))
  const found = ['.mjs', '.js', '.ts'].map((extension) => file + extension).find(existsSync)
  if (!found) throw new Error(`There is no handler ${reference}`)
  return (await import(pathToFileURL(found).href))[reference.slice(dot + 1)]
}

export function handler(event, context) {
  return new Promise((resolve, reject) => {
    fail = reject
    const awsRequestId = context.clientContext?.custom?.requestId ?? context.awsRequestId
    load(process.env.SUBLEDGER_OFFLINE_HANDLER)
      .then((run) => run(event, { ...context, awsRequestId }))
      .then(resolve, reject)
  })
    .catch((error) => {
      // API Gateway's answer to a function that failed; serverless-offline would make it a 200
      if (!event?.requestContext?.http) throw error
      process.stderr.write(`the handler of ${event.requestContext.http.path} failed: ${error?.stack ?? error}\n`)
      return { statusCode: 500, body: JSON.stringify({ message: 'Internal Server Error' }) }
    })
    .finally(() => {
      fail = null
    })
}
