import type { CallView } from '../../http/views/call.ts'
import type { MessageView } from '../../http/views/message.ts'
import type { RunView } from '../../http/views/run.ts'
import type { SessionView } from '../../http/views/session.ts'
import type { Client } from '../client.ts'
import { type Arguments, CONNECTION, type Command, readArguments } from '../command.ts'
import { type Connection, withConnection } from '../connect.ts'
import { hasEnded, printRun, runPath, tellOpen } from '../follow.ts'
import { waitingHint } from '../hints.ts'
import { EXIT, type ExitCode, type Io } from '../io.ts'
import { count, indented, money, oneLine, printable, table } from '../text.ts'
import { agentName, inOrder, treeLines } from '../tree.ts'

/** Commands that only read. What they print with `--json` is what the API answers, a list as one page that holds all. */
function reading<T>(
  usage: string,
  summary: string,
  names: readonly string[],
  read: (client: Client, ids: readonly string[]) => Promise<T>,
  print: (io: Io, value: T) => void,
): Command {
  return {
    usage,
    summary,
    async run(io, argv) {
      const args = readArguments(argv, CONNECTION, names)
      const ofTeams = usage.startsWith('teams')
      const options = { work: false, teams: ofTeams, ...(ofTeams && { books: 'none' as const }) }
      const value = await withConnection(io, args, options, ({ client }) => read(client, args.positionals))
      if (args.flag('json')) io.out(indented(value))
      else print(io, value)
      return EXIT.ok
    },
  }
}

type Page<K extends string, T> = { readonly [key in K]: readonly T[] } & { readonly next: null }

/** All pages of a list, as the API would answer them in one. */
const whole = async <K extends string, T>(client: Client, path: string, key: K): Promise<Page<K, T>> =>
  ({ [key]: await client.all<T>(path, key), next: null }) as Page<K, T>

const sessionsOf = (client: Client, runId: string) => client.all<SessionView>(`${runPath(runId)}/sessions`, 'sessions')

const runWithSessions = async (client: Client, runId: string) => ({
  run: await client.get<RunView>(runPath(runId)),
  sessions: await sessionsOf(client, runId),
})

export const get: Command = {
  usage: 'get RUN [--json]',
  summary: 'a run with its tree, tokens, cost and answer, or the answers to its tasks',
  async run(io, argv) {
    const args = readArguments(argv, CONNECTION, ['RUN'])
    return oneRun(io, args, async ({ client, url }, { run, sessions }) => {
      await printRun(io, client, run, sessions)
      if (run.status === 'waiting') io.out(waitingHint(run, url))
    })
  },
}

export const sessions: Command = {
  usage: 'sessions RUN [--json]',
  summary: 'the sessions of a run as a tree',
  async run(io, argv) {
    const args = readArguments(argv, CONNECTION, ['RUN'])
    return oneRun(
      io,
      args,
      async (_connection, { run, sessions }) => {
        for (const line of treeLines(run, sessions)) io.out(line)
        io.out('')
        const rows = inOrder(sessions).map(({ session: s, branch }) => [
          branch + agentName(s),
          s.sessionId,
          oneLine(s.task ?? '', 60),
        ])
        for (const line of table(rows)) io.out(line)
      },
      ({ sessions }) => ({ sessions, next: null }),
    )
  },
}

/**
 * Prints a run, and below it what it asks people about.
 * @param asJson what is printed with `--json`: both, unless told
 */
function oneRun(
  io: Io,
  args: Arguments,
  print: (connection: Connection, found: { run: RunView; sessions: SessionView[] }) => Promise<void>,
  asJson: (found: { run: RunView; sessions: SessionView[] }) => object = (found) => found,
): Promise<ExitCode> {
  const runId = args.positionals[0]!
  return withConnection(io, args, { work: false, teams: false }, async (connection) => {
    const { client, url } = connection
    const found = await runWithSessions(client, runId)
    if (args.flag('json')) io.out(indented(asJson(found)))
    else {
      await print(connection, found)
      if (!hasEnded(found.run)) await tellOpen(io.out, client, runId, url, found.sessions)
    }
    return EXIT.ok
  })
}

export const messages = reading(
  'messages RUN SESSION [--json]',
  "a session's transcript",
  ['RUN', 'SESSION'],
  (client, [runId, sessionId]) =>
    whole<'messages', MessageView>(
      client,
      `${runPath(runId!)}/sessions/${encodeURIComponent(sessionId!)}/messages`,
      'messages',
    ),
  (io, { messages }) => {
    for (const m of messages) {
      const title = m.role === 'tool' ? `tool ${m.toolName}${m.isError ? ' (error)' : ''}` : m.role
      io.out(`[${m.turn}] ${oneLine(title, 80)}`)
      const text = typeof m.content === 'string' ? m.content : m.content.map((p) => p.text).join('\n')
      for (const line of printable(text).split('\n')) if (text !== '') io.out(`    ${line}`)
      for (const call of m.toolCalls ?? []) io.out(`    → ${oneLine(`${call.name} ${call.arguments}`, 200)}`)
    }
  },
)

const overHold = (usd: string): string => (usd === '0' ? '! more tokens than held' : `! $${usd} more than held`)

export const calls = reading(
  'calls RUN [--json]',
  'every model call of a run, waste included',
  ['RUN'],
  (client, [runId]) => whole<'calls', CallView>(client, `${runPath(runId!)}/calls`, 'calls'),
  (io, { calls }) => {
    const header = ['session', 'turn', 'agent', 'model', 'outcome', 'input', 'output', 'cost', 'ms', '']
    const rows = calls.map((c) => [
      c.sessionId,
      String(c.turn),
      oneLine(c.agent, 40),
      oneLine(`${c.provider ?? '?'}/${c.model}`, 40),
      c.outcome,
      count(c.usage.inputTokens),
      count(c.usage.outputTokens),
      c.costUsd === null ? 'no price' : `$${c.costUsd}`,
      count(c.durationMs),
      c.overHold === null ? '' : overHold(c.overHold),
    ])
    for (const line of table([header, ...rows], [1, 5, 6, 7, 8])) io.out(line)
  },
)

export const list: Command = {
  usage: 'list [--status S] [--team T] [--json]',
  summary: 'runs, newest first; those of one status (running, waiting, completed, failed or cancelled), or of one team',
  async run(io, argv) {
    const args = readArguments(argv, { ...CONNECTION, status: { type: 'string' }, team: { type: 'string' } }, [])
    const query = new URLSearchParams()
    for (const name of ['status', 'team']) {
      const value = args.text(name)
      if (value !== undefined) query.set(name, value)
    }
    return withConnection(io, args, { work: false, teams: false }, async ({ client }) => {
      const path = query.size > 0 ? `/v1/runs?${query}` : '/v1/runs'
      const found = await whole<'runs', RunView>(client, path, 'runs')
      if (args.flag('json')) io.out(indented(found))
      else printList(io, found.runs)
      return EXIT.ok
    })
  },
}

function printList(io: Io, runs: readonly RunView[]): void {
  const header = ['run', 'team', 'status', 'round', 'created', 'calls', 'cost']
  const rows = runs.map((r) => [
    r.runId,
    oneLine(r.team, 40),
    r.status,
    String(r.round),
    r.createdAt,
    // the run's own item is brought up to date when a round ends
    hasEnded(r) ? count(r.usage.calls) : '…',
    hasEnded(r) ? money(r) : '…',
  ])
  for (const line of table([header, ...rows], [3, 5, 6])) io.out(line)
}

export const teams = reading(
  'teams [--json]',
  'the teams that can be run',
  [],
  (client) => client.get<{ teams: { name: string; description: string }[] }>('/v1/teams'),
  (io, { teams }) => {
    for (const line of table(teams.map((t) => [oneLine(t.name, 64), oneLine(t.description, 100)]))) io.out(line)
  },
)
