/** What many seeds add up to. Plain JSON, so that worker processes can hand it over. */
import type { Outcome } from './run-seed.ts'

export interface Tally {
  seeds: number
  broken: { seed: number; message: string }[]
  sessions: number[]
  portCalls: number[]
  faults: { [kind: string]: number }
  ends: { [status: string]: number }
  billed: number
  booked: { [outcome: string]: number }
}

export const emptyTally = (): Tally => ({
  seeds: 0,
  broken: [],
  sessions: [],
  portCalls: [],
  faults: {},
  ends: {},
  billed: 0,
  booked: {},
})

const count = (counts: { [key: string]: number }, key: string, n = 1) => {
  counts[key] = (counts[key] ?? 0) + n
}

export function tallyOutcome(tally: Tally, seed: number, { world, broken }: Outcome): void {
  tally.seeds++
  if (broken !== undefined) tally.broken.push({ seed, message: broken })
  tally.sessions.push(world.mirror.headers.size)
  tally.portCalls.push(world.portCalls)
  for (const [kind, n] of world.weather.counts) count(tally.faults, kind, n)
  count(tally.ends, world.mirror.run?.status ?? 'never started')
  tally.billed += world.provider.bills.length
  for (const s of world.mirror.logged) {
    for (const r of world.mirror.log(s).responses.values()) count(tally.booked, r.outcome)
  }
}

export function addTally(sum: Tally, more: Tally): void {
  sum.seeds += more.seeds
  sum.broken.push(...more.broken)
  sum.sessions.push(...more.sessions)
  sum.portCalls.push(...more.portCalls)
  for (const [kind, n] of Object.entries(more.faults)) count(sum.faults, kind, n)
  for (const [status, n] of Object.entries(more.ends)) count(sum.ends, status, n)
  sum.billed += more.billed
  for (const [outcome, n] of Object.entries(more.booked)) count(sum.booked, outcome, n)
}

const PARTS = [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]

export const quantile = (numbers: readonly number[], part: number): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(part * (numbers.length - 1))] ?? 0

function histogram(numbers: readonly number[]): string {
  const cells: string[] = []
  for (let from = 0, to = 1; from <= Math.max(...numbers); from = to, to *= 2) {
    const n = numbers.filter((x) => x >= from && x < to).length
    if (n > 0) cells.push(`${from}-${to - 1}: ${n}`)
  }
  return cells.join('  ')
}

const table = (counts: { [key: string]: number }): string =>
  Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([key, n]) => `  ${String(n).padStart(9)}  ${key}`)
    .join('\n')

export function describeTally(t: Tally): string {
  const line = (what: string, numbers: number[]) =>
    `${what}: ${PARTS.map((p) => `${p * 100} % ${quantile(numbers, p)}`).join(', ')}\n  ${histogram(numbers)}`
  const wide = t.sessions.filter((n) => n >= 60).length
  return [
    `seeds: ${t.seeds}`,
    line('sessions of a seed', t.sessions),
    `  with 60 or more: ${wide}, one in ${(t.seeds / Math.max(1, wide)).toFixed(1)}`,
    line('port calls of a seed', t.portCalls),
    `faults:\n${table(t.faults)}`,
    `ends of runs:\n${table(t.ends)}`,
    `calls billed: ${t.billed}; outcomes booked:\n${table(t.booked)}`,
  ].join('\n')
}
