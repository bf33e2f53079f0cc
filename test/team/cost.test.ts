import { describe, expect, test } from 'vitest'
import { priceOf } from '../../src/domain/team.ts'
import { problemsOf, teamOf, withModel } from './team-text.ts'

describe('a cost', () => {
  const cost = (text: string) =>
    withModel(`provider: openai\nmodel: gpt-4o\ncost: { ${text}, cache_read: 0, cache_write: 0 }`)
  const price = (text: string) =>
    priceOf(teamOf(cost(`output: 0, input: ${text}`)).models.m!, { at: 0, inputTokens: 1 })?.input

  test('is exact: it is read from the text of the file', () => {
    expect(price('3')).toBe(3_000_000n)
    expect(price('0.075')).toBe(75_000n)
    expect(price('0.000001')).toBe(1n)
    expect(price('0.0000010000')).toBe(1n)
    expect(price('"0.25"')).toBe(250_000n)
    // as a float this is 123456.12345600000000000001 or so
    expect(price('123456.123456')).toBe(123_456_123_456n)
    expect(teamOf(cost('input: 3.00, output: "0.50"')).models.m?.cost).toMatchObject({ input: '3', output: '0.5' })
  })

  test.each([
    ['-1', 'a price cannot be negative'],
    ['0.0000001', 'a price has at most 6 decimals per million tokens'],
    ['1e-3', 'a price is a plain decimal number'],
    ['1E3', 'a price is a plain decimal number'],
    ['.5', 'a price is a plain decimal number'],
    ['+1', 'a price is a plain decimal number'],
    ['0x10', 'a price is a plain decimal number'],
    ['1_000', 'a price is a plain decimal number'],
    ['.nan', 'a price is a plain decimal number'],
    ['free', 'a price is a plain decimal number'],
    ['"1,5"', 'a price is a plain decimal number'],
    ['$3', 'a price is a plain decimal number'],
    ['[1]', 'a price is a plain decimal number'],
    ['true', 'a price is a plain decimal number'],
    ['1000000.000001', 'a price is at most 1000000 USD'],
    ['9'.repeat(60), 'a price is a plain decimal number'],
  ])('of %s is refused', (text, why) => {
    const found = problemsOf(cost(`output: 1, input: ${text}`))
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/^7:31 error: "models\.m\.cost\.input" is /)
    expect(found[0]).toContain(why)
  })

  test('needs input and output', () => {
    expect(problemsOf(cost('output: 1'))).toEqual([
      '7:5 error: "models.m.cost" must say "input", in USD per million tokens',
    ])
    expect(problemsOf(cost('input: 1, output:'))).toEqual([
      '7:5 error: "models.m.cost" must say "output", in USD per million tokens',
    ])
  })

  test('with an unknown key is refused', () => {
    expect(problemsOf(cost('input: 1, output: 2, cache_reads: 1'))).toEqual([
      '7:34 error: "cache_reads" is not a key of models.m.cost (did you mean "cache_read"?)',
    ])
  })

  test('without prices of the cache gives a warning', () => {
    expect(problemsOf(withModel('provider: openai\nmodel: gpt-4o\ncost: { input: 1, output: 2 }'))).toEqual([
      '7:5 warning: "models.m.cost" has no cache_read and no cache_write: calls that use the prompt cache so will have no price',
    ])
    expect(
      problemsOf(withModel('provider: openai\nmodel: gpt-4o\ncost: { input: 1, output: 2, cache_read: 1 }')),
    ).toEqual([
      '7:5 warning: "models.m.cost" has no cache_write: calls that use the prompt cache so will have no price',
    ])
  })

  test('that is not there gives a warning, for scripted models as well', () => {
    expect(problemsOf(withModel('provider: openai\nmodel: gpt-4o'))[0]).toMatch(
      /^4:3 warning: the model "m" has no "cost"/,
    )
    expect(problemsOf(withModel('provider: scripted\nprovider_opts: {}'))[0]).toMatch(
      /^4:3 warning: the model "m" has no/,
    )
  })
})
