import type { SessionHeader } from '../../domain/session.ts'
import { modelName, type TeamDefinition } from '../../domain/team.ts'
import { addTotals, type BookRow, NO_TOTALS, type Totals } from '../../domain/usage.ts'
import type { Answer, books } from '../shapes.ts'
import { type FiguresView, figuresView } from './figures.ts'

/**
 * The books of a run, cut three ways. `total`, `byAgent` (agent's name) and `byModel` (`provider/model`) count every
 * call whose outcome is known, waste included, and agree with each other. `byOutcome` has a line for each outcome that
 * occurred; its `unknown` line is an upper bound and stands in no other figure.
 */
export type UsageReport = Answer<typeof books>

export function usageReport(headers: readonly SessionHeader[], team: TeamDefinition): UsageReport {
  const rows = headers.flatMap((h) => h.rows)
  const known = rows.filter((r) => r.outcome !== 'unknown')
  return {
    total: figuresView(known.reduce((sum, r) => addTotals(sum, r.totals), NO_TOTALS)),
    byAgent: sumBy(known, (r) => r.agent),
    byModel: sumBy(known, (r) => modelName(team, r.model)),
    byOutcome: sumBy(rows, (r) => r.outcome),
  }
}

function sumBy(rows: readonly BookRow[], key: (row: BookRow) => string): { [key: string]: FiguresView } {
  const sums = new Map<string, Totals>()
  for (const row of rows) sums.set(key(row), addTotals(sums.get(key(row)) ?? NO_TOTALS, row.totals))
  // fromEntries defines own properties, so a name such as __proto__ is a name like any other
  return Object.fromEntries([...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, t]) => [k, figuresView(t)]))
}
