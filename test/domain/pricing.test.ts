import { describe, expect, test } from 'vitest'
import { holdOf, inputFloor } from '../../src/domain/budget.ts'
import { formatUsd, parseUsd } from '../../src/domain/money.ts'
import {
  cheapestAt,
  costOf,
  dearestAt,
  dearestFrom,
  type Price,
  type PriceSchedule,
  priceAt,
} from '../../src/domain/pricing.ts'
import {
  cheapestOf,
  dearestLaterOf,
  dearestOf,
  isPriced,
  type ModelPrices,
  perToken,
  priceOf,
} from '../../src/domain/team.ts'
import { addTotals, NO_TOTALS, NO_USAGE, type TokenUsage } from '../../src/domain/usage.ts'

/** USD per million tokens. */
const price = (input: string, output: string, cache: { read?: string; write?: string; hour?: string } = {}): Price => ({
  input: perToken(input),
  output: perToken(output),
  ...(cache.read && { cacheRead: perToken(cache.read) }),
  ...(cache.write && { cacheWrite: perToken(cache.write) }),
  ...(cache.hour && { cacheWrite1h: perToken(cache.hour) }),
})
const usage = (of: Partial<TokenUsage>): TokenUsage => ({ ...NO_USAGE, ...of })
const cost = (of: Partial<TokenUsage>, at: Price): string | null => {
  const pico = costOf(usage(of), at)
  return pico === null ? null : formatUsd(pico)
}

const OPUS = price('5', '25', { read: '0.5', write: '6.25', hour: '10' })
const SONNET = price('3', '15', { read: '0.3', write: '3.75', hour: '6' })

describe('the cost of a call', () => {
  test('B13: cache writes of two lifetimes have two prices', () => {
    const written = { inputTokens: 1_000_000, cacheWriteTokens: 1_000_000 }
    expect(cost({ ...written, cacheWrite1hTokens: 400_000 }, OPUS)).toBe('7.75')
    // without a breakdown they are taken for the short ones
    expect(cost(written, OPUS)).toBe('6.25')
  })

  test('B11: the same input costs something else written to the cache and read from it', () => {
    expect(cost({ inputTokens: 2_302, cacheWriteTokens: 2_284, outputTokens: 158 }, SONNET)).toBe('0.010989')
    expect(cost({ inputTokens: 2_302, cacheReadTokens: 2_284, outputTokens: 141 }, SONNET)).toBe('0.0028542')
  })

  test('B31: 10,000 calls of a millionth of a dollar are exactly one cent', () => {
    const one = price('1', '1')
    let totals = NO_TOTALS
    for (let i = 0; i < 10_000; i++) {
      const call = usage({ inputTokens: 1 })
      totals = addTotals(totals, { ...NO_TOTALS, ...call, calls: 1, cost: costOf(call, one)! })
    }
    expect(formatUsd(totals.cost)).toBe('0.01')
    expect(totals.cost).toBe(parseUsd('0.01'))
  })

  test('is exact where a float cannot be', () => {
    expect(cost({ inputTokens: 9_007_199_254_740_991 }, price('0.000001', '0'))).toBe('9007.199254740991')
    expect(cost({ inputTokens: 3, outputTokens: 7 }, price('0.1', '0.7'))).toBe('0.0000052')
  })

  test('is not known where a kind of token has no price, or the counts cannot be', () => {
    const plain = price('3', '15')
    expect(cost({ inputTokens: 10, cacheReadTokens: 1 }, plain)).toBeNull()
    expect(cost({ inputTokens: 10, cacheWriteTokens: 1 }, plain)).toBeNull()
    expect(
      cost({ inputTokens: 10, cacheWriteTokens: 5, cacheWrite1hTokens: 1 }, price('3', '15', { write: '4' })),
    ).toBeNull()
    expect(cost({ inputTokens: 10, cacheReadTokens: 11 }, SONNET)).toBeNull()
    expect(cost({ inputTokens: 10, cacheWriteTokens: 1, cacheWrite1hTokens: 2 }, SONNET)).toBeNull()
    expect(costOf(usage({ inputTokens: 10 }), null)).toBeNull()
    expect(cost({ inputTokens: 10 }, plain)).toBe('0.00003')
  })
})

describe('a schedule', () => {
  const tiers = (...rates: [number, string, string][]) => rates.map(([from, i, o]) => ({ from, price: price(i, o) }))
  const DAY = Date.parse('2026-03-13T00:00:00Z')

  test('takes the tier of the whole prompt', () => {
    const schedule: PriceSchedule = [{ tiers: tiers([0, '3', '15'], [200_001, '6', '22.5'], [500_000, '9', '30']) }]
    const at = (tokens: number) => Number(priceAt(schedule, DAY, tokens).input) / 1e6
    expect([0, 200_000, 200_001, 499_999, 500_000, 9_000_000].map(at)).toEqual([3, 3, 6, 6, 9, 9])
  })

  test('takes the last period that holds, and the first where none does', () => {
    const schedule: PriceSchedule = [
      { tiers: tiers([0, '1', '1']) },
      { since: DAY, tiers: tiers([0, '2', '2']) },
      { since: DAY, daily: [79_200, 7_200], tiers: tiers([0, '3', '3']) },
    ]
    const at = (time: string) => Number(priceAt(schedule, Date.parse(time), 1).input) / 1e6
    expect(at('2026-03-12T23:59:59.999Z')).toBe(1)
    expect(at('2026-03-13T00:00:00.000Z')).toBe(3) // 22:00 to 02:00
    expect(at('2026-03-13T01:59:59.999Z')).toBe(3)
    expect(at('2026-03-13T02:00:00.000Z')).toBe(2)
    expect(at('2026-03-13T21:59:59.999Z')).toBe(2)
    expect(at('2026-03-13T22:00:00.000Z')).toBe(3)
  })

  test('is dearest at the dearest of the tiers that may be reached, not at the last one', () => {
    const schedule: PriceSchedule = [{ tiers: tiers([0, '3', '15'], [100, '2', '30'], [200, '9', '9']) }]
    const dearest = (most: number) => {
      const { input, output } = dearestAt(schedule, DAY, most)
      return [Number(input) / 1e6, Number(output) / 1e6]
    }
    expect(dearest(99)).toEqual([3, 15])
    expect(dearest(150)).toEqual([3, 30])
    expect(dearest(200)).toEqual([9, 30])
  })

  test('is dearest with every input token at the dearest kind', () => {
    const schedule: PriceSchedule = [{ tiers: [{ from: 0, price: OPUS }] }]
    expect(dearestAt(schedule, DAY, 1)).toEqual({ input: perToken('10'), output: perToken('25') })
  })

  test('no call within its bound costs more than its hold', () => {
    const schedule: PriceSchedule = [
      {
        tiers: [
          { from: 0, price: SONNET },
          { from: 200_001, price: price('6', '22.5', { read: '0.6', write: '7.5', hour: '12' }) },
        ],
      },
    ]
    for (const bound of [100_000, 200_000, 200_001, 300_000]) {
      const hold = holdOf(bound, 1_000, dearestAt(schedule, DAY, bound)).usd
      for (const inputTokens of [1, 199_999, 200_000, 200_001, bound].filter((n) => n <= bound))
        for (const cacheWriteTokens of [0, inputTokens]) {
          const call = usage({
            inputTokens,
            cacheWriteTokens,
            cacheWrite1hTokens: cacheWriteTokens,
            outputTokens: 1_000,
          })
          expect(costOf(call, priceAt(schedule, DAY, inputTokens))! <= hold).toBe(true)
        }
      // the border may lie between a prompt and its bound: a hold at the prompt's own tier would be too little
      if (bound > 200_000) expect(hold > holdOf(bound, 1_000, dearestAt(schedule, DAY, 200_000)).usd).toBe(true)
    }
  })
})

describe('the price of a model', () => {
  const prices: ModelPrices = {
    source: 'a list 1',
    schedule: [{ tiers: [{ from: 0, input: '1', output: '2' }] }],
    others: { 'm-2': [{ tiers: [{ from: 0, input: '5', output: '6' }] }] },
  }
  const call = { at: 0, inputTokens: 1 }

  test("of the team file goes before the list's, whoever answered", () => {
    const model = { cost: { input: '7', output: '8' }, prices }
    expect(priceOf(model, call)).toEqual(price('7', '8'))
    expect(priceOf(model, { ...call, answeredBy: 'm-2' })).toEqual(price('7', '8'))
    expect(dearestOf(model, call)).toEqual(price('7', '8'))
  })

  test('of the list is that of the model that answered, where it differs', () => {
    expect(priceOf({ prices }, call)).toEqual(price('1', '2'))
    expect(priceOf({ prices }, { ...call, answeredBy: 'm-2' })).toEqual(price('5', '6'))
    expect(priceOf({ prices }, { ...call, answeredBy: 'm-3' })).toEqual(price('1', '2'))
  })

  test('is not known without either', () => {
    expect([priceOf({}, call), dearestOf({}, call), isPriced({})]).toEqual([null, null, false])
    expect([isPriced({ prices }), isPriced({ cost: { input: '0', output: '0' } })]).toEqual([true, true])
  })
})

describe('the bounds of what a run may be charged', () => {
  const at = Date.parse('2026-06-01T12:00:00Z')
  const small = price('3', '15', { read: '0.3' })
  const large = price('6', '22', { write: '7' })

  test('the cheapest rate is that of any kind of input, in any tier that the prompt may reach', () => {
    const tiers: PriceSchedule = [
      {
        tiers: [
          { from: 0, price: large },
          { from: 1_000, price: small },
        ],
      },
    ]
    const cheapest = (least: number, most: number) => cheapestAt(tiers, at, { least, most })
    expect(cheapest(10, 999)).toEqual({ input: large.input, output: large.output })
    expect(cheapest(10, 1_000)).toEqual({ input: small.cacheRead, output: small.output })
    expect(cheapest(1_000, 5_000)).toEqual({ input: small.cacheRead, output: small.output })
  })

  test('the dearest rate from a time on leaves out what is over and knows what comes', () => {
    const since = (day: string, p: Price) => ({ since: Date.parse(`${day}T00:00:00Z`), tiers: [{ from: 0, price: p }] })
    const over = price('90', '90')
    const schedule: PriceSchedule = [{ tiers: [{ from: 0, price: over }] }, since('2026-05-01', small)]
    expect(dearestFrom(schedule, at, 10)).toEqual({ input: small.input, output: small.output })
    const daily = { daily: [0, 3_600] as const, tiers: [{ from: 0, price: large }] }
    expect(dearestAt([...schedule, daily], at, 10).output).toBe(small.output)
    expect(dearestFrom([...schedule, daily], at, 10)).toEqual({ input: large.cacheWrite, output: large.output })
    expect(dearestFrom([...schedule, since('2026-07-01', large)], at, 10).output).toBe(large.output)
  })

  test('a model that may answer in the place of another counts', () => {
    const of = (input: string, output: string) => [{ tiers: [{ from: 0, input, output }] }]
    const prices: ModelPrices = { source: 's', schedule: of('3', '15'), others: { b: of('2', '20') } }
    const prompt = { at, least: 1, most: 10 }
    expect(cheapestOf({ prices }, prompt)).toEqual({ input: perToken('2'), output: perToken('15') })
    expect(dearestLaterOf({ prices }, { at, inputTokens: 10 })).toEqual({
      input: perToken('3'),
      output: perToken('20'),
    })
    expect(cheapestOf({}, prompt)).toBeNull()
    expect(dearestLaterOf({}, { at, inputTokens: 10 })).toBeNull()
  })

  test('a prompt has a token for every sixteen bytes of UTF-8, and one at least', () => {
    expect(inputFloor([''])).toBe(1)
    expect(inputFloor(['a'.repeat(31)])).toBe(1)
    expect(inputFloor(['a'.repeat(16), 'é'.repeat(8)])).toBe(2)
  })
})
