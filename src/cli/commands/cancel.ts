import type { RunView } from '../../http/views/run.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { hasEnded, runPath, waitForEnd } from '../follow.ts'
import { EXIT } from '../io.ts'
import { indented } from '../text.ts'

export const cancel: Command = {
  usage: 'cancel RUN [--json]',
  summary: 'stop a run with its whole tree and wait until it has stopped',
  async run(io, argv) {
    const args = readArguments(argv, CONNECTION, ['RUN'])
    const runId = args.positionals[0]!
    return withConnection(io, args, { work: true, teams: false }, async ({ client }) => {
      const before = await client.get<RunView>(runPath(runId))
      if (hasEnded(before)) {
        io.out(args.flag('json') ? indented(before) : `run ${runId} had ended already: ${before.status}`)
        return EXIT.ok
      }
      const asked = await client.post<RunView>(`${runPath(runId)}/cancel`)
      const ended = hasEnded(asked) ? asked : await waitForEnd(io, client, runId)
      if (!ended) {
        io.err(`Interrupted. Run ${runId} has been asked to stop.`)
        return EXIT.interrupted
      }
      io.out(args.flag('json') ? indented(ended) : `run ${ended.runId}: ${ended.status}`)
      return EXIT.ok
    })
  },
}
