import { stat } from 'node:fs/promises'
import { type Client, createClient } from './client.ts'
import type { Arguments } from './command.ts'
import { type Io, UsageError } from './io.ts'

export interface Connection {
  /** of the running API, as it was given; undefined: the app is in this process */
  readonly url: string | undefined
  readonly client: Client
  /** the API and its workers live in this process: when it ends, nothing goes on */
  readonly embedded: boolean
  readonly close: () => Promise<void>
}

export interface ConnectOptions {
  /** whether unfinished runs go on here, when the API is in this process */
  readonly work: boolean
  /** whether the command needs team files */
  readonly teams: boolean
  /** where they are, when it is not the usual folder */
  readonly teamsDir?: string
  /** which books it needs where the API is in this process: those that are there already, unless it says otherwise */
  readonly books?: 'made if missing' | 'none'
}

/** Where the embedded books are kept unless told otherwise. */
export const DEFAULT_DATA = '.subledger'
export const DEFAULT_TEAMS = 'teams'

/**
 * The API that a command talks to: a running one (`--url`, SUBLEDGER_URL), or the same app in this process on the books
 * under `--data`. Either way the command is a client of it.
 */
export async function connect(io: Io, args: Arguments, options: ConnectOptions): Promise<Connection> {
  const url = args.text('url') ?? io.env.SUBLEDGER_URL
  if (url !== undefined && url !== '') {
    const client = await remoteClient(io, checkUrl(url), args.text('auth'))
    return { client, embedded: false, url, close: async () => {} }
  }
  if (args.text('auth') !== undefined)
    throw new UsageError('--auth is for an API elsewhere: say which one with --url URL (SUBLEDGER_URL).')
  const teams = options.teamsDir ?? teamsDir(io, args)
  if (options.teams) await checkTeams(teams)
  const data = dataDir(io, args)
  if (options.books === undefined) await checkBooks(data)
  const { startEmbedded } = await import('../local/embedded.ts')
  const embedded = await startEmbedded({
    dataDir: options.books === 'none' ? null : data,
    teamsDir: teams,
    env: io.env,
    work: options.work,
  })
  return {
    client: createClient((request) => embedded.fetch(request), { baseUrl: 'http://localhost' }),
    embedded: true,
    url: undefined,
    close: () => embedded.stop(),
  }
}

/** A client that signs its requests (`--auth iam`), or sends the token of SUBLEDGER_TOKEN, if there is one. */
async function remoteClient(io: Io, baseUrl: string, auth: string | undefined): Promise<Client> {
  if (auth !== undefined && auth !== 'iam')
    throw new UsageError(`--auth is "${auth}": it can be iam (SigV4). A token goes into SUBLEDGER_TOKEN.`)
  if (auth === 'iam') {
    const { requestSigner } = await import('./sign.ts')
    const sign = requestSigner({ url: baseUrl, env: io.env })
    return createClient(async (request) => fetch(await sign(request)), { baseUrl })
  }
  const token = io.env.SUBLEDGER_TOKEN
  if (token && !SENDABLE.test(token))
    throw new UsageError(
      'SUBLEDGER_TOKEN is no token: it has spaces, line breaks or characters that are not ASCII. It is not sent.',
    )
  if (token && !isSafe(new URL(baseUrl)))
    throw new UsageError(`SUBLEDGER_TOKEN is not sent to ${baseUrl}: without https anybody on the way could read it.`)
  return createClient((request) => fetch(request), { baseUrl, ...(token && { token }) })
}

/** what a header takes */
const SENDABLE = /^[\x21-\x7e]+$/
const isSafe = (url: URL): boolean =>
  url.protocol === 'https:' || /^(127\.0\.0\.1|localhost|\[::1\])$/.test(url.hostname)

export const dataDir = (io: Io, args: Arguments): string => args.text('data') ?? (io.env.SUBLEDGER_DATA || DEFAULT_DATA)
export const teamsDir = (io: Io, args: Arguments): string =>
  args.text('teams') ?? (io.env.SUBLEDGER_TEAMS || DEFAULT_TEAMS)

/** @throws UsageError when the folder of team files is not there */
export async function checkTeams(dir: string): Promise<void> {
  const found = await stat(dir).catch(() => undefined)
  if (!found?.isDirectory())
    throw new UsageError(
      `There is no folder "${dir}": say where the team files are with --teams DIR (SUBLEDGER_TEAMS).`,
    )
}

/** @throws UsageError where there are no books: a look at them must not make any */
async function checkBooks(dir: string): Promise<void> {
  const { holdsBooks } = await import('../local/data-lock.ts')
  if (!(await holdsBooks(dir)))
    throw new UsageError(
      `There are no books under "${dir}": say where they are with --data DIR (SUBLEDGER_DATA), or which API has them with --url URL. "subledger run" and "subledger dev" begin new ones.`,
    )
}

/** What may hold a secret is not repeated. */
function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    const named = /[@?#]/.test(text) ? 'What is given with --url (SUBLEDGER_URL)' : `"${text}"`
    throw new UsageError(`${named} is not the address of an API, such as http://127.0.0.1:4310.`)
  }
  if (url.username !== '' || url.password !== '')
    throw new UsageError(
      'The address of the API (--url, SUBLEDGER_URL) has a user or a password in it: leave them out. A token goes into SUBLEDGER_TOKEN.',
    )
  if (/[?#]/.test(text))
    throw new UsageError(
      'The address of the API (--url, SUBLEDGER_URL) ends with its path: leave out what follows "?" or "#".',
    )
  return url.href
}

/** Runs a command's body with a connection and closes it whatever happens. */
export async function withConnection<T>(
  io: Io,
  args: Arguments,
  options: ConnectOptions,
  body: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = await connect(io, args, options)
  try {
    return await body(connection)
  } finally {
    await connection.close()
  }
}
