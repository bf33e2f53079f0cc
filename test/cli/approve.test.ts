/** Approvals from the command line, with a running API and with one in this process. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Local, startLocal } from '../../src/local.ts'
import { say } from './terminal.ts'

const TEAM = `
permissions: { ask: [transfer_task] }
agents:
  root: { model: root, instruction: Lead., sub_agents: [worker] }
  worker: { model: worker, instruction: Work. }
models:
  root:
    provider: scripted
    model: root
    provider_opts:
      steps:
        - { calls: [{ tool: transfer_task, args: { agent: worker, task: "part {i}" }, repeat: 2 }] }
        - { text: "all: {results}" }
  worker:
    provider: scripted
    model: worker
    provider_opts: { steps: [{ text: "done: {task}" }] }
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
  const approvals = (text: string) =>
    [...text.matchAll(/subledger approve (\S{26}) (\S+) /g)].map((m) => [m[1]!, m[2]!] as const)

  test('a run that waits says for what, and goes on when each call is approved or denied', async () => {
    const ran = await sub('run', 'crew', 'go')
    expect(ran.code).toBe(1)
    expect(ran.out).toMatch(/^root +root +waiting \(approval\)/m)
    expect(ran.err).toContain('The run waits for approval.')
    expect(ran.err).toContain('transfer_task {"agent":"worker","task":"part 1"}')
    const [[runId, first], [, second]] = approvals(ran.err) as [readonly [string, string], readonly [string, string]]

    for (const command of ['get', 'sessions']) {
      const { out } = await sub(command, runId)
      expect(approvals(out)).toEqual(approvals(ran.err))
      expect(out).toContain('The run waits for approval.')
    }
    expect((await sub('get', runId)).out).toMatch(/^it waits for approval; figures as of /m)
    const url = options()[0] === '--url' ? ` --url ${local.url} ` : '    transfer_task'
    expect(ran.err).toContain(`subledger approve ${runId} ${first}${url}`)

    const half = await sub('approve', runId, first)
    expect(half.code).toBe(1)
    expect(approvals(half.err)).toEqual([[runId, second]])
    const whole = await sub('approve', runId, second, '--deny', '--note', 'one is enough')
    expect(whole.code).toBe(0)
    expect(whole.out).toContain('This call was not approved: one is enough')

    expect(await sub('approve', runId, second)).toMatchObject({ code: 2, err: 'It was decided already: deny.' })
    expect(await sub('approve', runId, 'nothing')).toMatchObject({
      code: 2,
      err: expect.stringContaining('There is no approval "nothing"'),
    })
  })

  test('run --watch prints what is asked with the command that approves it, and stops as run does', async () => {
    const { code, out, err } = await sub('run', 'crew', 'go', '--watch')
    expect(code).toBe(1)
    const asked = [...err.matchAll(/root +asks for approval of transfer_task: subledger approve (\S{26}) (\S+)$/gm)]
    expect(asked).toHaveLength(2)
    expect(err).toContain('The run waits for approval.')
    expect(approvals(err.slice(err.indexOf('The run waits')))).toEqual(asked.map((m) => [m[1], m[2]]))
    expect(out).toMatch(/^root +root +waiting \(approval\)/m)
    const [runId, first, second] = [asked[0]![1]!, asked[0]![2]!, asked[1]![2]!]
    await sub('approve', runId, first)
    await sub('approve', runId, second, '--deny', '--note', 'one is enough')
    const watched = await sub('watch', runId)
    expect(watched).toMatchObject({ code: 0, out: expect.stringContaining(`is approved: ${first}`) })
    expect(watched.out).toContain(`is denied: ${second} (one is enough)`)
  })

  test('watch does so too, or goes on where somebody else can approve', async () => {
    const { err } = await sub('run', 'crew', 'go')
    const [[runId]] = approvals(err) as [readonly [string, string]]
    const embedded = options()[0] !== '--url'
    const watched = sub('watch', runId)
    if (embedded) {
      expect(await watched).toMatchObject({ code: 1, err: expect.stringContaining('The run waits for approval.') })
      return
    }
    for (const [, id] of approvals(err)) await sub('approve', runId, id)
    const { code, out } = await watched
    expect(code).toBe(0)
    expect(out.match(/is approved: /g)).toHaveLength(2)
  })

  test('one that nobody decides about is ended by cancel', async () => {
    const { err } = await sub('run', 'crew', 'go')
    const [[runId]] = approvals(err) as [readonly [string, string]]
    expect(await sub('cancel', runId)).toMatchObject({ code: 0, out: `run ${runId}: cancelled` })
  })
})
