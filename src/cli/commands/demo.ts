import { fileURLToPath } from 'node:url'
import { formatUsd, parseUsd } from '../../domain/money.ts'
import { costOf } from '../../domain/pricing.ts'
import { priceOf } from '../../domain/team.ts'
import type { TeamView } from '../../http/teams.ts'
import type { FiguresView } from '../../http/views/figures.ts'
import type { RunView } from '../../http/views/run.ts'
import type { SessionView } from '../../http/views/session.ts'
import type { BillEntry } from '../../model/scripted.ts'
import { createClient } from '../client.ts'
import { type Command, readArguments } from '../command.ts'
import { printRun, progressLine, runPath, waitForEnd } from '../follow.ts'
import { EXIT, type Io } from '../io.ts'
import { count, plural, table } from '../text.ts'

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
        await printRun(io, readBack, run, sessions)
        io.out('')
        const team = await readBack.get<TeamView>('/v1/teams/demo')
        const balanced = compare(io, billed(embedded.scripted.bill, team), {
          'sum of the calls': [exact],
          'sum of the sessions': sessions,
          "the run's own total": [run],
        })
        return balanced && run.status === 'completed' ? EXIT.ok : EXIT.failed
      } finally {
        reader.close()
      }
    } finally {
      await embedded.stop()
    }
  },
}

export interface Figures {
  readonly calls: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cost: bigint
}

/** What the model itself would bill: its usage, at the prices of the team file. */
function billed(bill: readonly BillEntry[], team: TeamView): Figures {
  let cost = 0n
  for (const { model, usage } of bill) {
    const price = Object.values(team.models).find((m) => m.model === model)?.cost
    const part = price
      ? costOf(usage, priceOf({ cost: price }, { at: Date.now(), inputTokens: usage.inputTokens }))
      : null
    if (part === null) throw new Error(`model ${model} of the demo has no price`)
    cost += part
  }
  return {
    calls: bill.length,
    inputTokens: sum(bill.map((b) => b.usage.inputTokens)),
    outputTokens: sum(bill.map((b) => b.usage.outputTokens)),
    cost,
  }
}

const booked = (views: readonly FiguresView[]): Figures => ({
  calls: sum(views.map((v) => v.usage.calls)),
  inputTokens: sum(views.map((v) => v.usage.inputTokens)),
  outputTokens: sum(views.map((v) => v.usage.outputTokens)),
  cost: views.reduce((total, v) => total + parseUsd(v.costUsd), 0n),
})

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)

/** The bill against the books, and the books against themselves: calls, sessions and run must say the same. */
export function compare(
  io: Pick<Io, 'out'>,
  bill: Figures,
  books: { readonly [what: string]: readonly FiguresView[] },
): boolean {
  const figures: [string, Figures][] = [["the model's own bill", bill]]
  for (const [what, views] of Object.entries(books)) figures.push([what, booked(views)])
  const rows = figures.map(([what, f]) => [
    what,
    plural(f.calls, 'call'),
    `${count(f.inputTokens)} tokens in`,
    `${count(f.outputTokens)} out`,
    `$${formatUsd(f.cost)}`,
  ])
  for (const line of table(rows, [1, 2, 3, 4])) io.out(line)
  const text = (f: Figures) => `${f.calls} ${f.inputTokens} ${f.outputTokens} ${f.cost}`
  const balanced = figures.every(([, f]) => text(f) === text(bill))
  io.out(balanced ? 'The books balance.' : 'THE BOOKS DO NOT BALANCE.')
  return balanced
}
