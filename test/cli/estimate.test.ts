/** `estimate` and `run --dry-run`: on a running API and in this process. */
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EstimateView } from '../../src/http/views/estimate.ts'
import { type Local, startLocal } from '../../src/local.ts'
import { say } from './terminal.ts'

const TEAM = `
agents:
  root: { model: m, instruction: Answer., max_iterations: 1 }
  other: { model: free, instruction: Answer. }
models:
  m:
    provider: scripted
    max_tokens: 1000
    cost: { input: 1, output: 2 }
    provider_opts: { steps: [{ text: done }] }
  free:
    provider: scripted
    model: free
    provider_opts: { steps: [{ text: done }] }
`

let folder: string
let local: Local
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subledger-'))
  await writeFile(join(folder, 'team.yaml'), TEAM)
  await writeFile(
    join(folder, 'tasks.json'),
    JSON.stringify([1, 2, 3].map((n) => ({ agent: 'root', task: `part ${n}` }))),
  )
  local = await startLocal({ port: 0, teamsDir: folder, dataDir: null, env: {} })
})
afterAll(async () => {
  await local.stop()
  await rm(folder, { recursive: true })
})

const WAYS: readonly [way: string, options: () => string[]][] = [
  ['over HTTP', () => ['--url', local.url]],
  ['embedded', () => ['--teams', folder, '--data', join(folder, 'data')]],
]

describe.each(WAYS)('%s', (_, options) => {
  const sub = (...argv: string[]) => say([...argv, ...options()])

  test('the least and the most are told, with how they came about', async () => {
    const { code, out, err } = await sub('estimate', 'team', 'hello, how are you all?')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    // "Answer." and the input are 30 bytes: one token, and one of output
    expect(out).toMatch(/^at least +\$0\.000003 +2 tokens +1 call$/m)
    expect(out).toMatch(/^at most +\$0\.0\d+ +\d,\d{3} tokens$/m)
    expect(out).toMatch(/^root +scripted\/scripted +\$1\/M +\$2\/M +team file +1 +\$0\.002\d+ +1,000$/m)
    expect(out).toContain('- root (scripted/scripted): a session answers once, with up to 1,000 tokens')
    expect(existsSync(join(folder, 'data'))).toBe(false)
  })

  test('run --dry-run tells the same as estimate', async () => {
    const json = async (...argv: string[]) => {
      const { at: _, ...rest } = JSON.parse((await sub(...argv, '--json')).out) as EstimateView
      return rest
    }
    const estimate = await json('estimate', 'team', '--tasks', join(folder, 'tasks.json'), '--budget', '0.5')
    expect(estimate).toMatchObject({ tasks: 3, agent: null, budget: { usd: '0.5', firstCall: 'whole' } })
    expect(await json('run', 'team', '--tasks', join(folder, 'tasks.json'), '--budget', '0.5', '--dry-run')).toEqual(
      estimate,
    )
    expect((await sub('estimate', 'team', 'go', '--budget', '0.001')).out).toContain(
      'the budget of $0.001 does not cover a first call, which holds up to $0.00',
    )
  })

  test('a budget is taken to its last digit', async () => {
    const { out } = await sub('estimate', 'team', 'go', '--budget', '12345678.123456789012', '--json')
    expect(JSON.parse(out)).toMatchObject({ budget: { usd: '12345678.123456789012' } })
    const { code, err } = await sub('estimate', 'team', 'go', '--budget', '0.1000000000000000055')
    expect([code, err]).toEqual([2, expect.stringContaining('with at most twelve decimals')])
  })

  test('a model without a price is named, and its cost is not known', async () => {
    const { out } = await sub('estimate', 'team', 'go', '--agent', 'other')
    expect(out).toContain('no price is known of: scripted/free')
    expect(out).toMatch(/^at least +not known +/m)
    expect(out).toMatch(/^at most +not known +/m)
    const priced = await sub('estimate', 'team', 'go', '--agent', 'other', '--budget', '1')
    expect(priced).toMatchObject({ code: 2, err: expect.stringContaining('A budget in USD needs a price') })
  })
})
