import { expect, test } from 'vitest'
import { crashAt } from './plans.ts'
import { FAMILY } from './shapes.ts'

test('a run of a root, two workers, a nested worker and a join survives a crash at every single call', async () => {
  const broken: string[] = []
  let points = 0
  for (let at = 0; ; at++, points++) {
    const outcomes = [await crashAt(FAMILY, at, 'crash, not applied'), await crashAt(FAMILY, at, 'crash, applied')]
    if (outcomes.includes(undefined)) break
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome!.broken) broken.push(`call ${at}, ${i === 0 ? 'not applied' : 'applied'}: ${outcome!.broken}`)
      expect(outcome!.world.mirror.headers.size).toBeGreaterThanOrEqual(3)
    }
  }
  console.log(`crash points: ${points} calls, each crashed before and after it was applied`)
  expect(broken).toEqual([])
  expect(points).toBeGreaterThan(80)
}, 120_000)
