import { fileURLToPath } from 'node:url'
import type { RunView } from '../../http/views/run.ts'
import type { SessionView } from '../../http/views/session.ts'
import { createClient } from '../client.ts'
import { type Command, readArguments } from '../command.ts'
import { printRun, progressLine, runPath, waitForEnd } from '../follow.ts'
import { EXIT } from '../io.ts'
import { count, plural } from '../text.ts'

const INPUT = 'Write the release notes of version 2.4.'
/** The teams that come with the package, wherever the command is used. */
const TEAMS = fileURLToPath(new URL('../../../teams', import.meta.url))

export const demo: Command = {
  usage: 'demo',
  summary: 'run teams/demo.yaml in memory on a scripted model, read its books back and compare them with the bill',
  async run(io, argv) {
    readArguments(argv, {}, [])
    const [{ startEmbedded }, { openReader }] = await Promise.all([
      import('../../local/embedded.ts'),
      import('../../local/reader.ts'),
    ])
    const embedded = await startEmbedded({ dataDir: null, teamsDir: TEAMS, env: {}, work: true })
    try {
      const client = createClient(embedded.fetch, { baseUrl: 'http://localhost' })
      const started = await client.post<RunView>('/v1/runs', { team: 'demo', input: INPUT })
      const ended = await waitForEnd(io, client, started.runId, (run) => io.err(progressLine(run)))
      if (!ended) return EXIT.interrupted

      // read back by a client of its own on the same table: nothing of what wrote the books is used
      const reader = openReader(embedded.dynamodb, TEAMS)
      try {
        const readBack = createClient(reader.fetch, { baseUrl: 'http://localhost' })
        const run = await readBack.get<RunView>(`${runPath(started.runId)}`)
        const exact = await readBack.get<RunView>(`${runPath(started.runId)}?exact=true`)
        const sessions = await readBack.all<SessionView>(`${runPath(started.runId)}/sessions`, 'sessions')
        io.out('')
        printRun(io, run, sessions)
        io.out('')
        const balanced = compare(io, run, exact, sessions, embedded.scripted.bill)
        return balanced && run.status === 'completed' ? EXIT.ok : EXIT.failed
      } finally {
        reader.close()
      }
    } finally {
      await embedded.stop()
    }
  },
}

interface Billed {
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
}

/** The books against the model's own bill, and against themselves: calls, sessions and run must say the same. */
function compare(
  io: { out: (line: string) => void },
  run: RunView,
  exact: RunView,
  sessions: readonly SessionView[],
  bill: readonly Billed[],
): boolean {
  const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0)
  const billed = {
    calls: bill.length,
    inputTokens: sum(bill.map((b) => b.usage.inputTokens)),
    outputTokens: sum(bill.map((b) => b.usage.outputTokens)),
  }
  const ofSessions = {
    calls: sum(sessions.map((s) => s.usage.calls)),
    inputTokens: sum(sessions.map((s) => s.usage.inputTokens)),
    outputTokens: sum(sessions.map((s) => s.usage.outputTokens)),
  }
  const line = (what: string, u: typeof billed) =>
    `${what}: ${plural(u.calls, 'call')}, ${count(u.inputTokens)} tokens in, ${count(u.outputTokens)} out`
  io.out(line("the model's own bill  ", billed))
  io.out(line('sum of the calls      ', exact.usage))
  io.out(line('sum of the sessions   ', ofSessions))
  io.out(line("the run's own total   ", run.usage))
  const same = [exact.usage, ofSessions, run.usage].every(
    (u) => u.calls === billed.calls && u.inputTokens === billed.inputTokens && u.outputTokens === billed.outputTokens,
  )
  const cost = exact.costUsd === run.costUsd && run.costComplete && run.unknown.calls === 0
  io.out(same && cost ? 'The books balance.' : 'THE BOOKS DO NOT BALANCE.')
  return same && cost
}
