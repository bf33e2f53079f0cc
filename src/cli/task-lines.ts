import type { RunView } from '../http/views/run.ts'
import type { SessionView } from '../http/views/session.ts'
import type { Client } from './client.ts'
import { count, oneLine, printable } from './text.ts'
import { agentName } from './tree.ts'

/** Of so many tasks the whole answers are shown; of more, how each begins. */
const MOST_WHOLE = 100
const AT_ONCE = 10

const byAge = (a: SessionView, b: SessionView): number => (a.createdAt < b.createdAt ? -1 : 1)

/** What came of each task of a list, in their order. Tasks that failed for the same reason are told together. */
export async function taskLines(client: Client, run: RunView, sessions: readonly SessionView[]): Promise<string[]> {
  // of a task that was tried again in a later round the last session counts
  const last = new Map(
    sessions
      .filter((s) => s.kind === 'task')
      .toSorted(byAge)
      .map((s) => [s.ordinal, s]),
  )
  const ended = [...last.values()].toSorted((a, b) => a.ordinal - b.ordinal)
  const whole = ended.length <= MOST_WHOLE
  const answered = ended.filter((s) => s.status === 'completed')
  const outputs = whole ? await wholeOutputs(client, run.runId, answered) : new Map<string, string | null>()
  const lines: string[] = []
  for (const s of answered) {
    const text = printable((whole ? outputs.get(s.sessionId) : s.output) ?? '(no text)')
    lines.push('', `${agentName(s)}: ${oneLine(s.task ?? '', 80)}`, ...text.split('\n').map((line) => `    ${line}`))
  }
  for (const [error, of] of Map.groupBy(
    ended.filter((s) => s.error !== null),
    (s) => `${s.error!.code}: ${s.error!.message}`,
  ))
    lines.push('', `${count(of.length)} ${of.length === 1 ? 'task' : 'tasks'} failed: ${oneLine(error, 400)}`)
  if (!whole)
    lines.push('', `Of so many tasks only the beginnings are shown: "subledger messages ${run.runId} SESSION" has all.`)
  return lines
}

async function wholeOutputs(
  client: Client,
  runId: string,
  sessions: readonly SessionView[],
): Promise<Map<string, string | null>> {
  const outputs = new Map<string, string | null>()
  for (let i = 0; i < sessions.length; i += AT_ONCE) {
    await Promise.all(
      sessions.slice(i, i + AT_ONCE).map(async ({ sessionId }) => {
        const path = `/v1/runs/${encodeURIComponent(runId)}/sessions/${encodeURIComponent(sessionId)}`
        outputs.set(sessionId, (await client.get<SessionView>(path)).output)
      }),
    )
  }
  return outputs
}
