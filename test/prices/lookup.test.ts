/** Which price a model gets: its own, or none. */
import { describe, expect, test } from 'vitest'
import { formatUsd } from '../../src/domain/money.ts'
import { costOf } from '../../src/domain/pricing.ts'
import { type PricedCall, priceOf } from '../../src/domain/team.ts'
import { NO_USAGE, type TokenUsage } from '../../src/domain/usage.ts'
import { readEntry, writeEntry } from '../../src/prices/entry.ts'
import { priceTable, type TableFile } from '../../src/prices/price-table.ts'
import { createPrices, loadPrices } from '../../src/prices/prices.ts'
import file from '../../src/prices/table.json' with { type: 'json' }
import { PROVIDERS } from '../../src/team/providers.ts'

const table = await loadPrices()
const NOW = Date.parse('2026-11-30T12:00:00Z')

const HOMES = [...PROVIDERS].flatMap(([name, { fate, baseUrl }]) =>
  fate === 'supported' && baseUrl !== undefined ? [[name, baseUrl] as const] : [],
)

/** `in/out` in USD per million tokens, or null. */
function rates(provider: string, model: string, call: Partial<PricedCall> = {}, baseUrl?: string): string | null {
  const prices = table.of({ provider, model, ...(baseUrl !== undefined && { baseUrl }) })
  const price = prices ? priceOf({ prices }, { at: NOW, inputTokens: 1_000, ...call }) : null
  return price && `${Number(price.input) / 1e6}/${Number(price.output) / 1e6}`
}

describe('a price is found', () => {
  test.each([
    ['openai', 'gpt-4o', '2.5/10'],
    ['openai', 'gpt-4o-2024-08-06', '2.5/10'],
    ['openai', 'gpt-4o-2024-05-13', '5/15'],
    ['openai', 'gpt-3.5-turbo', '0.5/1.5'],
    ['anthropic', 'claude-opus-4-8', '5/25'],
    ['anthropic', 'claude-sonnet-4-0', '3/15'],
    ['anthropic', 'claude-sonnet-4-20250514', '3/15'],
    ['anthropic', 'claude-haiku-4-5-20251001', '1/5'],
    ['google', 'gemini-2.5-flash', '0.3/2.5'],
    ['amazon-bedrock', 'amazon.nova-lite-v1:0', '0.06/0.24'],
    ['xai', 'grok-4', '3/15'],
    ['together', 'Qwen/Qwen1.5-7B-Chat', '0.2/0.2'],
    ['fireworks', 'accounts/fireworks/models/glm-5p2', '1.4/4.4'],
    ['openrouter', 'deepseek-r1t-chimera:free', '0/0'],
  ])('%s/%s', (provider, model, price) => expect(rates(provider, model)).toBe(price))

  test.each([
    ['anthropic.claude-sonnet-4-5-20250929-v1:0', '3.3/16.5'],
    ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', '3.3/16.5'],
    ['eu.anthropic.claude-sonnet-4-5-20250929-v1:0', '3.3/16.5'],
    ['apac.anthropic.claude-sonnet-4-5-20250929-v1:0', '3.3/16.5'],
    ['global.anthropic.claude-sonnet-4-5-20250929-v1:0', '3/15'],
    ['us.anthropic.claude-opus-4-8', '5.5/27.5'],
    ['global.anthropic.claude-opus-4-8', '5/25'],
    ['eu.amazon.nova-2-lite-v1:0', '0.33/2.75'],
    ['global.amazon.nova-2-lite-v1:0', '0.3/2.5'],
  ])("Bedrock's regions: %s", (model, price) => expect(rates('amazon-bedrock', model)).toBe(price))
})

describe('no price is borrowed by', () => {
  test.each([
    ['a name that begins like another', 'openai', 'gpt-4o-turbo'],
    ['a snapshot that nobody has declared', 'openai', 'gpt-4o-2030-01-01'],
    ['a snapshot of a newer model', 'anthropic', 'claude-opus-4-8-20260601'],
    ['a smaller sibling that the source would match', 'google', 'gemini-1.5-flash-8b'],
    ['a fine-tuned model', 'openai', 'ft:gpt-4o-2024-08-06:acme::abc'],
    ['other capitals', 'openai', 'GPT-4o'],
    ['a model of another provider', 'openai', 'claude-opus-4-8'],
    ['a provider of the file', 'gateway', 'gpt-4o'],
    ['a scripted model', 'scripted', 'gpt-4o'],
    ['a geography that the source does not name', 'amazon-bedrock', 'sa.anthropic.claude-opus-4-8'],
    ['a global profile where there is none', 'amazon-bedrock', 'global.amazon.nova-lite-v1:0'],
    ['an ARN', 'amazon-bedrock', 'arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0'],
    ["a stub: the source's entry is empty", 'cerebras', 'qwen-3-coder-480b'],
    ['a model whose output is partly dearer', 'openai', 'gpt-audio'],
    ['the words of every object', 'openai', 'constructor'],
    ['the words of every object', 'constructor', 'gpt-4o'],
    ['the words of every object', 'openai', '__proto__'],
  ])('%s', (_, provider, model) => expect(rates(provider, model)).toBeNull())

  test('a model of the same name at another address; loopback stands for the provider itself', () => {
    const at = (baseUrl: string) => rates('openai', 'gpt-4o', {}, baseUrl)
    expect(at('https://api.openai.com/v1')).toBe('2.5/10')
    expect(at('http://127.0.0.1:4010/v1')).toBe('2.5/10')
    expect(at('http://localhost:4010/v1')).toBe('2.5/10')
    expect(at('http://[::1]:4010/v1')).toBe('2.5/10')
    expect(at('https://gateway.example.com/v1')).toBeNull()
    expect(at('https://127.0.0.1.example.com/v1')).toBeNull()
    expect(at('https://api.openai.com:8443/v1')).toBeNull()
    expect(rates('groq', 'llama-3.3-70b-versatile', {}, 'https://api.groq.com/openai/v1')).toBe('0.59/0.79')
    expect(rates('groq', 'llama-3.3-70b-versatile', {}, 'https://api.openai.com/v1')).toBeNull()
  })
})

test.each([
  ['openai', 'gpt-4o', 'https://api.openai.com.gateway.example/v1'],
  ['openai', 'gpt-4o', 'https://api.openai.com@gateway.example/v1'],
  ['xai', 'grok-4', 'https://api.x.ai-gateway.example/v1'],
  ['google', 'gemini-2.5-flash', 'https://gateway.example/x.googleapis.com/v1beta'],
  ['google', 'gemini-2.5-flash', 'https://googleapis.com.example/v1beta'],
  ['amazon-bedrock', 'amazon.nova-lite-v1:0', 'https://bedrock-runtime.us-east-1.amazonaws.com.example'],
])('%s/%s has no price at a host that only looks like its own: %s', (provider, model, baseUrl) => {
  expect(table.of({ provider, model })).toBeDefined()
  expect(table.of({ provider, model, baseUrl })).toBeUndefined()
})

test.each([
  ['google', 'gemini-2.5-flash', 'https://generativelanguage.googleapis.com/v1beta'],
  ['amazon-bedrock', 'amazon.nova-lite-v1:0', 'https://bedrock-runtime.us-east-1.amazonaws.com'],
  ['amazon-bedrock', 'amazon.nova-lite-v1:0', 'https://bedrock-runtime.us-east-1.amazonaws.com/'],
  ['openai', 'gpt-4o', 'https://API.openai.com:443'],
])('%s/%s has its price at %s', (provider, model, baseUrl) =>
  expect(table.of({ provider, model, baseUrl })).toBeDefined(),
)

test.each(HOMES)('prices of %s are for the address at which it is called', (provider, baseUrl) => {
  const [model] = Object.keys((file as TableFile).providers[provider]!.models)
  expect(table.of({ provider, model: model!, baseUrl })).toBeDefined()
})

describe('what decides on the price', () => {
  test.each([
    ['anthropic', 'claude-sonnet-4-5', 200_000, '3/15'],
    ['anthropic', 'claude-sonnet-4-5', 200_001, '6/22.5'],
    ['google', 'gemini-2.5-pro', 200_000, '1.25/10'],
    ['google', 'gemini-2.5-pro', 200_001, '2.5/15'],
    ['openai', 'gpt-5.5', 271_999, '5/30'],
    ['openai', 'gpt-5.5', 272_000, '10/45'],
    ['xai', 'grok-4.3', 199_999, '1.25/2.5'],
    ['xai', 'grok-4.3', 200_000, '2.5/5'],
  ])('is the size of the prompt, by the rule of %s: %s at %i', (provider, model, inputTokens, price) =>
    expect(rates(provider, model, { inputTokens })).toBe(price),
  )

  test.each([
    ['2025-06-09T23:59:59.999Z', '10/40'],
    ['2025-06-10T00:00:00.000Z', '2/8'],
  ])('is the date: o3 at %s', (at, price) => expect(rates('openai', 'o3', { at: Date.parse(at) })).toBe(price))

  test.each([
    ['2025-03-01T00:29:59.999Z', '0.135/0.55'],
    ['2025-03-01T00:30:00.000Z', '0.27/1.1'],
    ['2025-03-01T16:29:59.999Z', '0.27/1.1'],
    ['2025-03-01T16:30:00.000Z', '0.135/0.55'],
  ])('is the hour of the day: deepseek-chat at %s', (at, price) =>
    expect(rates('deepseek', 'deepseek-chat', { at: Date.parse(at) })).toBe(price),
  )

  test('is the model that answered, where its own price is another one and is known', () => {
    const answered = (answeredBy: string) => rates('openai', 'gpt-4o', { answeredBy })
    expect(answered('gpt-4o-2024-05-13')).toBe('5/15')
    expect(answered('gpt-4o-2024-08-06')).toBe('2.5/10')
    // a name that nobody knows is taken for another name of what was asked for
    expect(answered('gpt-4o-2030-01-01')).toBe('2.5/10')
    expect(answered('constructor')).toBe('2.5/10')
    // another model does not answer for it
    expect(answered('gpt-4o-mini')).toBe('2.5/10')
    expect(rates('mistral', 'mistral-large-latest', { answeredBy: 'mistral-large-2512' })).toBe('0.5/1.5')
  })

  test.each([
    ['openai', 'gpt-4o', ['gpt-4o-2024-05-13']],
    ['openai', 'gpt-3.5-turbo', ['gpt-3.5-turbo-0301', 'gpt-3.5-turbo-0613', 'gpt-3.5-turbo-1106']],
    ['openrouter', 'cohere/command-r', ['cohere/command-r-08-2024']],
    ['mistral', 'mistral-small-latest', ['mistral-small-2603']],
    // the newest of a family may be any of its versions
    [
      'mistral',
      'mistral-medium-latest',
      ['2312', '2505', '2508', '3', '3-5', '3.5'].map((version) => `mistral-medium-${version}`),
    ],
    // these go on to names of other models
    ['openai', 'o3', []],
    ['openai', 'gpt-4.1', []],
    ['openai', 'gpt-5', []],
    ['anthropic', 'claude-opus-4', []],
    // a snapshot of the same price is not kept
    ['anthropic', 'claude-opus-4-8', []],
  ])('of models that may answer only snapshots that cost something else are kept: %s/%s', (provider, model, others) => {
    const prices = table.of({ provider, model })!
    expect(Object.keys(prices.others ?? {}).sort()).toEqual(others)
  })
})

test('the recorded conversations cost what their providers charge for them', () => {
  const sum = (provider: string, model: string, answeredBy: string, calls: Partial<TokenUsage>[]) =>
    calls.reduce((total, of) => {
      const usage = { ...NO_USAGE, ...of }
      const price = priceOf(
        { prices: table.of({ provider, model })! },
        { at: NOW, inputTokens: usage.inputTokens, answeredBy },
      )
      return total + costOf(usage, price)!
    }, 0n)
  const claude = [
    { inputTokens: 1_279, cacheWriteTokens: 1_276, outputTokens: 58 },
    { inputTokens: 1_354, cacheWriteTokens: 72, cacheReadTokens: 1_276, outputTokens: 4 },
  ]
  expect(formatUsd(sum('anthropic', 'claude-sonnet-4-0', 'claude-sonnet-4-20250514', claude))).toBe('0.0063948')
  const gpt = [
    [308, 35],
    [82, 19],
    [370, 20],
    [404, 20],
  ].map(([inputTokens, outputTokens]) => ({ inputTokens, outputTokens }) as TokenUsage)
  expect(formatUsd(sum('openai', 'gpt-3.5-turbo', 'gpt-3.5-turbo-0125', gpt))).toBe('0.000723')
})

test('prices say where they come from', async () => {
  const prices = await createPrices().of({ provider: 'openai', model: 'gpt-4.1' })
  expect(prices!.source).toMatch(/^@pydantic\/genai-prices \d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)$/)
  expect(await createPrices().of({ provider: 'openai', model: 'nothing' })).toBeUndefined()
})

describe('an entry of the table', () => {
  test('says tiers, dates and hours', () => {
    const text =
      '3 15 read 0.3 write 3.75 write1h 6, from 200001: 6 22.5 read 0.6; since 2026-03-13: 1 2; daily 00:30:00-16:30:00: 4 5; since 2026-04-01 daily 22:00:00-02:00:00: 0.5 0.6'
    expect(readEntry(text)).toEqual([
      {
        tiers: [
          { from: 0, input: '3', output: '15', cacheRead: '0.3', cacheWrite: '3.75', cacheWrite1h: '6' },
          { from: 200_001, input: '6', output: '22.5', cacheRead: '0.6' },
        ],
      },
      { since: '2026-03-13', tiers: [{ from: 0, input: '1', output: '2' }] },
      { daily: ['00:30:00', '16:30:00'], tiers: [{ from: 0, input: '4', output: '5' }] },
      { since: '2026-04-01', daily: ['22:00:00', '02:00:00'], tiers: [{ from: 0, input: '0.5', output: '0.6' }] },
    ])
    expect(writeEntry(readEntry(text))).toBe(text)
  })

  test.each([
    ['', 'input and output are no prices'],
    ['3', 'input and output are no prices'],
    ['-3 15', 'input and output are no prices'],
    ['3 1e1', 'input and output are no prices'],
    ['0.0000001 1', 'input and output are no prices'],
    ['3 15 reads 1', '"reads 1" is no price'],
    ['3 15 read', '"read " is no price'],
    ['3 15 read -1', '"read -1" is no price'],
    ['from 10: 3 15', 'its tiers do not begin at 0 and rise'],
    ['3 15, from 20: 3 15, from 10: 3 15', 'its tiers do not begin at 0 and rise'],
    ['since 2026-01-01: 3 15', 'its first prices have a condition'],
    ['3 15; since tomorrow: 3 15', 'input and output are no prices'],
  ])('that is wrong is refused: "%s"', (text, why) => expect(() => readEntry(text)).toThrow(why))

  test('is refused when it is asked for, and spoils no other', () => {
    const file: TableFile = {
      source: { name: 'a list', version: '1', date: '2026-01-01' },
      providers: {
        openai: { address: 'https://api', models: { good: '1 2', bad: '1', alias: '= good', lost: '= gone' } },
      },
    }
    const of = (model: string) => priceTable(file).of({ provider: 'openai', model })
    expect(of('alias')).toEqual({ source: 'a list 1 (2026-01-01)', schedule: readEntry('1 2') })
    expect(of('lost')).toBeUndefined()
    expect(() => of('bad')).toThrow('cannot be read')
  })
})
