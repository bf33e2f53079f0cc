import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { checkMutants, MUTANTS } from './mutants.ts'
import { describeTally, emptyTally, quantile, tallyOutcome } from './report.ts'
import { runSeed } from './run-seed.ts'

const SEEDS = 500

test(`${SEEDS} seeds of random teams and every kind of fault keep every invariant`, async () => {
  const tally = emptyTally()
  for (let seed = 1; seed <= SEEDS; seed++) tallyOutcome(tally, seed, await runSeed(seed))
  console.log(describeTally(tally))
  const broken = tally.broken.map((b) => `npm run simulate -- --seed ${b.seed}: ${b.message}`)
  expect(broken).toEqual([])
  expect(quantile(tally.sessions, 0.5)).toBeGreaterThanOrEqual(8)
  expect(quantile(tally.portCalls, 0.5)).toBeGreaterThanOrEqual(60)
}, 1_200_000)

test('the same seed is the same run, to the last call', async () => {
  const [one, two] = [await runSeed(4, { trace: true }), await runSeed(4, { trace: true })]
  expect(one.world.trace.length).toBeGreaterThan(50)
  expect(two.world.trace).toEqual(one.world.trace)
})

test('each mutation of `npm run simulate -- --mutants` still has its place in the source', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  expect(() => checkMutants(MUTANTS, root)).not.toThrow()
  // control
  const moved = { ...MUTANTS[0]!, edits: [{ file: 'src/engine/cancel-run.ts', find: 'no such text', replace: '' }] }
  expect(() => checkMutants([moved], root)).toThrow('stands 0 times')
})
