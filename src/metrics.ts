import { formatUsd } from './domain/money.ts'
import { sumRows } from './domain/report.ts'
import { plainJson } from './domain/text.ts'
import type { BookRow } from './domain/usage.ts'
import type { Metrics } from './ports.ts'

/** Namespace of the metrics in CloudWatch. */
export const NAMESPACE = 'Subledger'

const METRICS = [
  { Name: 'Calls', Unit: 'Count' },
  { Name: 'InputTokens', Unit: 'Count' },
  { Name: 'CacheReadTokens', Unit: 'Count' },
  { Name: 'CacheWriteTokens', Unit: 'Count' },
  { Name: 'OutputTokens', Unit: 'Count' },
  { Name: 'ReasoningTokens', Unit: 'Count' },
  { Name: 'CostUsd', Unit: 'None' },
  { Name: 'UnpricedCalls', Unit: 'Count' },
] as const
const WARNINGS = [{ Name: 'BudgetWarnings', Unit: 'Count' }] as const
const DIMENSIONS = ['Team', 'Agent', 'Model', 'Outcome'] as const
/** CloudWatch takes dimensions of so many characters of ASCII, and none that is empty. */
const LONGEST = 250

/**
 * Tokens and cost of each finished round in CloudWatch's embedded metric format: a log line for each agent, model and
 * outcome, out of which CloudWatch makes metrics; and a line for each budget that is nearly spent. The cost is written as the exact decimal that it is.
 */
export function createEmbeddedMetrics(
  write: (line: string) => void = (line) => void process.stdout.write(`${line}\n`),
): Metrics {
  return {
    roundFinished({ tenant, team, rows, at }) {
      // what a round brings to nothing or below (a correction that it takes over) is none of its spending
      for (const row of sumRows(rows)) if (row.totals.calls > 0) write(line(tenant, team, row, at))
    },
    budgetWarned({ tenant, team, runId, at }) {
      const fields = {
        _aws: {
          Timestamp: at,
          CloudWatchMetrics: [{ Namespace: NAMESPACE, Dimensions: [['Team']], Metrics: WARNINGS }],
        },
        time: new Date(at).toISOString(),
        level: 'warn',
        message: '80 per cent of the budget are spent',
        tenant,
        runId,
        Team: dimension(team),
        BudgetWarnings: 1,
      }
      write(plainJson(fields))
    },
  }
}

function line(tenant: string, team: string, { agent, model, outcome, totals }: BookRow, at: number): string {
  const fields = {
    _aws: {
      Timestamp: at,
      CloudWatchMetrics: [{ Namespace: NAMESPACE, Dimensions: [DIMENSIONS], Metrics: METRICS }],
    },
    time: new Date(at).toISOString(),
    level: 'info',
    message: 'round finished',
    tenant,
    Team: dimension(team),
    Agent: dimension(agent),
    Model: dimension(model),
    Outcome: outcome,
    Calls: totals.calls,
    InputTokens: totals.inputTokens,
    CacheReadTokens: totals.cacheReadTokens,
    CacheWriteTokens: totals.cacheWriteTokens,
    OutputTokens: totals.outputTokens,
    ReasoningTokens: totals.reasoningTokens,
    UnpricedCalls: totals.unpricedCalls,
  }
  // a number of JSON is a decimal: it becomes a float only in who reads it as one
  return `${plainJson(fields).slice(0, -1)},"CostUsd":${formatUsd(totals.cost)}}`
}

const dimension = (name: string): string =>
  name
    .replaceAll(/[^\x20-\x7e]/gu, '?')
    .slice(0, LONGEST)
    .trim() || '-'
