import type { RunView } from '../../http/views/run.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { followRun, runPath } from '../follow.ts'
import { UsageError } from '../io.ts'

export const approve: Command = {
  usage: 'approve RUN CALL [--deny] [--note TEXT] [--watch] [--json]',
  summary: 'approve a tool call that waits for it, or deny it; the run goes on, and its end is waited for',
  async run(io, argv) {
    const options = {
      ...CONNECTION,
      deny: { type: 'boolean' },
      note: { type: 'string' },
      watch: { type: 'boolean' },
    } as const
    const args = readArguments(argv, options, ['RUN', 'CALL'])
    const [runId, call] = args.positionals as [string, string]
    if (call === '') throw new UsageError('CALL is empty.')
    const note = args.text('note')
    const body = { decision: args.flag('deny') ? 'deny' : 'approve', ...(note !== undefined && { note }) }
    return withConnection(io, args, { work: true, teams: false }, async (connection) => {
      await connection.client.post<RunView>(`${runPath(runId)}/approvals/${encodeURIComponent(call)}`, body)
      return followRun(io, connection, runId, { watch: args.flag('watch'), json: args.flag('json') })
    })
  },
}
