import { readFile, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { MAX_NAME_BYTES, NAME } from '../team/reader.ts'
import { type Arguments, CONNECTION } from './command.ts'
import type { ConnectOptions } from './connect.ts'
import { type Io, UsageError } from './io.ts'

const TEAM_FILE = /\.ya?ml$/

/** Options of the commands that take what a run starts from: TEAM [INPUT]. */
export const START_OPTIONS = {
  ...CONNECTION,
  agent: { type: 'string' },
  tasks: { type: 'string' },
  budget: { type: 'string' },
} as const

export const START_NAMES = ['TEAM', '[INPUT]'] as const

export interface Start {
  /** what `POST /v1/runs` takes */
  readonly body: object
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
  return {
    body: {
      team: file?.name ?? team,
      ...(agent !== undefined && { agent }),
      ...(budget !== undefined && { budget: { usd: budget } }),
      ...(tasksFile !== undefined ? { tasks: await readTasks(tasksFile) } : { input }),
    },
    connect: { teams: true, ...(file && { teamsDir: file.dir }) },
  }
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
    text = await readFile(file, 'utf8')
  } catch (e) {
    throw new UsageError(`The file of tasks ${file} cannot be read: ${(e as NodeJS.ErrnoException).code ?? e}.`)
  }
  try {
    return JSON.parse(text)
  } catch (e) {
    throw new UsageError(`The file of tasks ${file} is not valid JSON: ${(e as Error).message}.`)
  }
}
