import { describe, expect, test } from 'vitest'
import { parseDuration } from '../../src/team/duration.ts'
import { problemsOf, teamOf, withAgent } from './team-text.ts'

/** Agent, worker and model in eight lines and more; the budget stands before them, from line 1 on. */
const withBudget = (text: string, agent = 'model: fast') => `${text}\n${withAgent(agent)}`

describe('budget and budgets', () => {
  test('are read as the file says, and agents name theirs', () => {
    const team = teamOf(
      withBudget(
        'budget: { max_cost: 0.50, max_tokens: 100000, max_time: 1h30m }\nbudgets: { shell: { max_cost: "0.03" }, slow: { max_time: 90s } }',
        'model: fast\nbudgets: [shell, slow]',
      ),
    )
    expect(team.budget).toEqual({ usd: '0.5', tokens: 100_000, timeMs: 5_400_000 })
    expect(team.budgets).toEqual({ shell: { usd: '0.03' }, slow: { timeMs: 90_000 } })
    expect(team.agents.map((a) => a.budgets)).toEqual([['shell', 'slow'], undefined])
    expect(teamOf(withAgent('model: fast'))).not.toHaveProperty('budget')
    expect(teamOf(withAgent('model: fast'))).not.toHaveProperty('budgets')
  })

  test('have amounts that no float has touched', () => {
    const usd = (text: string) => teamOf(withBudget(`budget: { max_cost: ${text} }`)).budget?.usd
    // as floats these would be 0.1 + 2^-56 or so, and 99999999.99999999
    expect(usd('0.100000000001')).toBe('0.100000000001')
    expect(usd('99999999.999999999999')).toBe('99999999.999999999999')
    expect(usd('12345678.123456789012')).toBe('12345678.123456789012')
    expect(usd('2.50')).toBe('2.5')
  })

  test.each([
    ['max_cost: -1', '1:21', 'a limit cannot be negative'],
    ['max_cost: 1e3', '1:21', 'a limit is a plain decimal number of USD'],
    ['max_cost: $5', '1:21', 'a limit is a plain decimal number of USD'],
    ['max_cost: .inf', '1:21', 'a limit is a plain decimal number of USD'],
    ['max_cost: 0.0000000000001', '1:21', 'at most 12 decimals'],
    ['max_cost: 100000001', '1:21', 'at most 100000000 USD'],
    ['max_tokens: 1.5', '1:23', 'must be a whole number'],
    ['max_tokens: -1', '1:23', 'must be a whole number'],
    ['max_time: 10', '1:21', 'a time is written as 10m, 90s or 1h30m'],
    ['max_time: 10 minutes', '1:21', 'a time is written as 10m, 90s or 1h30m'],
    ['max_time: -1m', '1:21', 'a time is written as 10m, 90s or 1h30m'],
    ['max_time: 9999h', '1:21', 'a time is at most 8784h'],
    ['max_coast: 1', '1:11', '"max_coast" is not a key of budget (did you mean "max_cost"?)'],
  ])('refuse %s with its place', (text, place, why) => {
    const found = problemsOf(withBudget(`budget: { ${text} }`))
    expect(found[0]).toMatch(new RegExp(`^${place} error: `))
    expect(found.join('\n')).toContain(why)
  })

  test('must limit something', () => {
    const why = 'limits nothing: it must say "max_cost", "max_tokens" or "max_time"'
    expect(problemsOf(withBudget('budget: {}'))).toEqual([`1:1 error: "budget" ${why}`])
    expect(problemsOf(withBudget('budgets: { b: { max_cost: } }'))).toEqual([`1:12 error: "budgets.b" ${why}`])
  })

  test('of 0 are what they say, with a warning', () => {
    const text = withBudget('budget: { max_tokens: 0 }')
    expect(teamOf(text).budget).toEqual({ tokens: 0 })
    expect(problemsOf(text)).toEqual(['1:23 warning: "budget.max_tokens" is 0: it lets no call through'])
  })

  test('that an agent names must be there', () => {
    const at = (names: string) =>
      problemsOf(withBudget('budgets: { research: { max_cost: 1 } }', `model: fast\n${names}`))
    expect(at('budgets: [reserch]')).toEqual(['5:15 error: there is no budget "reserch" (did you mean "research"?)'])
    expect(at('budgets: [money]')).toEqual(['5:15 error: there is no budget "money"; define it under "budgets"'])
    expect(at('budgets: [research, research]')).toEqual(['5:25 warning: the budget "research" is named twice'])
    expect(at('budgets: research')).toEqual(['5:14 error: "agents.root.budgets" must be a list'])
  })
})

test.each([
  ['10m', 600_000],
  ['1h30m', 5_400_000],
  ['1.5s', 1_500],
  ['250ms', 250],
  ['1000us', 1],
  ['0', 0],
  ['0.5ms', undefined],
  ['1ns', undefined],
  ['', undefined],
  ['m', undefined],
  ['1d', undefined],
  ['1m 30s', undefined],
])('the duration %j is %j ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})
