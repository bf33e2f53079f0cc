/**
 * The deployed product on this machine: the functions of serverless.yml under serverless-offline, workers invoked through
 * its Lambda endpoint, and an embedded DynamoDB. Everything listens on 127.0.0.1.
 *
 *     npm run offline        HTTP API on 4320 (SUBLEDGER_PORT), Lambda endpoint on 4322 (SUBLEDGER_LAMBDA_PORT)
 *
 * More settings: SUBLEDGER_DATA (folder for the table; in memory unless set), SUBLEDGER_TEAMS, SUBLEDGER_LEASE_SECONDS
 * (10), SUBLEDGER_EVENT_AGE_SECONDS (10), SUBLEDGER_SWEEP_SECONDS (5), SUBLEDGER_WORKER_TIMEOUT_SECONDS (60),
 * SUBLEDGER_RETRY_SECONDS (the two delays before retries, `2,4`). With SUBLEDGER_AUTH=oidc and the settings of an issuer the
 * request authorizer of serverless.yml stands before the API, and both look at every token.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { seconds } from '../src/config.ts'
import { readAuth } from '../src/config-auth.ts'
import { readLimits } from '../src/config-limits.ts'
import { type Emulator, startEmulator } from '../src/local/emulator.ts'
import { createTable } from '../src/store/create-table.ts'
import { dynamoClient } from '../src/store/dynamo-table.ts'
import { buildFunctions } from './build.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const STAGE = 'offline'
/** as serverless.yml names it */
const TABLE = `subledger-${STAGE}`
const env = process.env

const settings = await readSettings().catch(giveUp)
const emulator = await startTable().catch(giveUp)
const code = await mkdtemp(path.join(os.tmpdir(), 'subledger-offline-'))
await buildFunctions(code)
const child = startServerless(emulator.endpoint)

const ended = new Promise<number>((resolve) => child.once('exit', (status) => resolve(status ?? 0)))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill('SIGTERM'))
if (await ready()) {
  console.log(
    `Subledger offline: HTTP API on http://127.0.0.1:${settings.httpPort}/v1, Lambda endpoint on http://127.0.0.1:${settings.lambdaPort}`,
  )
}
process.exitCode = await ended
await emulator.stop()
await rm(code, { recursive: true, force: true })

function giveUp(e: Error): never {
  console.error(e.message)
  process.exit(2)
}

/** @throws Error that names the variable and says what it should be */
async function readSettings() {
  // wrong ones are told here, and not by the first request
  readLimits(env)
  return {
    auth: readAuth(env, 'local').kind,
    httpPort: await port('SUBLEDGER_PORT', 4320),
    lambdaPort: await port('SUBLEDGER_LAMBDA_PORT', 4322),
    /** serverless-offline's own Lambda endpoint, behind ours */
    innerPort: await freePort(),
    retryDelaysMs: retryDelays(),
    sweepMs: seconds(env, 'SUBLEDGER_SWEEP_SECONDS', 5) * 1000,
    leaseSeconds: seconds(env, 'SUBLEDGER_LEASE_SECONDS', 10),
    eventAgeSeconds: seconds(env, 'SUBLEDGER_EVENT_AGE_SECONDS', 10),
    workerTimeout: Math.ceil(seconds(env, 'SUBLEDGER_WORKER_TIMEOUT_SECONDS', 60)),
    /** other handlers for some functions, `{"worker": "path/to/file.export"}`: tests put one there that crashes */
    handlers: JSON.parse(env.SUBLEDGER_OFFLINE_HANDLERS ?? '{}'),
  }
}

function startServerless(dynamodbEndpoint: string): ChildProcess {
  const { auth, httpPort, lambdaPort, innerPort, leaseSeconds, eventAgeSeconds, workerTimeout } = settings
  const options = ['--host', '127.0.0.1', '--httpPort', `${httpPort}`, '--lambdaPort', `${innerPort}`]
  const flags = ['--noSponsor', '--noPrependStageInUrl', '--localEnvironment', ...(auth === 'oidc' ? [] : ['--noAuth'])]
  const params = Object.entries({ leaseSeconds, eventAgeSeconds, workerTimeout, auth, ...otherParams() }).flatMap(
    ([name, value]) => (value ? ['--param', `${name}=${value}`] : []),
  )
  const serverless = path.join(ROOT, 'node_modules/serverless/bin/serverless.js')
  return spawn(process.execPath, [serverless, 'offline', 'start', '--stage', STAGE, ...options, ...flags, ...params], {
    cwd: ROOT,
    // a channel, so that it ends when this process does, however that happens
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: {
      ...env,
      SUBLEDGER_OFFLINE: JSON.stringify({ ...settings, code }),
      SUBLEDGER_DYNAMODB_ENDPOINT: dynamodbEndpoint,
      SUBLEDGER_LAMBDA_ENDPOINT: `http://127.0.0.1:${lambdaPort}`,
    },
  })
}

/** What the stack has parameters for; the rest reaches the functions with the environment. */
function otherParams() {
  return {
    maxBodyBytes: env.SUBLEDGER_MAX_BODY_BYTES,
    maxDepth: env.SUBLEDGER_MAX_DEPTH,
    maxWidth: env.SUBLEDGER_MAX_WIDTH,
    maxTurns: env.SUBLEDGER_MAX_TURNS,
    maxTasks: env.SUBLEDGER_MAX_TASKS,
    maxConcurrency: env.SUBLEDGER_MAX_CONCURRENCY,
    tenantConcurrency: env.SUBLEDGER_TENANT_CONCURRENCY,
    maxPolls: env.SUBLEDGER_MAX_POLLS,
    oidcIssuer: env.SUBLEDGER_OIDC_ISSUER,
    oidcAudience: env.SUBLEDGER_OIDC_AUDIENCE,
    oidcTenantClaim: env.SUBLEDGER_OIDC_TENANT_CLAIM,
    oidcScopeClaim: env.SUBLEDGER_OIDC_SCOPE_CLAIM,
    oidcScopePrefix: env.SUBLEDGER_OIDC_SCOPE_PREFIX,
  }
}

/** The embedded DynamoDB with the table in it. */
async function startTable(): Promise<Emulator> {
  const started = await startEmulator(env.SUBLEDGER_DATA || null)
  const client = dynamoClient({ endpoint: started.endpoint })
  await createTable(client, TABLE)
  client.destroy()
  return started
}

/** Waits for the API to answer, and tells whether it does so well; false also when serverless-offline ended instead. */
async function ready(): Promise<boolean> {
  while (child.exitCode === null && child.signalCode === null) {
    const answer = await fetch(`http://127.0.0.1:${settings.httpPort}/v1/health`).catch(() => undefined)
    if (answer) return answer.ok
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return false
}

function retryDelays(): readonly number[] {
  const given = env.SUBLEDGER_RETRY_SECONDS || '2,4'
  const delays = given.split(',').map((text) => Number(text) * 1000)
  if (delays.length !== 2 || !delays.every((ms) => ms >= 0))
    throw new Error(`SUBLEDGER_RETRY_SECONDS is "${given}": it must be two numbers of seconds, such as 2,4`)
  return delays
}

async function port(name: string, fallback: number): Promise<number> {
  const value = Number(env[name] || fallback)
  if (!Number.isInteger(value) || value < 1 || value > 65_535)
    throw new Error(`${name} is "${env[name]}": it must be a port from 1 to 65535`)
  return freePort(value).catch(() => {
    throw new Error(`Port ${value} is in use: end what uses it, or set ${name} to another port`)
  })
}

/** Tries the port, or any one that is free. */
async function freePort(wanted = 0): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(wanted, '127.0.0.1', resolve)
  })
  const { port: free } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return free
}
