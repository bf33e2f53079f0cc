/**
 * Runs of the simulator, with crashes, lost answers, stale reads and late answers at any place: at rest the audit finds
 * nothing, and the reports of all days come to what the calls say, before and after everything is folded.
 */
import { expect, test } from 'vitest'
import { totalsOf } from '../../src/domain/log.ts'
import { dayOf, HOUR_MS, HOURS, sumRows } from '../../src/domain/report.ts'
import { modelName } from '../../src/domain/team.ts'
import type { BookRow } from '../../src/domain/usage.ts'
import { auditRun } from '../../src/engine/audit.ts'
import { foldDay } from '../../src/engine/fold-usage.ts'
import { runSeed } from '../simulator/run-seed.ts'
import { START } from '../simulator/world.ts'
import { worldOn } from './support.ts'

const SEEDS = 120
/** Longer than any seed lasts. */
const DAYS = 4
const days = Array.from({ length: DAYS }, (_, i) => dayOf(START + i * HOURS * HOUR_MS))

const text = (rows: readonly BookRow[]): string[] =>
  sumRows(rows)
    .map(({ agent, model, outcome, totals }) =>
      JSON.stringify([agent, model, outcome, totals], (_, v) => (typeof v === 'bigint' ? `${v}` : v)),
    )
    .sort()

test(`${SEEDS} seeds: the audit balances, and the reports say what the calls say`, async () => {
  let [looked, corrections, rounds] = [0, 0, 0]
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { world, broken, scenario } = await runSeed(seed)
    if (broken !== undefined) continue // the simulator's own test is about that
    looked++
    const { run, headers } = world.mirror
    if (!run) continue
    const calm = worldOn(world.table)
    const report = await auditRun(calm.ctx, run)
    expect([seed, report.differences.map((d) => d.message)]).toEqual([seed, []])
    rounds += run.round
    corrections += report.checked.usageItems - run.round

    const calls = [...headers.keys()].flatMap((s) =>
      [...world.mirror.log(s).responses.values()].flatMap((r) =>
        r.outcome === 'none'
          ? []
          : [{ agent: r.agent, model: modelName(scenario.team, r.model), outcome: r.outcome, totals: totalsOf(r) }],
      ),
    )
    const reports = async () => {
      const rows = await Promise.all(days.map((day) => calm.store.readUsage({ tenant: run.tenant, day })))
      return text(rows.flat())
    }
    expect([seed, await reports()]).toEqual([seed, text(calls)])
    for (const day of days) await foldDay(calm.ctx, { tenant: run.tenant, day }, START + 10 * HOURS * HOUR_MS)
    expect([seed, await reports()]).toEqual([seed, text(calls)])
  }
  expect(looked).toBeGreaterThan(SEEDS * 0.8)
  expect(rounds).toBeGreaterThan(looked)
  expect(corrections).toBeGreaterThan(0)
}, 300_000)
