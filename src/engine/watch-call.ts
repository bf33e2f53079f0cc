import type { BookRow } from '../domain/usage.ts'
import type { ModelResult } from '../ports.ts'
import { callDeadline, type Drive, now } from './drive.ts'
import { renewLease } from './lease.ts'

/** How often a running call looks whether it should stop; the read may be stale, it only saves money. */
const LOOK_EVERY_MS = 5_000

/**
 * Runs a model call beside a watch that renews the lease, and breaks the call off when the session is asked to stop,
 * when another driver has taken it over, or when the invocation's end is near. What the provider had said by then is
 * still booked.
 */
export async function watchCall(
  d: Drive,
  rows: readonly BookRow[],
  call: (signal: AbortSignal) => Promise<ModelResult>,
): Promise<ModelResult> {
  const abort = new AbortController()
  const finished = new AbortController()
  // apart from each other: a table that does not answer must not keep the deadline from being kept, nor the answer waiting
  void keepDeadline(d, abort, finished.signal)
  void watch(d, rows, abort, finished.signal)
  try {
    const result = await call(abort.signal)
    return abort.signal.reason === 'timeout' && result.failure?.class === 'aborted'
      ? { ...result, failure: { class: 'timeout', message: 'The invocation ended before the model had answered.' } }
      : result
  } finally {
    finished.abort()
  }
}

async function keepDeadline(d: Drive, abort: AbortController, finished: AbortSignal): Promise<void> {
  await d.ctx.clock.sleep(Math.max(0, callDeadline(d) - now(d)), finished)
  if (!finished.aborted) abort.abort('timeout')
}

/** Never throws: a look that fails is made again at its next turn. */
async function watch(d: Drive, rows: readonly BookRow[], abort: AbortController, finished: AbortSignal): Promise<void> {
  const every = Math.min(LOOK_EVERY_MS, d.ctx.settings.leaseMs / 3)
  while (!finished.aborted && !abort.signal.aborted) {
    await d.ctx.clock.sleep(every, finished)
    if (finished.aborted) return
    try {
      const reason = await look(d, rows)
      if (reason && !finished.aborted) abort.abort(reason)
    } catch (fault) {
      d.ctx.log.warn('could not look after a running call', { ...d.ref, fault: String(fault) })
    }
  }
}

/** Renews the lease where it is time, and says why the call should be broken off, if it should. */
async function look(d: Drive, rows: readonly BookRow[]): Promise<string | undefined> {
  const renewed = await renewLease(d, () => rows)
  if (renewed === 'lost') return 'taken over'
  const header = renewed ?? (await d.ctx.store.getHeader(d.ref, { consistent: false }))
  return header?.stop ? 'stopped' : undefined
}
