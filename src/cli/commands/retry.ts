import type { RunView } from '../../http/views/run.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { followRun, runPath } from '../follow.ts'

export const retry: Command = {
  usage: 'retry RUN [--session ID]… [--watch] [--json]',
  summary: 'try again what a run has not completed, or the tasks of some sessions, and wait for its end',
  async run(io, argv) {
    const options = { ...CONNECTION, session: { type: 'string', multiple: true }, watch: { type: 'boolean' } } as const
    const args = readArguments(argv, options, ['RUN'])
    const runId = args.positionals[0]!
    const sessions = args.texts('session')
    return withConnection(io, args, { work: true, teams: false }, async (connection) => {
      await connection.client.post<RunView>(`${runPath(runId)}/retry`, sessions.length > 0 ? { sessions } : {})
      return followRun(io, connection, runId, { watch: args.flag('watch'), json: args.flag('json') })
    })
  },
}
