/** When the sweep looks at a run whose round has ended. */
import type { Run } from '../domain/run.ts'
import { unknown } from '../domain/usage.ts'

/** After this time no invocation that may still hold a late answer can be alive: Lambda's longest life and a margin. */
export const LATE_ANSWERS_MS = 20 * 60_000
/** How long a run waits for its limit to be raised, before it fails. */
export const BUDGET_WAIT_MS = 7 * 24 * 3_600_000
/** How often a run that waits for the next period is looked at before that: the limit may have been raised. */
const LOOK_MS = 10 * 60_000

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
