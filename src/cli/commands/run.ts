import { readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { RunView } from '../../http/views/run.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { followRun } from '../follow.ts'
import { UsageError } from '../io.ts'
import { printable } from '../text.ts'

const TEAM_FILE = /\.ya?ml$/

export const run: Command = {
  usage: 'run TEAM [INPUT] [--agent A] [--tasks FILE] [--budget USD] [--watch] [--json]',
  summary: 'start a run, wait for its end and print its tree; TEAM is a name or a file',
  async run(io, argv) {
    const args = readArguments(
      argv,
      {
        ...CONNECTION,
        agent: { type: 'string' },
        tasks: { type: 'string' },
        budget: { type: 'string' },
        watch: { type: 'boolean' },
      },
      ['TEAM', '[INPUT]'],
    )
    const [team, input] = args.positionals as [string, string?]
    const tasksFile = args.text('tasks')
    if (input !== undefined && tasksFile !== undefined)
      throw new UsageError('A run starts from an INPUT or from --tasks, not from both.')
    if (input === undefined && tasksFile === undefined)
      throw new UsageError('A run starts from an INPUT or from --tasks FILE: neither is there.')
    const isFile = TEAM_FILE.test(team)
    if (isFile && (args.text('url') ?? io.env.SUBLEDGER_URL))
      throw new UsageError(`A running API knows its teams by name: use "${teamName(team)}" in place of the file.`)
    const body = {
      team: isFile ? teamName(team) : team,
      ...(args.text('agent') !== undefined && { agent: args.text('agent') }),
      ...(args.text('budget') !== undefined && { budget: { usd: args.text('budget') } }),
      ...(tasksFile !== undefined ? { tasks: await readTasks(tasksFile) } : { input }),
    }
    const options = { work: true, teams: true, ...(isFile && { teamsDir: dirname(team) }) }
    return withConnection(io, args, options, async (connection) => {
      const started = await connection.client.post<RunView>('/v1/runs', body)
      for (const warning of started.warnings ?? []) io.err(printable(`warning: ${warning}`))
      if (!args.flag('json')) io.err(`run ${started.runId} has started`)
      return followRun(io, connection, started.runId, { watch: args.flag('watch'), json: args.flag('json') })
    })
  },
}

const teamName = (file: string): string => basename(file).replace(TEAM_FILE, '')

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
