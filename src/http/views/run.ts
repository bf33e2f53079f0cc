import { isUnlimited } from '../../domain/budget.ts'
import { rootSessionId } from '../../domain/ids.ts'
import { formatUsd, UNLIMITED } from '../../domain/money.ts'
import type { Run } from '../../domain/run.ts'
import { isTerminal, type SessionHeader } from '../../domain/session.ts'
import { addBooks, type Books, booksOf, known, unknown, waste } from '../../domain/usage.ts'
import type { Answer, budget, run } from '../shapes.ts'
import { lastChange, treeAsOf } from './as-of.ts'
import { figuresView, time, timeOrNull } from './figures.ts'

/** A run as the API shows it. Money in USD as decimal strings, times ISO 8601 in UTC. */
export type RunView = Answer<typeof run>
/** `usd = costUsd + unknown.costUsd + heldUsd + availableUsd`, at every look. */
export type BudgetView = Answer<typeof budget>
export type WasteView = RunView['waste']
export type SessionCounts = NonNullable<RunView['sessions']>

/** What is known of a run beside its own item. */
export interface RunParts {
  /** headers of all its sessions, groups included; null: not read (lists) */
  readonly headers: readonly SessionHeader[] | null
  readonly input: string | null
  readonly output: string | null
  /** books summed from the calls themselves, as of `at` */
  readonly exact?: { readonly books: Books; readonly at: number }
  readonly leaseMs: number
}

export function runView(run: Run, parts: RunParts): RunView {
  const { headers } = parts
  const live = run.status === 'running' || run.status === 'waiting'
  const books = parts.exact?.books ?? (live && headers ? treeBooks(headers) : run.books)
  const spent = known(books)
  const asOf = parts.exact?.at ?? (live && headers ? treeAsOf(headers, parts.leaseMs) : undefined) ?? run.updatedAt
  return {
    runId: run.runId,
    team: run.team,
    agent: run.agent,
    status: run.status,
    stopReason: run.stopReason,
    round: run.round,
    input: parts.input,
    tasks: run.tasks,
    output: parts.output,
    error: run.error,
    rootSessionId: rootSessionId(run.runId),
    ...figuresView(spent),
    unpricedCalls: spent.unpricedCalls,
    warnings: headers && unpricedCalls(headers),
    waste: { calls: waste(books).calls, ...figuresView(waste(books)) },
    unknown: { calls: unknown(books).calls, ...figuresView(unknown(books)) },
    budget: budgetView(
      run,
      books,
      headers?.find((h) => h.parentId === null),
    ),
    sessions: headers && countSessions(headers),
    maxConcurrency: run.maxConcurrency,
    tags: run.tags,
    createdAt: time(run.createdAt),
    updatedAt: time(Math.max(run.updatedAt, headers ? lastChange(headers) : 0)),
    asOf: time(asOf),
    cancelRequestedAt: timeOrNull(run.cancelRequestedAt),
    finishedAt: timeOrNull(run.finishedAt),
  }
}

/** The sum over all sessions' own calls: the same as the run's settled total once everything has settled. */
export const treeBooks = (headers: readonly SessionHeader[]): Books =>
  headers.reduce<Books>((sum, h) => addBooks(sum, booksOf(h.rows)), {})

/** The models whose calls had no price, as a line each. */
function unpricedCalls(headers: readonly SessionHeader[]): string[] {
  const counts = new Map<string, number>()
  for (const { model, totals } of headers.flatMap((h) => h.rows))
    if (totals.unpricedCalls > 0) counts.set(model, (counts.get(model) ?? 0) + totals.unpricedCalls)
  return [...counts].map(([model, calls]) => `Calls of the model "${model}" without a known price: ${calls}.`)
}

function countSessions(headers: readonly SessionHeader[]): SessionCounts {
  const counts = { total: 0, queued: 0, running: 0, waiting: 0, completed: 0, failed: 0, cancelled: 0 }
  for (const h of headers) {
    if (h.kind === 'group') continue
    counts.total++
    counts[h.status]++
  }
  return counts
}

/**
 * What is held is the rest: what is neither spent nor unknown nor with the root to give. What limits outside of the run
 * have not granted yet is held by nobody either.
 */
function budgetView(run: Run, books: Books, root: SessionHeader | undefined): BudgetView | null {
  const { limit, budgetSeq, budgetWarned } = run
  if (isUnlimited(limit)) return null
  // what an ended root has left of its own is nobody's hold any more
  const left =
    root && isTerminal(root)
      ? limit.usd - known(books).cost - unknown(books).cost
      : root && limit.usd - (root.share.usd - root.given.usd) + root.avail.usd
  const available = left ?? null
  const usd = limit.usd >= UNLIMITED ? null : limit.usd
  return {
    usd: usd === null ? null : formatUsd(usd),
    tokens: limit.tok >= UNLIMITED ? null : Number(limit.tok),
    heldUsd:
      usd === null || available === null ? null : formatUsd(usd - known(books).cost - unknown(books).cost - available),
    availableUsd: usd === null || available === null ? null : formatUsd(available),
    warnedAt: timeOrNull(budgetWarned?.budgetSeq === budgetSeq ? budgetWarned.at : null),
  }
}
