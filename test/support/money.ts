import type { Run } from '../../src/domain/run.ts'
import { isTerminal, type SessionHeader } from '../../src/domain/session.ts'
import { known, unknown } from '../../src/domain/usage.ts'

/** What is left of a run's limit in pico-USD once its round has ended. Fails where something is still held. */
export function available(run: Run, headers: readonly SessionHeader[]): bigint {
  const root = headers.find((h) => h.parentId === null)!
  if (!isTerminal(root)) throw new Error('the root has not ended')
  const spent = known(run.books).cost + unknown(run.books).cost
  const own = root.rows.reduce((sum, r) => sum + r.totals.cost, 0n)
  const left = root.avail.usd + root.own.usd - own
  if (left + spent !== run.limit.usd) throw new Error(`held after the end: ${run.limit.usd - spent - left}`)
  return left
}
