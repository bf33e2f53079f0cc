import { expect, test } from 'vitest'
import { crashAt } from './plans.ts'
import { FAMILY, GRANTED_FAMILY, POOR_FAMILY } from './shapes.ts'

test.each([
  ['a run of a root, two workers, a nested worker and a join', FAMILY],
  ['the same with so little money that they wait for what comes back', POOR_FAMILY],
  ['a root and two workers under limits over time', GRANTED_FAMILY],
])(
  '%s survives a crash at every single call',
  async (_name, scenario) => {
    const broken: string[] = []
    let points = 0
    for (let at = 0; ; at++, points++) {
      const outcomes = [
        await crashAt(scenario, at, 'crash, not applied'),
        await crashAt(scenario, at, 'crash, applied'),
      ]
      if (outcomes.includes(undefined)) break
      for (const [i, outcome] of outcomes.entries()) {
        if (outcome!.broken) broken.push(`call ${at}, ${i === 0 ? 'not applied' : 'applied'}: ${outcome!.broken}`)
        expect(outcome!.world.mirror.headers.size).toBeGreaterThanOrEqual(3)
      }
    }
    console.log(`crash points: ${points} calls, each crashed before and after it was applied`)
    expect(broken).toEqual([])
    expect(points).toBeGreaterThan(80)
  },
  120_000,
)
