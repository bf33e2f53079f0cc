import { readFile, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { NotUtf8, readUtf8 } from '../domain/text.ts'
import { parseJson } from '../http/json.ts'
import { MAX_NAME_BYTES, NAME } from '../team/reader.ts'
import type { Client } from './client.ts'
import { type Arguments, CONNECTION } from './command.ts'
import type { ConnectOptions } from './connect.ts'
import { type Io, UsageError } from './io.ts'
import { ofTaskFile } from './words.ts'

const TEAM_FILE = /\.ya?ml$/

/** Options of the commands that take what a run starts from: TEAM [INPUT]. */
export const START_OPTIONS = {
  ...CONNECTION,
  agent: { type: 'string' },
  tasks: { type: 'string' },
  budget: { type: 'string' },
  tag: { type: 'string', multiple: true },
} as const

export const START_NAMES = ['TEAM', '[INPUT]'] as const

export interface Start {
  /**
   * sends it to `POST /v1/runs`, or to that route with a query
   * @throws ApiError that names the file of tasks where something in it is wrong
   */
  readonly send: <T>(client: Client, path: string) => Promise<T>
  /** where its team is looked for */
  readonly connect: Pick<ConnectOptions, 'teams' | 'teamsDir'>
}

/** @throws UsageError */
export async function readStart(io: Io, args: Arguments): Promise<Start> {
  const [team, input] = args.positionals as [string, string?]
  const tasksFile = args.text('tasks')
  if (input !== undefined && tasksFile !== undefined)
    throw new UsageError('A run starts from an INPUT or from --tasks, not from both.')
  if (input === undefined && tasksFile === undefined)
    throw new UsageError('A run starts from an INPUT or from --tasks FILE: neither is there.')
  const file = await teamFile(io, args, team)
  const [agent, budget] = [args.text('agent'), args.text('budget')]
  const tags = readTags(args.texts('tag'))
  const body = {
    team: file?.name ?? team,
    ...(agent !== undefined && { agent }),
    ...(budget !== undefined && { budget: { usd: budget } }),
    ...(tags && { tags }),
    ...(tasksFile !== undefined ? { tasks: await readTasks(tasksFile) } : { input }),
  }
  return {
    async send(client, path) {
      try {
        return await client.post(path, body)
      } catch (e) {
        throw tasksFile === undefined ? e : ofTaskFile(e, tasksFile)
      }
    },
    connect: { teams: true, ...(file && { teamsDir: file.dir }) },
  }
}

/** @throws UsageError where one is not NAME=VALUE, or is there twice */
function readTags(texts: readonly string[]): { readonly [name: string]: string } | undefined {
  const tags = new Map<string, string>()
  for (const text of texts) {
    const at = text.indexOf('=')
    if (at < 1) throw new UsageError(`--tag is "${text}": it must be NAME=VALUE, such as --tag customer=acme.`)
    const name = text.slice(0, at)
    if (tags.has(name)) throw new UsageError(`--tag ${name} is given twice.`)
    tags.set(name, text.slice(at + 1))
  }
  return tags.size > 0 ? Object.fromEntries(tags) : undefined
}

/** A team that is named by its file; undefined: it is named by its name. */
async function teamFile(io: Io, args: Arguments, team: string): Promise<{ name: string; dir: string } | undefined> {
  const name = basename(team).replace(TEAM_FILE, '')
  const isFile = TEAM_FILE.test(team)
  const path = JSON.stringify(team)
  if (args.text('url') ?? io.env.SUBLEDGER_URL) {
    if (isFile) throw new UsageError(`A running API knows its teams by name: use "${name}" in place of the file.`)
    return undefined
  }
  const found = isFile || /[/\\]/.test(team) ? await stat(team).catch(() => undefined) : undefined
  if (found?.isDirectory())
    throw new UsageError(`${path} is a folder. Say which team of it is meant: subledger run TEAM --teams ${team}`)
  if (!isFile) {
    if (found) throw new UsageError(`${path} is no team file: its name must end in .yaml or .yml.`)
    return undefined
  }
  if (!found)
    throw new UsageError(
      `There is no file ${path}. TEAM is the path of a team file, or the name of one in the folder of --teams DIR.`,
    )
  if (!NAME.test(name) || Buffer.byteLength(name) > MAX_NAME_BYTES)
    throw new UsageError(
      `The file ${path} cannot name a team: letters, digits, "_", "-" and "." make a name, at most ${MAX_NAME_BYTES} of them, and then .yaml. Rename it.`,
    )
  return { name, dir: dirname(team) }
}

/** A JSON file with a list of `{agent, task, expectedOutput?}`; what is in it is checked by the API. */
async function readTasks(file: string): Promise<unknown> {
  let text: string
  try {
    text = readUtf8(await readFile(file))
  } catch (e) {
    if (e instanceof NotUtf8) throw new UsageError(`The file of tasks ${file} ${e.message}.`)
    throw new UsageError(`The file of tasks ${file} cannot be read: ${(e as NodeJS.ErrnoException).code ?? e}.`)
  }
  try {
    return parseJson(text)
  } catch (e) {
    // what is read there as a rule is the body of a request
    throw new UsageError((e as Error).message.replace(/^The body/, `The file of tasks ${file}`))
  }
}
