import type { RunView } from '../../http/views/run.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { followRun, runPath } from '../follow.ts'

export const input: Command = {
  usage: 'input RUN TEXT [--watch] [--json]',
  summary: 'go on with a run that has ended, in a new round, and wait for its end',
  async run(io, argv) {
    const args = readArguments(argv, { ...CONNECTION, watch: { type: 'boolean' } }, ['RUN', 'TEXT'])
    const [runId, text] = args.positionals as [string, string]
    return withConnection(io, args, { work: true, teams: false }, async (connection) => {
      await connection.client.post<RunView>(`${runPath(runId)}/input`, { input: text })
      return followRun(io, connection, runId, { watch: args.flag('watch'), json: args.flag('json') })
    })
  },
}
