/** src/prices/table.json against @pydantic/genai-prices, of which it is made. */
import { readFileSync } from 'node:fs'
import { findProvider } from '@pydantic/genai-prices'
import { describe, expect, test } from 'vitest'
import { decimal, type LeftOut, PROVIDERS, type Provider } from '../../scripts/prices/source.ts'
import { makeTable, TABLE, tableText } from '../../scripts/prices.ts'
import { readEntry, writeEntry } from '../../src/prices/entry.ts'
import { entryOf, type TableFile } from '../../src/prices/price-table.ts'
import { PROVIDERS as TEAM_PROVIDERS } from '../../src/team/providers.ts'
import { compare, modelOf, periodsOf } from './compare.ts'

const text = readFileSync(TABLE, 'utf8')
const file = JSON.parse(text) as TableFile
const made = makeTable()

test('npm run prices writes the table as it stands', () => {
  expect(tableText(made.table)).toBe(text)
})

test('every provider that can be used has prices, but for the scripted one', () => {
  const supported = [...TEAM_PROVIDERS].filter(([, p]) => p.fate === 'supported').map(([name]) => name)
  expect(supported.filter((name) => !(name in file.providers))).toEqual(['scripted'])
})

describe('every model', () => {
  test('costs what the source says: small and large prompts, all kinds of cached tokens, before and after each change', () => {
    const { differences, calls } = compare(file)
    expect(differences).toEqual([])
    expect(calls).toBeGreaterThan(Object.values(file.providers).flatMap((p) => Object.keys(p.models)).length * 1.5)
  })

  test('has the rates of the source as exact decimals, and no others', () => {
    const kinds = {
      input: 'input',
      output: 'output',
      cache_read: 'cacheRead',
      cache_write: 'cacheWrite',
      cache_write_1h: 'cacheWrite1h',
    }
    const refused = new Set(made.leftOut.filter((l) => l.rate).map((l) => `${l.provider}/${l.model}: ${l.rate}`))
    let rates = 0
    for (const [provider, { models }] of Object.entries(file.providers) as [Provider, TableFile['providers'][string]][])
      for (const id of Object.keys(models)) {
        const model = modelOf(provider, id)!
        for (const [i, { tiers }] of readEntry(entryOf(models, id)!).entries()) {
          const { prices } = periodsOf(model)[i]!
          if (Object.keys(prices).length === 0) continue // free by its id
          for (const [theirs, ours] of Object.entries(kinds)) {
            const rate = prices[`${theirs}_mtok`]
            const said = tiers.map((t) => t[ours as 'input'])
            if (rate === undefined || refused.has(`${provider}/${model.id}: ${ours}`)) {
              expect([id, ours, ...new Set(said)]).toEqual([id, ours, undefined])
              continue
            }
            const steps = typeof rate === 'number' ? [rate] : [rate.base, ...rate.tiers.map((t) => t.price)]
            // their decimal and ours are the same number, to the last digit
            expect([id, ours, ...new Set(said)]).toEqual([id, ours, ...new Set(steps.map(decimal))])
            expect(steps.map(Number)).toEqual(steps.map((s) => Number(decimal(s))))
            rates += steps.length
          }
        }
      }
    expect(rates).toBeGreaterThan(4_000)
  })

  test('of the source is in the table, or is left out for a reason that holds', () => {
    const reasons: { [R in LeftOut['reason']]?: string[] } = {}
    for (const provider of Object.keys(PROVIDERS) as Provider[]) {
      const there = new Set(Object.keys(file.providers[provider]!.models).map((id) => modelOf(provider, id)!))
      for (const model of findProvider({ providerId: PROVIDERS[provider] })!.models) {
        const out = made.leftOut.find((l) => l.provider === provider && l.model === model.id && !l.rate)
        expect([model.id, there.has(model)]).toEqual([model.id, out === undefined])
        if (!out) continue
        ;(reasons[out.reason] ??= []).push(`${provider}/${model.id}`)
        const keys = periodsOf(model).map((p) => Object.keys(p.prices))
        if (out.reason === 'it has no price by tokens of input and output')
          expect(keys.some((k) => !k.includes('input_mtok') || !k.includes('output_mtok'))).toBe(true)
        else if (out.reason === 'it charges for a kind of output that calls do not tell apart')
          expect(keys.flat().filter((k) => /^output_\w+_mtok$/.test(k)).length).toBeGreaterThan(0)
        else expect(out.reason).toBe('it has no exact id that the provider serves')
      }
    }
    expect(reasons['it has no exact id that the provider serves']!.filter((m) => !/claude|:free$/.test(m))).toEqual([
      'openai/ft:gpt-3.5-turbo-',
      'openai/ft:gpt-4o',
      'openai/ft:gpt-4o-mini',
      'openai/gpt-4o-mini-2024-07-18.ft-',
    ])
    // a price of a third of a cent is no whole number: the rate is not known, the others are
    expect(made.leftOut.filter((l) => l.rate).map((l) => [l.reason, l.rate])).toEqual(
      Array(6).fill(['its price is no whole number of pico-USD', 'cacheWrite']),
    )
  })

  test('that is free says so in its id', () => {
    for (const { models } of Object.values(file.providers))
      for (const [id, entry] of Object.entries(models))
        if (!entry.startsWith('= ')) expect([id, /(^|[ :])0( |$)/.test(entry)]).toEqual([id, id.endsWith(':free')])
  })

  test('can be read and written again', () => {
    for (const { models } of Object.values(file.providers))
      for (const [id, entry] of Object.entries(models)) {
        if (entry.startsWith('= ')) expect(models[entry.slice(2)]).toMatch(/^\d/)
        else expect([id, writeEntry(readEntry(entry))]).toEqual([id, entry])
      }
  })
})

describe('control: the comparison finds', () => {
  const changed = (provider: Provider, id: string, change: (entry: string) => string) => {
    const prices = file.providers[provider]!
    const entry = change(prices.models[id]!)
    expect(entry).not.toBe(prices.models[id])
    const models = { ...prices.models, [id]: entry }
    return compare({ ...file, providers: { [provider]: { ...prices, models } } }).differences
  }

  test.each<[string, Provider, string, (entry: string) => string]>([
    ['an input price off by one in the sixth decimal', 'openai', 'gpt-4o', (e) => e.replace(/^2\.5 /, '2.500001 ')],
    ['an output price', 'mistral', 'codestral-2508', (e) => e.replace(' 0.9', ' 0.91')],
    ['a cache read price', 'xai', 'grok-4.6', (e) => e.replace('read 0.5', 'read 0.6')],
    ['a price of hour-long cache writes', 'anthropic', 'claude-opus-4-8', (e) => e.replace('write1h 10', 'write1h 12')],
    ['a border of a tier, one token too high', 'anthropic', 'claude-sonnet-4-5', (e) => e.replace('200001', '200002')],
    ['a border of a tier, one token too low', 'openai', 'gpt-5.4', (e) => e.replace('272000', '271999')],
    ['a price in a higher tier', 'google', 'gemini-2.5-pro', (e) => e.replace(': 2.5 15', ': 2.5 16')],
    ['a date, one day too late', 'openai', 'o3', (e) => e.replace('2025-06-10', '2025-06-11')],
    ['an hour of the day', 'deepseek', 'deepseek-chat', (e) => e.replace('16:30:00', '16:30:01')],
    [
      'a name of another model',
      'amazon-bedrock',
      'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
      () => '= global.anthropic.claude-sonnet-4-5-20250929-v1:0',
    ],
    ['a price for an id that the source does not know', 'groq', 'qwen/qwen3-32b', () => '1 1'],
  ])('%s', (_, provider, id, change) => {
    expect(changed(provider, id, change).join('\n')).toContain(`${provider}/${id}`)
  })

  test('a model that the source does not have', () => {
    const prices = file.providers.groq!
    const models = { 'my-own-model': '1 1' }
    expect(compare({ ...file, providers: { groq: { ...prices, models } } }).differences).toEqual([
      'groq/my-own-model: it is in one of the two only',
    ])
  })
})
