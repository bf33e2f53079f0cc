import type { ReportRow } from '../../domain/report.ts'
import { addTotals, NO_TOTALS, type Totals } from '../../domain/usage.ts'
import { csvText, textCell } from '../csv.ts'
import type { Answer, spend } from '../shapes.ts'
import { type FiguresView, figuresView, type UsageView } from './figures.ts'

/** What a report may be cut by: `team`, `agent`, `model`, `outcome`, `day`, or `tag:NAME`. */
export type GroupBy = string

/** What finished rounds have spent, from the first to the last of these days, both included. */
export type SpendReport = Answer<typeof spend>
export type SpendRow = SpendReport['rows'][number]
/** `usage` and `costUsd` count what was paid for and is known, waste included; what is unknown stands apart. */
export type SpendFigures = SpendReport['total']

export type DatedRow = ReportRow & { readonly day: string }

interface Sum {
  readonly values: readonly (string | null)[]
  readonly known: Totals
  readonly unknown: Totals
}

export function spendReport(
  rows: Iterable<DatedRow>,
  of: { from: string; to: string; groupBy: readonly GroupBy[] },
): SpendReport {
  const sums = new Map<string, Sum>()
  let total: Sum = { values: [], known: NO_TOTALS, unknown: NO_TOTALS }
  for (const row of rows) {
    const values = of.groupBy.map((name) => groupValue(row, name))
    const key = JSON.stringify(values)
    sums.set(key, plus(sums.get(key) ?? { values, known: NO_TOTALS, unknown: NO_TOTALS }, row))
    total = plus(total, row)
  }
  const ordered = [...sums.values()].sort((a, b) => compare(a.values, b.values))
  return {
    ...of,
    total: figures(total),
    rows: ordered.map((sum) => ({
      group: Object.fromEntries(of.groupBy.map((name, i) => [name, sum.values[i]!])),
      ...figures(sum),
    })),
  }
}

function groupValue(row: DatedRow, name: GroupBy): string | null {
  if (name.startsWith(TAG)) {
    const tag = name.slice(TAG.length)
    return Object.hasOwn(row.tags, tag) ? row.tags[tag]! : null
  }
  return row[name as 'team' | 'agent' | 'model' | 'outcome' | 'day']
}
export const TAG = 'tag:'

const plus = (sum: Sum, { outcome, totals }: ReportRow): Sum =>
  outcome === 'unknown'
    ? { ...sum, unknown: addTotals(sum.unknown, totals) }
    : { ...sum, known: addTotals(sum.known, totals) }

const figures = ({ known, unknown }: Sum): SpendFigures => ({
  ...figuresView(known),
  unpricedCalls: known.unpricedCalls,
  unknown: { calls: unknown.calls, ...figuresView(unknown) },
})

function compare(a: readonly (string | null)[], b: readonly (string | null)[]): number {
  for (const [i, left] of a.entries()) {
    const right = b[i]!
    if (left === right) continue
    if (left === null || right === null) return left === null ? 1 : -1
    return left < right ? -1 : 1
  }
  return 0
}

const USAGE = [
  'calls',
  'inputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'outputTokens',
  'reasoningTokens',
] as const satisfies readonly (keyof UsageView)[]

/** The rows of a report, with a line of titles. What is null is empty. */
export function spendCsv(report: SpendReport): string {
  const titles = [
    ...report.groupBy.map(textCell),
    ...USAGE,
    'costUsd',
    'costComplete',
    'unpricedCalls',
    ...USAGE.map((field) => `unknown.${field}`),
    'unknown.costUsd',
    'unknown.costComplete',
  ]
  const lines = report.rows.map((row) => [
    ...report.groupBy.map((name) => textCell(row.group[name] ?? '')),
    ...figureCells(row),
    String(row.unpricedCalls),
    ...figureCells(row.unknown),
  ])
  return csvText([titles, ...lines])
}

const figureCells = (f: FiguresView): string[] => [
  ...USAGE.map((field) => String(f.usage[field])),
  f.costUsd,
  String(f.costComplete),
]
