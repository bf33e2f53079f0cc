import type { EventView } from '../http/events/session-events.ts'
import { ApiError, type Client } from './client.ts'
import type { Io } from './io.ts'
import { count, printable } from './text.ts'

/** How often a stream is asked for again that cannot be had. */
const TRIES = 10
const RETRY_MS = 1_000

/**
 * Reads the events of a run until nothing goes on in it. Where the stream ends before that, or breaks off, it is asked for
 * again behind the last event: nothing is missed, and nothing comes twice.
 * @throws ApiError what the API refuses; or that it does not answer any more
 */
export async function watchEvents(
  io: Pick<Io, 'interrupted' | 'sleep'>,
  client: Client,
  runId: string,
  options: { session?: string | undefined; onEvent: (event: EventView) => void },
): Promise<'ended' | 'interrupted'> {
  const { session, onEvent } = options
  const query = session === undefined ? '' : `?session=${encodeURIComponent(session)}`
  const path = `/v1/runs/${encodeURIComponent(runId)}/events${query}`
  let [lastId, retryMs, tries]: [string | undefined, number, number] = [undefined, RETRY_MS, 0]
  while (!io.interrupted.aborted) {
    try {
      for await (const block of client.events(path, lastId, io.interrupted)) {
        tries = 0
        lastId = block.id ?? lastId
        retryMs = block.retry ?? retryMs
        if (block.event === 'end') return 'ended'
        if (block.data !== undefined) onEvent(JSON.parse(block.data) as EventView)
      }
    } catch (e) {
      // one that was never had is told at once
      const passing = e instanceof ApiError && (e.status === 0 || e.status === 429 || e.status >= 500)
      if (!passing || lastId === undefined || ++tries > TRIES) throw e
    }
    if (!io.interrupted.aborted) await io.sleep(retryMs)
  }
  return 'interrupted'
}

/** Events of a run as lines, one after another: it remembers what sessions are called. */
export function eventLines(runId: string): (event: EventView) => string {
  const names = new Map<string, string>()
  return (event) => {
    const id = event.sessionId ?? ''
    if (event.type === 'session.created') {
      const agent = event.agent ?? 'tasks'
      names.set(id, event.kind === 'root' ? agent : `${agent} ${id.slice(0, 6)}`)
    }
    const at = event.at === null ? '' : event.at.slice(11, 19)
    return printable(
      `${at.padEnd(8)}  ${(event.sessionId === null ? 'run' : (names.get(id) ?? id)).padEnd(20)}  ${whatHappened(runId, event)}`,
    )
  }
}

function whatHappened(runId: string, e: EventView): string {
  switch (e.type) {
    case 'session.created':
      return e.task === null ? 'created' : `created: ${e.task.replace(/\s+/g, ' ')}`
    case 'session.started':
      return 'started'
    case 'session.finished':
      return e.error ? `${e.status}: ${e.error.message}` : e.status
    case 'session.reopened':
      return `goes on in round ${e.round}`
    case 'turn.started':
      return `turn ${e.turn} asks ${e.model}`
    case 'turn.finished': {
      const tokens = e.usage ? `, ${count(e.usage.inputTokens)} tokens in, ${count(e.usage.outputTokens)} out` : ''
      const cost = e.costUsd === null ? '' : `, $${e.costUsd}`
      const calls = e.toolCalls.length === 0 ? '' : `; calls ${e.toolCalls.map((c) => c.name).join(', ')}`
      return `turn ${e.turn} ${e.outcome}${tokens}${cost}${calls}`
    }
    case 'approval.asked':
      return `asks for approval of ${e.tool}: subledger approve ${runId} ${e.approvalId}`
    case 'approval.decided':
      return `${e.decision === 'approve' ? 'is approved' : 'is denied'}${e.by === null ? '' : ` by ${e.by}`}: ${e.approvalId}${e.note === null ? '' : ` (${e.note.replace(/\s+/g, ' ')})`}`
    case 'budget.warning':
      return '80 per cent of the budget are spent'
    case 'tool.result':
      return `turn ${e.turn} ${e.toolName} ${e.isError ? 'failed' : 'is done'}`
  }
}
