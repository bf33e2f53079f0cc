/** What commands print with `--json`: the shapes of the API, over HTTP and in this process, and nothing that a terminal obeys. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as shapes from '../../src/http/shapes.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'
import { type Local, startLocal } from '../../src/local.ts'
import { say } from './terminal.ts'

const TEAM = `agents:
  root: { model: root, instruction: Lead., sub_agents: [worker] }
  worker: { model: worker, instruction: Work., description: works }
models:
  root:
    provider: scripted
    model: root
    cost: { input: 1, output: 2 }
    provider_opts: { steps: [{ calls: [{ tool: transfer_task, args: { agent: worker, task: part one } }] }, { text: "{input}" }] }
  worker: { provider: scripted, model: worker, cost: { input: 1, output: 2 }, provider_opts: { steps: [{ text: done }] } }
`

let folder: string
let local: Local
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subledger-'))
  await writeFile(join(folder, 'lead.yaml'), TEAM)
  local = await startLocal({ port: 0, teamsDir: folder, dataDir: null, sweepSeconds: 0.1, env: {} })
})
afterAll(async () => {
  await local.stop()
  await rm(folder, { recursive: true })
})

describe.each<[string, () => string[]]>([
  ['over HTTP', () => ['--url', local.url]],
  ['embedded', () => ['--teams', folder, '--data', join(folder, 'data')]],
])('%s', (_, options) => {
  const sub = (...argv: string[]) => say([...argv, ...options()])
  const json = async <T>(...argv: string[]): Promise<T> => JSON.parse((await sub(...argv, '--json')).out) as T

  test('what is printed as JSON has the shape that the API answers with', async () => {
    const ran = await json<{ run: RunView; sessions: SessionView[] }>('run', 'lead', 'go')
    const { runId, rootSessionId: root } = ran.run
    expect(ran).toEqual(await json('get', runId))
    shapes.run.parse(ran.run)
    expect(shapes.sessions.parse(await json('sessions', runId)).sessions).toEqual(ran.sessions)
    expect(shapes.messages.parse(await json('messages', runId, root)).messages.length).toBeGreaterThan(2)
    expect(shapes.calls.parse(await json('calls', runId)).calls).toHaveLength(3)
    const { runs, next } = shapes.runs.parse(await json('list'))
    expect([runs.map((r) => r.runId), next]).toEqual([expect.arrayContaining([runId]), null])
    expect(shapes.teams.parse(await json('teams')).teams.length).toBe(1)
    shapes.run.parse(await json('cancel', runId))
  })

  test('what a model says cannot take hold of the terminal that JSON is printed to', async () => {
    const input = 'go \u009b31m \u007f \u2028 \u200f'
    const ran = await sub('run', 'lead', input, '--json')
    const { run } = JSON.parse(ran.out) as { run: RunView }
    expect(run.output).toContain('go \u009b31m \u007f \u2028 \u200f')
    const { runId } = run
    const said = [ran]
    for (const argv of [
      ['get'],
      ['sessions'],
      ['messages', run.rootSessionId],
      ['calls'],
      ['watch'],
      ['usage'],
      ['audit'],
    ])
      said.push(await sub(argv[0]!, runId, ...argv.slice(1), '--json'))
    said.push(await sub('list', '--json'), await sub('estimate', 'lead', input, '--json'), await sub('usage', '--json'))
    for (const { out } of said)
      expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/u)
  })
})
