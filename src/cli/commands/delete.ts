import { plainJson } from '../../domain/text.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { runPath } from '../follow.ts'
import { EXIT } from '../io.ts'

export const deleteRun: Command = {
  usage: 'delete RUN',
  summary: 'delete an ended run; what it has spent stays in the reports',
  async run(io, argv) {
    const args = readArguments(argv, CONNECTION, ['RUN'])
    const runId = args.positionals[0]!
    return withConnection(io, args, { work: false, teams: false }, async ({ client }) => {
      await client.delete(runPath(runId))
      io.out(args.flag('json') ? plainJson({ runId, deleted: true }) : `run ${runId} is deleted`)
      return EXIT.ok
    })
  },
}
