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
  let watchFault: unknown
  const watching = watch(d, rows, abort, finished.signal).catch((fault) => {
    watchFault = fault
  })
  try {
    const result = await call(abort.signal)
    return abort.signal.reason === 'timeout' && result.failure?.class === 'aborted'
      ? { ...result, failure: { class: 'timeout', message: 'The invocation ended before the model had answered.' } }
      : result
  } finally {
    finished.abort()
    await watching
    if (watchFault) d.ctx.log.warn('could not look after a running call', { ...d.ref, fault: String(watchFault) })
  }
}

async function watch(d: Drive, rows: readonly BookRow[], abort: AbortController, finished: AbortSignal): Promise<void> {
  const { store, clock, settings } = d.ctx
  const every = Math.min(LOOK_EVERY_MS, settings.leaseMs / 3)
  for (;;) {
    const left = callDeadline(d) - now(d)
    if (left <= 0) return abort.abort('timeout')
    await clock.sleep(Math.min(every, left), finished)
    if (finished.aborted) return
    const renewed = await renewLease(d, rows)
    if (renewed === 'lost') return abort.abort('taken over')
    const header = renewed ?? (await store.getHeader(d.ref, { consistent: false }))
    if (header?.stop) return abort.abort('stopped')
  }
}
