/** Figures of finished rounds in CloudWatch's embedded metric format, a log line for each agent, model and outcome. */
import { expect, test } from 'vitest'
import { NO_TOTALS } from '../../src/domain/usage.ts'
import { settleUp } from '../../src/engine/settle.ts'
import { createEmbeddedMetrics } from '../../src/metrics.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { rootRef, row, runRef } from '../support/builders.ts'
import { ENDED, endedRunWithUnknown, nextRound, worldOn } from './support.ts'

function collected() {
  const lines: string[] = []
  return { lines, metrics: createEmbeddedMetrics((line) => void lines.push(line)) }
}

test('who finishes a round says once what it has spent', async () => {
  const { lines, metrics } = collected()
  const world = worldOn(memoryTable())
  const ctx = { ...world.ctx, metrics }
  await endedRunWithUnknown(world.store, runRef())
  await Promise.all([settleUp(ctx, rootRef()), settleUp(ctx, rootRef()), settleUp(ctx, rootRef())])
  const said = lines.map((line) => JSON.parse(line))
  const brief = said.map((l) => [
    l.Team,
    l.Agent,
    l.Model,
    l.Outcome,
    l.Calls,
    l.InputTokens,
    l.OutputTokens,
    l.CostUsd,
  ])
  expect(brief.sort()).toEqual([
    ['crew', 'root', 'openai/gpt-5-mini', 'accepted', 2, 200, 100, 0.0009],
    ['crew', 'worker', 'mini', 'unknown', 1, 1200, 4096, 0.5],
    ['crew', 'worker', 'openai/gpt-5-mini', 'accepted', 2, 200, 100, 0.0009],
  ])
  await nextRound(world.store, runRef(), 3, ENDED + 3_600_000)
  await settleUp(ctx, rootRef())
  expect(lines.slice(3).map((line) => [JSON.parse(line).Model, JSON.parse(line).Calls])).toEqual([['second', 3]])
})

test('a line is what CloudWatch reads: one object, its metrics and dimensions declared and given', () => {
  const { lines, metrics } = collected()
  const rows = [
    row(2, { agent: 'Ä\n"', model: '', totals: { ...NO_TOTALS, calls: 2, cost: 123_456_789_012_345_678n } }),
  ]
  metrics.roundFinished({ tenant: 'acme', team: 'x'.repeat(300), rows, at: ENDED })
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toContain('\n')
  const said = JSON.parse(lines[0]!)
  const { Timestamp, CloudWatchMetrics } = said._aws
  expect(Timestamp).toBe(ENDED)
  const [{ Namespace, Dimensions, Metrics }] = CloudWatchMetrics
  expect(Namespace).toBe('Subledger')
  for (const name of Dimensions[0]) expect(said[name]).toMatch(/^[\x20-\x7e]{1,250}$/)
  for (const { Name } of Metrics) expect(typeof said[Name]).toBe('number')
  expect([said.Agent, said.Model, said.tenant]).toEqual(['??"', '-', 'acme'])
  // the decimal itself, and not a float's idea of it
  expect(lines[0]).toContain('"CostUsd":123456.789012345678}')
})

test('a round of which nothing is spent says nothing', () => {
  const { lines, metrics } = collected()
  const less = row(1, { outcome: 'unknown', totals: { ...NO_TOTALS, calls: -1 } })
  metrics.roundFinished({ tenant: 'local', team: 'crew', rows: [less], at: ENDED })
  expect(lines).toEqual([])
})
