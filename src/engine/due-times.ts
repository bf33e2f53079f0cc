/** When the sweep looks at a run. */
import type { Run } from '../domain/run.ts'
import { isClaimable, isTerminal, type SessionHeader } from '../domain/session.ts'
import { unknown } from '../domain/usage.ts'

/** After this time no invocation that may still hold a late answer can be alive: Lambda's longest life and a margin. */
export const LATE_ANSWERS_MS = 20 * 60_000
/** How long a run waits for its limit to be raised, before it fails. */
export const BUDGET_WAIT_MS = 7 * 24 * 3_600_000
/** How often a run that waits for the next period is looked at before that: the limit may have been raised. */
const LOOK_MS = 10 * 60_000
/** A run whose sessions all wait for something outside is looked at this often. */
const QUIET_MS = 24 * 3_600_000

/** When a run that ends now expires, epoch s; undefined: it is kept for ever. */
export const expiryOf = (retentionMs: number | undefined, now: number): number | undefined =>
  retentionMs === undefined ? undefined : Math.ceil((now + retentionMs) / 1000)

type Ended = Pick<Run, 'status' | 'short' | 'books' | 'expiresAt' | 'reportedAt'>

/** When the next look is due, epoch ms; null: never. */
export function dueAfter(run: Ended, now: number): number | null {
  // unknown calls may still get their late answer: one more look when that is no longer possible
  const late = unknown(run.books).calls > 0 ? now + LATE_ANSWERS_MS : null
  if (run.status === 'waiting') return Math.min(late ?? Number.POSITIVE_INFINITY, nextLook(run, now))
  if (late !== null) return late
  return run.expiresAt === null ? null : run.expiresAt * 1000
}

/** When a run that waits fails: some days after its round has ended, or the period has begun in which it could go on. */
export const failsAt = (run: Pick<Ended, 'short' | 'reportedAt'>, now: number): number =>
  Math.max(run.reportedAt ?? now, run.short?.resumeAt ?? 0) + BUDGET_WAIT_MS

/** When a run that waits is looked at again. */
export function nextLook(run: Pick<Ended, 'short' | 'reportedAt'>, now: number): number {
  const until = failsAt(run, now)
  if (!run.short) return until
  const next = run.short.resumeAt > now ? Math.min(run.short.resumeAt, now + LOOK_MS) : now + LOOK_MS
  return Math.min(next, until)
}

/**
 * When an ended run that was looked at is due again: while late answers may still come, however often it was looked at
 * before; where a run is not kept for ever, the last look is the one that removes it. undefined: never.
 */
export function dueAgain(run: Pick<Run, 'books' | 'finishedAt' | 'expiresAt'>, now: number): number | undefined {
  const late = (run.finishedAt ?? now) + LATE_ANSWERS_MS
  if (unknown(run.books).calls > 0 && late > now) return late
  return run.expiresAt === null ? undefined : run.expiresAt * 1000
}

/** When something could be found in a running run, if its sessions stay as they were read. */
export function nextDue(headers: Iterable<SessionHeader>, now: number, eventAgeMs: number): number {
  const times = [...headers].filter((h) => !isTerminal(h)).map((h) => nextDueOf(h, now, eventAgeMs))
  return times.length > 0 ? Math.min(...times) : now + eventAgeMs
}

function nextDueOf(h: SessionHeader, now: number, age: number): number {
  if (h.status === 'running') return h.lease !== null && h.lease >= now ? h.lease + 1 : now + age
  // an old one has just been sent an event, or waits for a place or for money: whoever has some sends it one
  if (h.status === 'queued') return h.updatedAt + age > now ? h.updatedAt + age : now + age
  // it has just been sent an event, and until it comes the header says when it would have woken by itself
  if (isClaimable(h, now)) return now + age
  if (h.wakeAt !== null) return Math.max(h.wakeAt + 1, now + 1_000)
  return h.asks.size > 0 ? now + QUIET_MS : now + age
}
