import type { RunView } from '../../http/views/run.ts'
import { type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { followRun } from '../follow.ts'
import { readStart, START_NAMES, START_OPTIONS } from '../start-body.ts'
import { printable } from '../text.ts'
import { estimateStart } from './estimate.ts'

export const run: Command = {
  usage:
    'run TEAM [INPUT] [--agent A] [--tasks FILE] [--budget USD] [--tag NAME=VALUE]… [--dry-run] [--watch] [--json]',
  summary: 'start a run, wait for its end and print its tree; TEAM is a name or a file',
  async run(io, argv) {
    const options = { ...START_OPTIONS, 'dry-run': { type: 'boolean' }, watch: { type: 'boolean' } } as const
    const args = readArguments(argv, options, START_NAMES)
    if (args.flag('dry-run')) return estimateStart(io, args)
    const { send, connect } = await readStart(io, args)
    return withConnection(io, args, { ...connect, work: true, books: 'made if missing' }, async (connection) => {
      const started = await send<RunView>(connection.client, '/v1/runs')
      for (const warning of started.warnings ?? []) io.err(printable(`warning: ${warning}`))
      if (!args.flag('json')) io.err(`run ${started.runId} has started`)
      return followRun(io, connection, started.runId, { watch: args.flag('watch'), json: args.flag('json') })
    })
  },
}
