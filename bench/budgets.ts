/** What a budget costs in the table: while it suffices, and where it is short. */
import { table } from '../src/cli/text.ts'
import type { Embedded } from '../src/local/embedded.ts'
import { type Measured, measure } from './measure.ts'

interface Line {
  readonly what: string
  readonly sessions: number
  readonly completed: number
  readonly refused: number
  readonly calls: number
  readonly requests: number
  readonly writeUnits: number
  /** beyond the same run without a budget; null: there is none to compare it with */
  readonly extraUnits: number | null
}

const SIZES = [
  { agent: 'root10', workers: 10 },
  { agent: 'root100', workers: 100 },
] as const
const ENOUGH = { usd: '1000', tokens: 1_000_000_000 }
/** Three calls of 100, each of which may cost, and costs, USD 0.30. */
const SHORT = { usd: '1.00' }
const TASKS = 100

export async function measureBudgets(embedded: Embedded): Promise<Line[]> {
  const lines: Line[] = []
  for (const { agent, workers } of SIZES) {
    const body = { team: 'fan-out', agent, input: 'go' }
    const without = await measure(embedded, body)
    const enough = await measure(embedded, { ...body, budget: ENOUGH })
    lines.push(lineOf(`${workers} workers of three calls, no budget`, without))
    lines.push(lineOf(`${workers} workers of three calls, a budget that suffices`, enough, without))
  }
  const tasks = Array.from({ length: TASKS }, (_, i) => ({ agent: 'worker', task: `Part ${i}` }))
  const free = await measure(embedded, { team: 'short', tasks })
  const short = await measure(embedded, { team: 'short', tasks, budget: SHORT })
  if (short.run.usage.calls !== 3) throw new Error(`${short.run.usage.calls} calls were made, and 3 could be paid for`)
  lines.push(lineOf(`${TASKS} tasks of one call, no budget`, free))
  lines.push(lineOf(`${TASKS} tasks of one call, a budget for 3 of them`, short))
  return lines
}

function lineOf(what: string, { run, requests, meter }: Measured, without?: Measured): Line {
  const { total = 0, completed = 0, failed = 0 } = run.sessions ?? {}
  return {
    what,
    sessions: total,
    completed,
    refused: failed,
    calls: run.usage.calls,
    requests,
    writeUnits: meter.writeUnits,
    extraUnits: without ? meter.writeUnits - without.meter.writeUnits : null,
  }
}

export function printBudgets(lines: readonly Line[]): void {
  const number = (n: number) => n.toLocaleString('en-US', { maximumFractionDigits: 1 })
  const header = [
    'what a budget costs',
    'sessions',
    'calls',
    'requests',
    'for each',
    'write units',
    'for each',
    'extra for each',
  ]
  const rows = lines.map((l) => [
    l.what,
    number(l.sessions),
    number(l.calls),
    number(l.requests),
    number(l.requests / l.sessions),
    number(l.writeUnits),
    number(l.writeUnits / l.sessions),
    l.extraUnits === null ? '-' : number(l.extraUnits / l.sessions),
  ])
  for (const line of table([header, ...rows], [1, 2, 3, 4, 5, 6, 7])) console.log(line)
  console.log('bound: one extra write unit for each session while holds suffice, and none for each turn')
}
