/**
 * What a fan-out costs in the table: requests and capacity units in all and for each worker, beside the bounds of
 * docs/protocol.md, section 6; then what a budget costs. `npm run bench`, or `npm run bench -- --json` for lines of JSON.
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { table } from '../src/cli/text.ts'
import { type Embedded, startEmbedded } from '../src/local/embedded.ts'
import type { Meter } from '../src/store/metered-table.ts'
import { measureBudgets, printBudgets } from './budgets.ts'
import { measure } from './measure.ts'

const TURNS = 3
/**
 * Workers, and the write units of each with its parent's share: header 1, claim with the first intent 1, one for each
 * answer, finish 1, settlement 1, and what the parent writes divided by their number.
 */
const SIZES = [
  { agent: 'root10', workers: 10, bound: 7.7 },
  { agent: 'root100', workers: 100, bound: 7.1 },
] as const
/** A leaf alone, without its parent's share: T + 4. */
const LEAF_BOUND = TURNS + 4
/** RUN once a claim, the own header once a call. */
const READ_BOUND = 1 + TURNS

interface Result {
  readonly workers: number
  readonly turns: number
  readonly calls: number
  readonly requests: number
  readonly meter: Meter
  readonly writeUnitsPerWorker: number
  readonly writeUnitsBound: number
  readonly readUnitsPerWorker: number
  readonly readUnitsBound: number
  readonly cpuMs: number
}

async function measureSize(embedded: Embedded, size: (typeof SIZES)[number]): Promise<Result> {
  const measured = await measure(embedded, { team: 'fan-out', agent: size.agent, input: 'go' })
  const { run, requests, meter, cpuMs } = measured
  if (run.status !== 'completed' || run.sessions?.total !== size.workers + 1)
    throw new Error(`the run with ${size.workers} workers did not complete: ${run.status} ${run.stopReason}`)
  return {
    workers: size.workers,
    turns: TURNS,
    calls: run.usage.calls,
    requests,
    meter,
    writeUnitsPerWorker: meter.writeUnits / size.workers,
    writeUnitsBound: size.bound,
    readUnitsPerWorker: meter.readUnits / size.workers,
    readUnitsBound: READ_BOUND,
    cpuMs,
  }
}

function print(results: readonly Result[]): void {
  const number = (n: number) => n.toLocaleString('en-US', { maximumFractionDigits: 1 })
  const rows: [string, (r: Result) => number][] = [
    ['model calls', (r) => r.calls],
    ['requests to the table', (r) => r.requests],
    ['  gets', (r) => r.meter.gets],
    ['  queries', (r) => r.meter.queries],
    ['  puts', (r) => r.meter.puts],
    ['  updates', (r) => r.meter.updates],
    ['  of the writes refused', (r) => r.meter.refused],
    ['read units', (r) => r.meter.readUnits],
    ['write units', (r) => r.meter.writeUnits],
    ['write units of the indexes', (r) => r.meter.indexUnits],
    ['bytes written', (r) => r.meter.bytesWritten],
    ['CPU, ms (all in one process)', (r) => r.cpuMs],
    ['write units for each worker', (r) => r.writeUnitsPerWorker],
    ['  bound, with the parent’s share', (r) => r.writeUnitsBound],
    ['  bound of a leaf alone (T + 4)', () => LEAF_BOUND],
    ['read units for each worker', (r) => r.readUnitsPerWorker],
    ['  bound of a leaf alone (T + 1)', (r) => r.readUnitsBound],
  ]
  const header = [`1 root and N workers of ${TURNS} turns`, ...results.map((r) => `N = ${r.workers}`)]
  const lines = table(
    [header, ...rows.map(([what, of]) => [what, ...results.map((r) => number(of(r)))])],
    results.map((_, i) => i + 1),
  )
  for (const line of lines) console.log(line)
}

const { values } = parseArgs({ options: { json: { type: 'boolean' } } })
const embedded = await startEmbedded({
  dataDir: null,
  teamsDir: fileURLToPath(new URL('teams', import.meta.url)),
  env: {},
  work: false,
})
try {
  // the first run of a day opens the day's usage, which is no part of what a run costs
  await measureSize(embedded, SIZES[0])
  const results: Result[] = []
  for (const size of SIZES) results.push(await measureSize(embedded, size))
  const budgets = await measureBudgets(embedded)
  if (values.json) for (const result of [...results, ...budgets]) console.log(JSON.stringify(result))
  else {
    print(results)
    console.log('')
    printBudgets(budgets)
  }
} finally {
  await embedded.stop()
}
