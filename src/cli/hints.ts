import type { ApprovalView } from '../http/approvals.ts'
import type { RunView } from '../http/views/run.ts'
import type { SessionView } from '../http/views/session.ts'
import type { Client } from './client.ts'
import { oneLine } from './text.ts'

/** The option that a command needs to reach the same API again, with a space before it. */
export const urlOption = (url: string | undefined): string => (url === undefined ? '' : ` --url ${url}`)

export const asks = (s: SessionView): boolean => s.status === 'waiting' && s.stopReason === 'approval'

const works = (sessions: readonly SessionView[]): boolean =>
  sessions.some((s) => s.status === 'queued' || s.status === 'running')

/** It stands still because of what many runs may spend in a time, and not because of its own budget. */
const lacksOuter = (run: RunView): boolean => run.error?.code === 'limit'

/** What becomes of a run that has not ended, in one line. */
export function standing(run: RunView, sessions: readonly SessionView[]): string {
  const what =
    run.status === 'waiting'
      ? `it waits for ${lacksOuter(run) ? 'a limit over time' : 'its budget'}`
      : !works(sessions) && sessions.some(asks)
        ? 'it waits for approval'
        : 'it goes on'
  return `${what}; figures as of ${run.asOf}`
}

/** What can be done for a run that waits for money. */
export function waitingHint(run: RunView, url: string | undefined): string {
  const end = `"subledger cancel ${run.runId}${urlOption(url)}" ends it.`
  return lacksOuter(run)
    ? `The run has come to a limit over time. It goes on by itself when there is enough again: in the next period, or when limits.yaml says more. ${end}`
    : `The run is out of budget: "subledger budget ${run.runId} USD${urlOption(url)}" raises it and goes on, ${end}`
}

/** What a run asks people about, with the command that answers each; nothing where it asks nothing. */
export async function openApprovals(
  client: Client,
  runId: string,
  sessions: readonly SessionView[],
  url: string | undefined,
): Promise<string[]> {
  const waiting = new Set(sessions.filter(asks).map((s) => s.sessionId))
  if (waiting.size === 0) return []
  const all = await client.all<ApprovalView>(`/v1/runs/${encodeURIComponent(runId)}/approvals`, 'approvals')
  const open = all.filter((a) => a.decision === null && waiting.has(a.sessionId))
  if (open.length === 0) return []
  return [
    `${works(sessions) ? 'Some calls wait' : 'The run waits'} for approval. Approve each call, or deny it with --deny:`,
    ...open.map(
      (a) =>
        `  subledger approve ${runId} ${a.approvalId}${urlOption(url)}    ${oneLine(`${a.tool} ${a.arguments}`, 200)}`,
    ),
  ]
}
