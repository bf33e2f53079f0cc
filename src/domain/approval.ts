import { SESSION_ID } from './ids.ts'
import { MAX_PRINCIPAL_BYTES } from './limits.ts'
import type { SessionHeader } from './session.ts'
import { byteLength } from './text.ts'

/** What became of a question. */
export interface Decision {
  readonly decision: 'approve' | 'deny'
  /** the principal who decided; null: it is not known, as on one's own machine */
  readonly by: string | null
  /** epoch ms */
  readonly at: number
  readonly note: string | null
}

/** Whether this may stand as the name of somebody: a text that can be stored, and shown on one line. */
export const isPrincipal = (name: unknown): name is string =>
  typeof name === 'string' &&
  name !== '' &&
  name.isWellFormed() &&
  !/[\p{Cc}\u2028\u2029]/u.test(name) &&
  byteLength(name) <= MAX_PRINCIPAL_BYTES

/** A tool call that somebody is asked about: call `index` of answer `n` of a session. */
export interface Approval {
  readonly n: number
  readonly index: number
  /** the session's round in which it was asked */
  readonly round: number
  readonly tool: string
  /** its place among all questions of its session, from 0 */
  readonly nth: number
  /** how many questions its answer has */
  readonly of: number
  /** epoch ms; null: it never was, because the session had to end first */
  readonly askedAt: number | null
  readonly decision: Decision | null
  /** epoch ms: its session has ended, or is about to, and nobody can decide any more; null: it was not closed */
  readonly closedAt: number | null
}

export interface ApprovalRef {
  readonly sessionId: string
  readonly n: number
  readonly index: number
}

/** How long a session waits for approvals, before it fails. */
export const APPROVAL_WAIT_MS = 7 * 24 * 3_600_000

/** Names a question in a header's `asks`. */
export const askOf = ({ n, index }: { readonly n: number; readonly index: number }): string => `${n}#${index}`

/** Whether a session lies down for approvals. */
export const awaitsApproval = (h: Pick<SessionHeader, 'status' | 'asks'>): boolean =>
  h.status === 'waiting' && [...h.asks].some((ask) => ask.includes('#'))

/** The id of a question as it is told outside, where it means nothing. */
export const approvalIdOf = ({ sessionId, n, index }: ApprovalRef): string => `${sessionId}.${n}.${index}`

export function parseApprovalId(id: string): ApprovalRef | undefined {
  const [, sessionId = '', n, index] = /^([0-9a-z]{20})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,3})$/.exec(id) ?? []
  return SESSION_ID.test(sessionId) ? { sessionId, n: Number(n), index: Number(index) } : undefined
}
