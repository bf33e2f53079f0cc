import type { EventView } from '../http/events/session-events.ts'
import type { RunView } from '../http/views/run.ts'
import type { SessionView } from '../http/views/session.ts'
import type { Client } from './client.ts'
import type { Connection } from './connect.ts'
import { eventLines, watchEvents } from './events.ts'
import { asks, openApprovals, standing, urlOption, waitingHint } from './hints.ts'
import { EXIT, type ExitCode, type Io } from './io.ts'
import { taskLines } from './task-lines.ts'
import { count, indented, money, printable } from './text.ts'
import { remarks, treeLines, whyEnded } from './tree.ts'

const FIRST_LOOK_MS = 50
const SLOWEST_LOOK_MS = 1_000

export const hasEnded = (run: RunView): boolean => run.status !== 'running' && run.status !== 'waiting'
export const runPath = (runId: string): string => `/v1/runs/${encodeURIComponent(runId)}`

/** Nothing goes on in it: it has ended, or it waits for its budget to be raised. */
const rests = (run: RunView): boolean => hasEnded(run) || run.status === 'waiting'

/** Nothing goes on in it before somebody says whether tool calls may run. */
async function awaitsPeople(client: Client, run: RunView): Promise<boolean> {
  const s = run.sessions
  if (run.status !== 'running' || !s || s.waiting === 0 || s.queued + s.running > 0) return false
  return (await sessionsOf(client, run.runId)).some(asks)
}

const sessionsOf = (client: Client, runId: string) => client.all<SessionView>(`${runPath(runId)}/sessions`, 'sessions')

/** Looks at a run until it has ended or waits for its budget, or `until` says so. Undefined: the user interrupted. */
export async function waitForEnd(
  io: Io,
  client: Client,
  runId: string,
  onChange: (run: RunView) => void = () => {},
  until: (run: RunView) => Promise<boolean> = async () => false,
): Promise<RunView | undefined> {
  let pause = FIRST_LOOK_MS
  let before = ''
  for (;;) {
    if (io.interrupted.aborted) return undefined
    const run = await client.get<RunView>(runPath(runId))
    const now = progressLine(run)
    if (now !== before) onChange(run)
    before = now
    if (rests(run) || (await until(run))) return run
    await io.sleep(pause)
    pause = Math.min(pause * 1.5, SLOWEST_LOOK_MS)
  }
}

/** One line about a run that goes on. */
export function progressLine(run: RunView): string {
  const s = run.sessions
  const parts = s ? (['queued', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const) : []
  const sessions = parts.filter((p) => s![p] > 0).map((p) => `${count(s![p])} ${p}`)
  return `${run.status}: ${sessions.join(', ')}; ${count(run.usage.inputTokens)} tokens in, ${count(run.usage.outputTokens)} out, ${money(run)}`
}

/** Waits for the end of a run and prints it: its tree, its answer, its total. */
export async function followRun(
  io: Io,
  { client, embedded, url }: Pick<Connection, 'client' | 'embedded' | 'url'>,
  runId: string,
  options: { watch: boolean; json: boolean },
): Promise<ExitCode> {
  const ended =
    options.watch && !options.json
      ? await watchToEnd(io, client, runId)
      : await waitForEnd(io, client, runId, undefined, (run) => awaitsPeople(client, run))
  if (!ended) return detached(io, { embedded, url }, runId)
  const sessions = await sessionsOf(client, runId)
  if (options.json) io.out(indented({ run: ended, sessions }))
  else await printRun(io, client, ended, sessions)
  if (ended.status === 'waiting') io.err(waitingHint(ended, url))
  if (ended.status === 'running') await tellOpen(io.err, client, runId, url, sessions)
  return ended.status === 'completed' ? EXIT.ok : EXIT.failed
}

/**
 * Tells what happens in a run until nothing goes on in it.
 * @param options.forPeople until then, or until it only waits for approvals
 */
export async function watchRun(
  io: Io,
  client: Client,
  runId: string,
  options: { session?: string | undefined; onEvent: (event: EventView) => void; forPeople: boolean },
): Promise<'ended' | 'interrupted' | 'people'> {
  const { session, onEvent, forPeople } = options
  const people = new AbortController()
  const over = AbortSignal.any([io.interrupted, people.signal])
  const open = new Set<string>()
  let looking: Promise<void> | undefined
  let watching = true
  // the stream says what is asked, and not that nobody else works on
  const look = async () => {
    while (watching && !over.aborted) {
      await io.sleep(SLOWEST_LOOK_MS)
      if (!watching || open.size === 0) continue
      const run = await client.get<RunView>(runPath(runId))
      if (await awaitsPeople(client, run)) people.abort()
    }
  }
  const ended = await watchEvents({ interrupted: over, sleep: io.sleep }, client, runId, {
    session,
    onEvent(event) {
      onEvent(event)
      if (event.type === 'approval.asked') open.add(event.approvalId)
      if (event.type === 'approval.decided') open.delete(event.approvalId)
      // where the API does not answer the stream says so
      if (forPeople && open.size > 0) looking ??= look().catch(() => undefined)
    },
  }).finally(() => {
    watching = false
  })
  await looking
  return ended === 'interrupted' && !io.interrupted.aborted ? 'people' : ended
}

async function watchToEnd(io: Io, client: Client, runId: string): Promise<RunView | undefined> {
  const lines = eventLines(runId)
  const onEvent = (event: EventView) => io.err(lines(event))
  if ((await watchRun(io, client, runId, { onEvent, forPeople: true })) === 'interrupted') return undefined
  const run = await client.get<RunView>(runPath(runId))
  io.err(progressLine(run))
  return run
}

/** Tells what becomes of a run that nobody looks at any more. */
export function detached(
  io: Io,
  { embedded, url }: Pick<Connection, 'embedded' | 'url'>,
  runId: string,
): typeof EXIT.interrupted {
  io.err(
    embedded
      ? `Interrupted. Run ${runId} is kept and goes on with the next "subledger dev" on the same data.`
      : `Detached. Run ${runId} goes on; "subledger get ${runId}${urlOption(url)}" shows it.`,
  )
  return EXIT.interrupted
}

/** What a run waits for, and how it is answered. */
export async function tellOpen(
  print: (line: string) => void,
  client: Client,
  runId: string,
  url: string | undefined,
  known?: readonly SessionView[],
): Promise<void> {
  const sessions = known ?? (await sessionsOf(client, runId))
  for (const line of await openApprovals(client, runId, sessions, url)) print(line)
}

export async function printRun(io: Io, client: Client, run: RunView, sessions: readonly SessionView[]): Promise<void> {
  io.out(`run ${run.runId}  team ${printable(run.team)}  round ${run.round}  ${run.status}`)
  io.out('')
  for (const line of treeLines(run, sessions)) io.out(line)
  for (const line of remarks(run)) io.out(line)
  for (const line of whyEnded(run, sessions)) io.out(line)
  if (!hasEnded(run)) io.out(standing(run, sessions))
  if (run.output !== null) {
    io.out('')
    for (const line of printable(run.output).split('\n')) io.out(line)
  }
  if (run.tasks !== null) for (const line of await taskLines(client, run, sessions)) io.out(line)
}
