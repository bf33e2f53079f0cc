import { childSessionId } from '../../domain/ids.ts'
import { isTerminal, type SessionHeader } from '../../domain/session.ts'
import type { Drive } from '../drive.ts'
import { type ToolOutcome, taskIdOf } from './plan.ts'
import { cutText } from './result-size.ts'

/** What a parent's model is told of a child. */
export interface ChildReport {
  readonly task_id: string
  readonly agent: string | null
  readonly status: string
  readonly output?: string
  readonly error?: string
}

export const childRef = (d: Drive, ordinal: number) => ({
  ...d.ref,
  sessionId: childSessionId(d.ref.sessionId, ordinal),
})

const readChild = (d: Drive, ordinal: number): Promise<SessionHeader | undefined> =>
  d.ctx.store.getHeader(childRef(d, ordinal))

/** State of a child, with its output or error when it has ended. */
export async function reportOf(d: Drive, ordinal: number, known?: SessionHeader): Promise<ChildReport> {
  const h = known && isTerminal(known) ? known : await readChild(d, ordinal)
  if (!h) return { task_id: taskIdOf(ordinal), agent: null, status: 'unknown', error: 'There is no such task.' }
  const base = { task_id: taskIdOf(ordinal), agent: h.agent, status: h.status }
  if (!isTerminal(h)) return base
  const output = await outputOf(d, h)
  return {
    ...base,
    ...(output !== undefined && { output }),
    ...(h.status !== 'completed' && { error: h.error?.message ?? `It was ${h.status} (${h.stopReason}).` }),
  }
}

/** The text of a session's last answer. */
async function outputOf(d: Drive, h: SessionHeader): Promise<string | undefined> {
  if (h.finalTurn === null) return undefined
  const answer = await d.ctx.store.getResponse({ ...d.ref, sessionId: h.sessionId }, h.finalTurn)
  return answer?.message?.content
}

/** A transferred task's result: the child's last answer, or what became of it. */
export async function transferOutcome(d: Drive, ordinal: number, maxBytes: number): Promise<ToolOutcome> {
  const r = await reportOf(d, ordinal)
  if (r.status === 'completed') return { content: cutText(r.output ?? '', maxBytes) }
  return { content: `The agent ${r.agent ?? ''} did not complete the task: ${r.error ?? r.status}`, isError: true }
}

/** Background children only: a transferred task is no background task. */
export async function backgroundOrdinals(d: Drive, among: Iterable<number>): Promise<Map<number, SessionHeader>> {
  const found = new Map<number, SessionHeader>()
  const headers = await Promise.all([...among].map(async (o) => [o, await readChild(d, o)] as const))
  for (const [o, h] of headers) if (h && h.kind === 'background') found.set(o, h)
  return found
}
