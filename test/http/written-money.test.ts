/** Money that is sent as a number is taken as it is written: no double comes between the text and the books. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSchedules } from '../../src/compose-schedules.ts'
import { plainDecimal } from '../../src/domain/money.ts'
import type { EstimateView } from '../../src/http/views/estimate.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { type Api, echo, expectProblem, openApi } from './api.ts'

let api: Api
beforeAll(() => {
  api = openApi({ teams: [echo] })
})
afterAll(() => api.close())

const TAKEN: readonly (readonly [written: string, taken: string])[] = [
  ['12345678.123456789012', '12345678.123456789012'],
  ['99999999.999999999999', '99999999.999999999999'],
  ['0.1', '0.1'],
  ['2.50', '2.5'],
  ['2.500000000000000000', '2.5'],
  ['0.0000005', '0.0000005'],
  ['5e-7', '0.0000005'],
  ['5E-07', '0.0000005'],
  ['1E2', '100'],
  ['1234567812345678.9012e-8', '12345678.123456789012'],
  ['"12345678.123456789012"', '12345678.123456789012'],
]
const REFUSED = [
  '0.1000000000000000055',
  '1e-13',
  '100000000',
  '1e999',
  '-1',
  '-5e-7',
  `0.${'0'.repeat(200)}`,
  '"5e-7"',
]

const run = (usd: string) => `{"team":"echo","input":"x","budget": {"usd" : ${usd} }}`
const schedule = (usd: string) => `{"rate":"1 day","team":"echo","input":"x","budget":{"tokens":5,"usd":${usd}}}`
const put = async (usd: string) => {
  const { runId } = await api.run({ team: 'echo', input: 'x', budget: { usd: '1' } })
  const headers = { 'content-type': 'application/json' }
  return api.send(`/v1/runs/${runId}/budget`, { method: 'PUT', headers, body: `{"usd":${usd}}` })
}

describe('a budget', () => {
  test.each(TAKEN)('of %s is %s, wherever it is sent', async (written, usd) => {
    expect(await api.post<RunView>('/v1/runs', run(written))).toMatchObject({ status: 202, body: { budget: { usd } } })
    const estimated = await api.post<EstimateView>('/v1/runs?dryRun=true', run(written))
    expect(estimated).toMatchObject({ status: 200, body: { budget: { usd } } })
    expect(await put(written)).toMatchObject({ status: 200, body: { budget: { usd } } })
    const made = await api.post('/v1/schedules', schedule(written))
    expect(made).toMatchObject({ status: 201, body: { budget: { usd, tokens: 5 } } })
  })

  test.each(REFUSED)('of %s is refused, wherever it is sent', async (written) => {
    for (const [answer, path] of [
      [await api.post('/v1/runs', run(written)), '/budget/usd'],
      [await api.post('/v1/runs?dryRun=true', run(written)), '/budget/usd'],
      [await put(written), '/usd'],
      [await api.post('/v1/schedules', schedule(written)), '/budget/usd'],
    ] as const) {
      const { errors } = expectProblem(answer, 400, 'bad_request')
      expect(errors).toEqual([{ path, message: expect.stringContaining('must be an amount in USD of at least 0') }])
    }
  })

  test('a tag that is named like money is text all the same', async () => {
    const answer = await api.post('/v1/runs', '{"team":"echo","input":"x","tags":{"usd":0.5,"budget":1}}')
    expect(expectProblem(answer, 400, 'bad_request').errors!.map((e) => e.path)).toEqual(['/tags/usd', '/tags/budget'])
  })
})

describe('the budget of a schedule in a file', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'subledger-'))
  })
  afterAll(() => rm(folder, { recursive: true }))
  const read = async (...schedules: readonly string[]) => {
    const lines = schedules.map((budget, i) => `  s${i}: { rate: 1 day, team: x, input: y, ${budget} }`)
    await writeFile(join(folder, 'schedules.yaml'), `schedules:\n${lines.join('\n')}\n`)
    return (await readSchedules(folder)).map((s) => s.run.budget)
  }

  test.each([...TAKEN, ['.5', '0.5'], ['+1.', '1']] as const)('of %s is %s', async (written, usd) => {
    expect(await read(`budget: { usd: ${written}, tokens: 5 }`)).toEqual([{ usd, tokens: 5 }])
  })

  test.each([...REFUSED, '0x10', '.inf'])('of %s is refused', async (written) => {
    await expect(read(`budget: { usd: ${written} }`)).rejects.toThrow('budget.usd must be an amount in USD')
  })

  test('is exact behind an alias, and what the alias names stays what it is', async () => {
    const usd = '12345678.123456789012'
    expect(await read(`budget: &b { usd: &a ${usd} }`, 'budget: *b', 'budget: { usd: *a }')).toEqual(
      Array(3).fill({ usd }),
    )
    expect(await read('budget: { tokens: &n 7 }', 'budget: { usd: *n }')).toEqual([{ tokens: 7 }, { usd: '7' }])
  })
})

test.each([
  ['-0', '0'],
  ['-0.50', '-0.5'],
  ['007', '7'],
  ['0e9', '0'],
  ['12.5e1', '125'],
  ['12.5e-3', '0.0125'],
  ['1e41', '1e41'],
  ['1e-999999999', '1e-999999999'],
  ['.', '.'],
  ['e5', 'e5'],
  ['1,5', '1,5'],
])('the number %s is %s as a plain decimal', (text, plain) => {
  expect(plainDecimal(text)).toBe(plain)
})
