/** A provider that bills more than was set aside is booked in full, and shown. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CallView } from '../../src/http/views/call.ts'
import { type Local, startLocal } from '../../src/local.ts'
import { say } from './terminal.ts'

/** The prompt has less than 2,000 bytes, so its hold is below USD 0.002 and the output's USD 0.01; bills are of 5,000 tokens. */
const TEAM = (input: string) => `
agents:
  root: { model: m, instruction: Work. }
models:
  m:
    provider: scripted
    max_tokens: 1000
    cost: { input: ${input}, output: 10, cache_read: 0, cache_write: 0 }
    provider_opts:
      steps:
        - { calls: [{ tool: nothing }], usage: { input: 5000, output: 1000 } }
        - { text: done, usage: { input: 10, output: 10 } }
`

let folder: string
let local: Local
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subledger-'))
  await writeFile(join(folder, 'dear.yaml'), TEAM('1'))
  await writeFile(join(folder, 'free.yaml'), TEAM('0'))
  local = await startLocal({ port: 0, teamsDir: folder, dataDir: null, sweepSeconds: 0.1, env: {} })
})
afterAll(async () => {
  await local.stop()
  await rm(folder, { recursive: true })
})

async function callsOf(team: string) {
  const sub = (...argv: string[]) => say([...argv, '--url', local.url])
  const runId = /run (\w{26})/.exec((await sub('run', team, 'go')).out)![1]!
  const { calls } = JSON.parse((await sub('calls', runId, '--json')).out) as { calls: CallView[] }
  return { calls, printed: (await sub('calls', runId)).out.split('\n') }
}

test('a call that cost more than its hold says by how much, and is marked in the list', async () => {
  const { calls, printed } = await callsOf('dear')
  expect(calls.map((c) => c.costUsd)).toEqual(['0.015', '0.00011'])
  const over = calls[0]!.overHold!
  expect(over).toMatch(/^0\.00[34]\d*$/)
  expect(calls[1]!.overHold).toBeNull()
  expect(printed.filter((line) => line.includes('!'))).toEqual([expect.stringContaining(`! $${over} more than held`)])
})

test('a call that only used more tokens than were held says that', async () => {
  const { calls, printed } = await callsOf('free')
  expect(calls.map((c) => c.overHold)).toEqual(['0', null])
  expect(printed.filter((line) => line.includes('!'))).toEqual([expect.stringContaining('! more tokens than held')])
})
