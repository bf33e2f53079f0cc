import { type Client, createClient } from './client.ts'
import type { Arguments } from './command.ts'
import { type Io, UsageError } from './io.ts'

export interface Connection {
  readonly client: Client
  /** the API and its workers live in this process: when it ends, nothing goes on */
  readonly embedded: boolean
  /** what the user has to add to a command to reach the same API */
  readonly close: () => Promise<void>
}

/** Where the embedded books are kept unless told otherwise. */
export const DEFAULT_DATA = '.subledger'
export const DEFAULT_TEAMS = 'teams'

/**
 * The API that a command talks to: a running one (`--url`, SUBLEDGER_URL), or the same app in this process on the books
 * under `--data`. Either way the command is a client of it.
 * @param work whether sessions are to be driven here, when the API is in this process
 */
export async function connect(
  io: Io,
  args: Arguments,
  options: { work: boolean; teamsDir?: string },
): Promise<Connection> {
  const url = args.text('url') ?? io.env.SUBLEDGER_URL
  if (url !== undefined && url !== '') {
    const token = io.env.SUBLEDGER_TOKEN
    const client = createClient((request) => fetch(request), { baseUrl: checkUrl(url), ...(token && { token }) })
    return { client, embedded: false, close: async () => {} }
  }
  const { startEmbedded } = await import('../local/embedded.ts')
  const embedded = await startEmbedded({
    dataDir: dataDir(io, args),
    teamsDir: options.teamsDir ?? teamsDir(io, args),
    env: io.env,
    work: options.work,
  })
  return {
    client: createClient((request) => embedded.fetch(request), { baseUrl: 'http://localhost' }),
    embedded: true,
    close: () => embedded.stop(),
  }
}

export const dataDir = (io: Io, args: Arguments): string => args.text('data') ?? (io.env.SUBLEDGER_DATA || DEFAULT_DATA)
export const teamsDir = (io: Io, args: Arguments): string =>
  args.text('teams') ?? (io.env.SUBLEDGER_TEAMS || DEFAULT_TEAMS)

function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new UsageError(`"${text}" is not the address of an API, such as http://127.0.0.1:4310.`)
  return url.href
}

/** Runs a command's body with a connection and closes it whatever happens. */
export async function withConnection<T>(
  io: Io,
  args: Arguments,
  options: { work: boolean; teamsDir?: string },
  body: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = await connect(io, args, options)
  try {
    return await body(connection)
  } finally {
    await connection.close()
  }
}
