import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { SubledgerError } from '../domain/errors.ts'
import { ApiError } from './client.ts'
import type { Command } from './command.ts'
import { EXIT, type ExitCode, type Io, UsageError } from './io.ts'
import { printable } from './text.ts'
import { inWordsOfCommands, untold } from './words.ts'

/** Each command is loaded when it is used: `validate` needs no table and no model. */
const COMMANDS: { readonly [name: string]: () => Promise<Command> } = {
  dev: async () => (await import('./commands/dev.ts')).dev,
  demo: async () => (await import('./commands/demo.ts')).demo,
  run: async () => (await import('./commands/run.ts')).run,
  estimate: async () => (await import('./commands/estimate.ts')).estimate,
  input: async () => (await import('./commands/input.ts')).input,
  retry: async () => (await import('./commands/retry.ts')).retry,
  watch: async () => (await import('./commands/watch.ts')).watch,
  budget: async () => (await import('./commands/budget.ts')).budget,
  approve: async () => (await import('./commands/approve.ts')).approve,
  delete: async () => (await import('./commands/delete.ts')).deleteRun,
  cancel: async () => (await import('./commands/cancel.ts')).cancel,
  list: async () => (await import('./commands/read.ts')).list,
  get: async () => (await import('./commands/read.ts')).get,
  sessions: async () => (await import('./commands/read.ts')).sessions,
  messages: async () => (await import('./commands/read.ts')).messages,
  calls: async () => (await import('./commands/read.ts')).calls,
  usage: async () => (await import('./commands/usage.ts')).usage,
  audit: async () => (await import('./commands/audit.ts')).audit,
  teams: async () => (await import('./commands/read.ts')).teams,
  validate: async () => (await import('./commands/validate.ts')).validate,
}

/** Commands that are not there yet: they say so. */
const NOT_THERE = ['export', 'replay', 'init']

export async function main(io: Io, argv: readonly string[]): Promise<ExitCode> {
  const [name, ...rest] = argv
  try {
    if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
      await help(name === undefined ? io.err : io.out)
      return name === undefined ? EXIT.usage : EXIT.ok
    }
    if (name === 'version' || name === '--version' || name === '-v') {
      io.out(await version())
      return EXIT.ok
    }
    if (NOT_THERE.includes(name)) throw new UsageError(`"${name}" is not supported by this version.`)
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
    if (!load) throw new UsageError(`There is no command "${name}". "subledger help" lists them.`)
    const command = await load()
    if (rest.includes('--help') || rest.includes('-h')) {
      io.out(`subledger ${command.usage}\n  ${command.summary}`)
      if (!OWN_OPTIONS.includes(name)) for (const line of COMMON) io.out(line)
      return EXIT.ok
    }
    try {
      return await command.run(io, rest)
    } catch (e) {
      if (e instanceof UsageError) throw new UsageError(`${e.message}\nUse: subledger ${command.usage}`)
      throw e
    }
  } catch (e) {
    return told(io, e)
  }
}

/** Everything that can be foreseen is told without a stack; the rest is a fault of the program and shows where it is. */
function told(io: Io, e: unknown): ExitCode {
  if (e instanceof UsageError) {
    io.err(printable(e.message))
    return EXIT.usage
  }
  if (e instanceof ApiError || SubledgerError.is(e)) {
    io.err(printable(inWordsOfCommands(e.message)))
    for (const i of untold(e)) io.err(`  ${printable(inWordsOfCommands(`${i.path} ${i.message}`.trim()))}`)
    // a server that fails is no fault of the user; one that does not know what it was asked for is told so
    return (e.status >= 400 && e.status < 500) || e.status === 501 ? EXIT.usage : EXIT.failed
  }
  if (e instanceof Error && e.name === 'LocalError') {
    io.err(printable(e.message))
    return EXIT.usage
  }
  io.err(printable(e instanceof Error ? (e.stack ?? e.message) : String(e)))
  return EXIT.failed
}

async function version(): Promise<string> {
  const text = await readFile(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** Commands that talk to no API. */
const OWN_OPTIONS = ['dev', 'demo', 'validate']

const COMMON = [
  'Options of every command that looks at runs:',
  '  --data DIR   the books on this machine (SUBLEDGER_DATA; .subledger unless given)',
  '  --teams DIR  the folder of team files (SUBLEDGER_TEAMS; teams unless given)',
  '  --url URL    a running API instead of the two (SUBLEDGER_URL)',
  '  --auth iam   requests to it are signed with the AWS credentials at hand. A bearer token is taken from',
  '               SUBLEDGER_TOKEN alone, so that it stands in no list of processes',
  '  --json       what the API answers, as JSON: a list with all its pages in one, a run with its tree as',
  '               {run, sessions}',
]

async function help(print: (line: string) => void): Promise<void> {
  print('Subledger: teams of LLM agents, with books that balance.\n')
  for (const load of Object.values(COMMANDS)) {
    const { usage, summary } = await load()
    print(`  subledger ${usage}\n      ${summary}`)
  }
  print('')
  for (const line of COMMON) print(line)
  print('Exit codes: 0 good, 1 the run did not complete, 2 wrong use or bad input, 130 interrupted.')
}

const IMPATIENT_MS = 1_000

/** The process as a command sees it. */
function processIo(): Io {
  const interrupt = new AbortController()
  let first: number | undefined
  const onSignal = () => {
    first ??= performance.now()
    interrupt.abort()
    // a terminal and a starter may each send the same signal; one that comes later is meant
    if (performance.now() - first > IMPATIENT_MS) process.exit(EXIT.interrupted)
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  // what nobody could catch, such as a damaged data folder in the emulator: one sentence, and no stack
  process.on('uncaughtException', (e) => {
    process.stderr.write(`Something went wrong that should not have: ${printable(e.message)}\n`)
    process.stderr.write('If it comes again, the data folder may be damaged: try another one with --data DIR.\n')
    process.exit(EXIT.failed)
  })
  // a reader that has seen enough (`| head`) is no failure
  process.stdout.on('error', (e: NodeJS.ErrnoException) => process.exit(e.code === 'EPIPE' ? EXIT.ok : EXIT.failed))
  return {
    out: (line) => process.stdout.write(`${line}\n`),
    err: (line) => process.stderr.write(`${line}\n`),
    env: process.env,
    interrupted: interrupt.signal,
    sleep: (ms) =>
      new Promise((resolve) => {
        if (interrupt.signal.aborted) return resolve()
        const done = () => {
          clearTimeout(timer)
          interrupt.signal.removeEventListener('abort', done)
          resolve()
        }
        const timer = setTimeout(done, ms)
        interrupt.signal.addEventListener('abort', done)
      }),
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = await main(processIo(), process.argv.slice(2))
  // a model call that was left to the next start must not keep this process; what was printed goes out first
  process.stdout.write('', () => process.stderr.write('', () => process.exit()))
}
