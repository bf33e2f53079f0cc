import { plainJson } from '../../domain/text.ts'
import type { EventView } from '../../http/events/session-events.ts'
import type { RunView } from '../../http/views/run.ts'
import { CONNECTION, type Command, readArguments } from '../command.ts'
import { withConnection } from '../connect.ts'
import { eventLines } from '../events.ts'
import { detached, progressLine, runPath, tellOpen, watchRun } from '../follow.ts'
import { EXIT } from '../io.ts'

export const watch: Command = {
  usage: 'watch RUN [--session ID] [--json]',
  summary: 'print what happens in a run until nothing goes on, with --session the turns of that one too',
  async run(io, argv) {
    const args = readArguments(argv, { ...CONNECTION, session: { type: 'string' } }, ['RUN'])
    const runId = args.positionals[0]!
    const session = args.text('session')
    return withConnection(io, args, { work: true, teams: false }, async (connection) => {
      const lines = eventLines(runId)
      const onEvent = args.flag('json') ? (e: EventView) => io.out(plainJson(e)) : (e: EventView) => io.out(lines(e))
      const { client, embedded } = connection
      // while the books are open in this process nobody can approve anything elsewhere
      const ended = await watchRun(io, client, runId, { session, onEvent, forPeople: embedded })
      if (ended === 'interrupted') return detached(io, connection, runId)
      const run = await client.get<RunView>(runPath(runId))
      if (!args.flag('json')) io.err(progressLine(run))
      if (ended === 'people') await tellOpen(io.err, client, runId, connection.url)
      return run.status === 'completed' ? EXIT.ok : EXIT.failed
    })
  },
}
