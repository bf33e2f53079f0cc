/** The whole product in one process, over real HTTP. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunView } from '../../src/http/views/run.ts'
import { startEmbedded } from '../../src/local/embedded.ts'
import { openReader } from '../../src/local/reader.ts'
import { type Local, startLocal } from '../../src/local.ts'

const TEAM = `
agents:
  root:
    model: m
    instruction: Answer.
models:
  m:
    provider: scripted
    model: m
    cost: { input: 1, output: 2 }
    provider_opts:
      steps:
        - { text: 'heard: {input}', usage: { input: 10, output: 5 } }
`
const SLOW = TEAM.replace("text: 'heard", "delayMs: 600000, text: 'heard")
const json = { 'content-type': 'application/json' }

describe('local mode', () => {
  let folder: string
  let local: Local
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'subledger-'))
    await writeFile(join(folder, 'answer.yaml'), TEAM)
    await writeFile(join(folder, 'slow.yaml'), SLOW)
    local = await startLocal({ port: 0, teamsDir: folder, dataDir: join(folder, 'data'), sweepSeconds: 0.1, env: {} })
  })
  afterAll(async () => {
    await local.stop()
    await rm(folder, { recursive: true })
  })

  const post = (path: string, body: object) =>
    fetch(`${local.url}${path}`, { method: 'POST', headers: json, body: JSON.stringify(body) })
  const start = async (team: string) => (await (await post('/v1/runs', { team, input: 'hello' })).json()) as RunView

  test('a run over HTTP, read back by a client of its own', async () => {
    expect(new URL(local.url).hostname).toBe('127.0.0.1')
    const { runId } = await start('answer')
    await local.invoker.drain()
    const reader = openReader(local.dynamodb, folder)
    const response = await reader.fetch(new Request(`http://localhost/v1/runs/${runId}`))
    expect(await response.json()).toMatchObject({ status: 'completed', output: 'heard: hello', costUsd: '0.00002' })
    reader.close()
    expect(local.scripted.bill).toHaveLength(1)
  })

  test('says at its door that there is no console, and where the API is', async () => {
    const response = await fetch(local.url)
    expect(response.headers.get('content-type')).toContain('text/plain')
    expect(await response.text()).toMatch(/no console.*\/v1/)
  })

  test('a body that is longer than its content-length says is refused, and so is one that never ends', async () => {
    const send = (headers: Record<string, string>, body: string) =>
      new Promise<number>((resolve, reject) => {
        const req = request(`${local.url}/v1/runs`, { method: 'POST', headers: { ...json, ...headers } }, (res) => {
          res.resume()
          resolve(res.statusCode!)
        })
        req.on('error', reject)
        req.end(body)
      })
    const big = JSON.stringify({ team: 'answer', input: 'x'.repeat(1_000_000) })
    expect(await send({}, big)).toBe(413)
    expect(await send({ 'transfer-encoding': 'chunked' }, big)).toBe(413)
  })

  test('a page on another site cannot use it', async () => {
    const response = await fetch(`${local.url}/v1/runs`, { headers: { origin: 'https://evil.example' } })
    expect(response.status).toBe(403)
  })

  test('its data is for one process at a time, and a port for one server', async () => {
    const other = { teamsDir: folder, env: {}, work: false }
    await expect(startEmbedded({ ...other, dataDir: join(folder, 'data') })).rejects.toThrow(
      /in use by another process/,
    )
    const port = Number(new URL(local.url).port)
    await expect(startLocal({ port, teamsDir: folder, dataDir: null, env: {} })).rejects.toThrow(`Port ${port}`)
  })

  test('what was left behind by a dead process is taken over', async () => {
    const dataDir = join(folder, 'dead')
    const first = await startEmbedded({ dataDir, teamsDir: folder, env: {}, work: false })
    await first.stop()
    // a process that is gone, and one whose number is somebody else's now
    for (const pid of [2 ** 22 + 1, process.pid]) {
      await writeFile(join(dataDir, 'owner.json'), JSON.stringify({ pid, port: 1 }))
      const next = await startEmbedded({ dataDir, teamsDir: folder, env: {}, work: false })
      await next.stop()
    }
  })

  test('a run that goes on when the process stops is whole after the next start', async () => {
    const dataDir = join(folder, 'restart')
    const options = { dataDir, teamsDir: folder, env: {}, leaseSeconds: 1, sweepSeconds: 0.1 }
    const first = await startLocal({ ...options, port: 0 })
    const started = await fetch(`${first.url}/v1/runs`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ team: 'slow', input: 'hello' }),
    })
    const { runId } = (await started.json()) as RunView
    await first.stop()
    const second = await startLocal({ ...options, port: 0 })
    await fetch(`${second.url}/v1/runs/${runId}/cancel`, { method: 'POST' })
    let run: RunView
    do {
      run = (await (await fetch(`${second.url}/v1/runs/${runId}`)).json()) as RunView
      await new Promise((resolve) => setTimeout(resolve, 50))
    } while (run.status === 'running')
    expect(run).toMatchObject({ status: 'cancelled', input: 'hello' })
    await second.stop()
  })

  test('a wrong setting is told by its name', async () => {
    const wrong = { dataDir: null, teamsDir: folder, env: { SUBLEDGER_SWEEP_SECONDS: 'soon' }, work: true }
    await expect(startEmbedded(wrong)).rejects.toThrow('SUBLEDGER_SWEEP_SECONDS is "soon"')
  })
})
