import type { RunView } from '../../http/views/run.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { followRun, runPath } from '../follow.ts'
import { UsageError } from '../io.ts'

export const budget: Command = {
  usage: 'budget RUN [USD] [--tokens N] [--watch] [--json]',
  summary: 'set the budget of a run anew; one that waits for money goes on, and its end is waited for',
  async run(io, argv) {
    const options = { ...CONNECTION, tokens: { type: 'string' }, watch: { type: 'boolean' } } as const
    const args = readArguments(argv, options, ['RUN', '[USD]'])
    const [runId, usd] = args.positionals as [string, string?]
    const tokens = args.text('tokens')
    if (usd === undefined && tokens === undefined)
      throw new UsageError('Give the new budget in USD (such as 2.50), in --tokens, or both.')
    if (tokens !== undefined && !/^\d{1,15}$/.test(tokens)) throw new UsageError('--tokens must be a whole number.')
    const body = { ...(usd !== undefined && { usd }), ...(tokens !== undefined && { tokens: Number(tokens) }) }
    return withConnection(io, args, { work: true, teams: false }, async (connection) => {
      await connection.client.put<RunView>(`${runPath(runId)}/budget`, body)
      return followRun(io, connection, runId, { watch: args.flag('watch'), json: args.flag('json') })
    })
  },
}
