/** A small part of `npm run fuzz`. */
import { expect, test } from 'vitest'
import { fuzz } from './fuzz.ts'

test('2,000 random requests: no fault, no hang, and what was valid succeeded', async () => {
  const report = await fuzz({ seed: 1, requests: 2_000 })
  expect(report.wrong).toEqual([])
  expect(report.requests).toBe(2_000)
  expect(report.valid).toBeGreaterThanOrEqual(600)
  expect(Object.keys(report.statuses.hostile).length).toBeGreaterThan(5)
}, 120_000)
