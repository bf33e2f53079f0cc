/** `subledger validate` says which models will have no price. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { main } from '../../src/cli/main.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subledger-prices-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function validate(models: string): Promise<{ code: number; warnings: string[] }> {
  const file = join(folder, 'team.yaml')
  await writeFile(file, `models:\n  m: ${models}\nagents:\n  root: { model: m, instruction: Work. }\n`)
  const lines: string[] = []
  const err = (line: string) => void lines.push(line)
  const io = { out: () => {}, err, env: {}, interrupted: new AbortController().signal, sleep: async () => {} }
  const code = await main(io, ['validate', file])
  const problems = lines.flatMap((l) => l.split('\n')).filter((l) => l.includes('no price of'))
  return { code, warnings: problems.map((l) => l.replace(/^.*?warning: /, '')) }
}

test('a model of the built-in table gives no warning, and neither does a cost', async () => {
  expect(await validate('{ provider: openai, model: gpt-4o }')).toEqual({ code: 0, warnings: [] })
  expect(await validate('{ provider: groq, model: llama-3.3-70b-versatile }')).toEqual({ code: 0, warnings: [] })
  const cost = 'cost: { input: 1, output: 1, cache_read: 1, cache_write: 1 }'
  expect(await validate(`{ provider: openai, model: mine, ${cost} }`)).toEqual({ code: 0, warnings: [] })
})

test('a model that the table does not know gives one, and the file is good all the same', async () => {
  expect(await validate('{ provider: openai, model: gpt-of-tomorrow }')).toEqual({
    code: 0,
    warnings: [
      'the model "m" has no "cost", and no price of openai/gpt-of-tomorrow is known: its calls will be booked without a price',
    ],
  })
})

test('so does a model at an address for which no prices are known', async () => {
  const { warnings } = await validate('{ provider: openai, model: gpt-4o, base_url: https://gateway.example.com/v1 }')
  expect(warnings).toEqual([
    'the model "m" has no "cost", and no price of openai/gpt-4o at gateway.example.com is known: its calls will be booked without a price',
  ])
})
