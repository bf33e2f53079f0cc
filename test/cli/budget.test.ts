/** Budgets from the command line, with a running API and with one in this process. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'
import { type Local, startLocal } from '../../src/local.ts'
import { say } from './terminal.ts'

/** A call holds USD 0.30. The root's cost USD 0.10, the worker's all of it. */
const model = (name: string, steps: string) => `
  ${name}:
    provider: scripted
    model: ${name}
    max_tokens: 30000
    min_tokens: 30000
    cost: { input: 0, output: 10 }
    provider_opts: { steps: [${steps}] }`
const TEAM = `
agents:
  root: { model: root, instruction: Lead., sub_agents: [worker] }
  worker: { model: worker, instruction: Work. }
models:${model('root', '{ calls: [{ tool: transfer_task, args: { agent: worker, task: "part {i}" }, repeat: 2 }], usage: { input: 1, output: 10000 } }, { text: "all: {results}", usage: { input: 1, output: 10000 } }')}${model('worker', '{ text: "done: {task}", usage: { input: 1, output: 30000 } }')}
`

let folder: string
let local: Local
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subledger-'))
  await writeFile(join(folder, 'crew.yaml'), TEAM)
  local = await startLocal({ port: 0, teamsDir: folder, dataDir: null, sweepSeconds: 0.1, env: {} })
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
  const shown = async (...argv: string[]) =>
    JSON.parse((await sub(...argv, '--json')).out) as { run: RunView; sessions: SessionView[] }

  test('a run that is out of budget says so, and goes on when it is raised, with no call repeated', async () => {
    const ran = await sub('run', 'crew', 'go', '--budget', '0.90')
    expect(ran.code).toBe(1)
    const runId = /run (\w{26})/.exec(ran.out)![1]!
    const url = options()[0] === '--url' ? ` --url ${local.url}` : ''
    const hint = `"subledger budget ${runId} USD${url}" raises it and goes on, "subledger cancel ${runId}${url}" ends it.`
    expect(ran.err).toContain(hint)
    const retried = await sub('retry', runId)
    const raise = `Run ${runId} waits for its budget: raise it with "subledger budget ${runId} USD", and it goes on by itself.`
    expect(retried).toMatchObject({ code: 2, err: raise })
    const { out: got } = await sub('get', runId)
    expect(got).toContain(hint)
    expect(got).toMatch(/^it waits for its budget; figures as of /m)
    expect(got).not.toContain('it goes on')
    expect(got).toMatch(/^budget: \$0\.9, spent \$0\.7, unknown \$0, held \$0, available \$0\.2$/m)
    const { run: poor } = await shown('get', runId)
    expect(poor).toMatchObject({ status: 'waiting', stopReason: 'budget', costUsd: '0.7' })
    expect(poor.budget).toEqual({ usd: '0.9', tokens: null, heldUsd: '0', availableUsd: '0.2', warnedAt: null })

    const { run, sessions } = await shown('budget', runId, '1.00')
    expect(run).toMatchObject({ status: 'completed', round: 2, costUsd: '0.8', input: 'go' })
    expect(run.budget).toEqual({
      usd: '1',
      tokens: null,
      heldUsd: '0',
      availableUsd: '0.2',
      warnedAt: expect.any(String),
    })
    expect(run.usage.calls).toBe(4)
    expect(sessions.filter((s) => s.kind === 'transfer').map((s) => s.status)).toEqual(Array(2).fill('completed'))
  })

  test('one that nobody helps is ended by cancel', async () => {
    const ran = await sub('run', 'crew', 'go', '--budget', '0')
    const runId = /run (\w{26})/.exec(ran.out)![1]!
    expect(await sub('cancel', runId)).toMatchObject({ code: 0, out: `run ${runId}: cancelled` })
  })

  test('wrong budgets are told', async () => {
    const ran = await sub('run', 'crew', 'go', '--budget', 'much')
    expect(ran).toMatchObject({ code: 2, err: expect.stringContaining('must be an amount in USD') })
    const free = await sub('run', 'crew', 'go')
    const runId = /run (\w{26})/.exec(free.out)![1]!
    const late = await sub('budget', runId, '5')
    expect(late).toMatchObject({ code: 2, err: expect.stringContaining('started without a budget') })
  })
})
