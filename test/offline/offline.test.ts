import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LogLine, type OfflineProcess, startOffline } from './offline-process.ts'

interface Usage {
  readonly calls: number
  readonly inputTokens: number
  readonly outputTokens: number
}
interface RunView {
  readonly runId: string
  readonly status: string
  readonly output: string | null
  readonly rootSessionId: string
  readonly usage: Usage
  readonly sessions: { readonly total: number; readonly completed: number; readonly failed: number }
  readonly tags: { readonly [key: string]: string }
}
interface SessionView {
  readonly sessionId: string
  readonly kind: string
  readonly status: string
  readonly error: { readonly code: string; readonly message: string } | null
  readonly usage: Usage
}

const WORKER = 'subledger-offline-worker'
let offline: OfflineProcess
let client: LambdaClient
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'subledger-test-'))
  offline = await startOffline({
    SUBLEDGER_TEAMS: path.resolve('test/offline/teams'),
    SUBLEDGER_LEASE_SECONDS: '3',
    SUBLEDGER_EVENT_AGE_SECONDS: '4',
    SUBLEDGER_SWEEP_SECONDS: '0.5',
    SUBLEDGER_RETRY_SECONDS: '0.2,0.4',
    SUBLEDGER_WORKER_TIMEOUT_SECONDS: '20',
    SUBLEDGER_SCRIPTED_BILL: path.join(folder, 'bill'),
    SUBLEDGER_OFFLINE_HANDLERS: JSON.stringify({ worker: 'test/offline/crashing-worker.handler' }),
    TEST_CRASHES: folder,
  })
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
  client = new LambdaClient({ endpoint: offline.lambda, region: 'local', credentials })
}, 60_000)

afterAll(async () => {
  client?.destroy()
  await offline?.stop()
  await rm(folder, { recursive: true, force: true })
})

async function get<T>(route: string): Promise<T> {
  const answer = await fetch(`${offline.api}${route}`)
  expect([route, answer.status]).toEqual([route, 200])
  return (await answer.json()) as T
}

async function startRun(team: string): Promise<string> {
  const answer = await fetch(`${offline.api}/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ team, input: 'Go' }),
  })
  expect(answer.status).toBe(202)
  return ((await answer.json()) as RunView).runId
}

async function ended(runId: string): Promise<RunView> {
  for (;;) {
    const run = await get<RunView>(`/runs/${runId}`)
    if (run.status !== 'running') return run
    expect(offline.alive()).toBe(true)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

const sessionsOf = async (runId: string) =>
  (await get<{ sessions: SessionView[] }>(`/runs/${runId}/sessions?limit=100`)).sessions

const invocationsOf = (runId: string): readonly LogLine[] =>
  offline.lines().filter((l) => l.message === 'invocation' && l.function === WORKER && l.event?.runId === runId)

/** What the scripted model would bill for these sessions. */
async function bill(sessions: readonly SessionView[]): Promise<Usage> {
  const ids = new Set(sessions.map((s) => s.sessionId))
  const entries = (await readFile(path.join(folder, 'bill'), 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { sessionId: string; usage: Usage })
    .filter((entry) => ids.has(entry.sessionId))
  const sum = (key: 'inputTokens' | 'outputTokens') => entries.reduce((total, e) => total + e.usage[key], 0)
  return { calls: entries.length, inputTokens: sum('inputTokens'), outputTokens: sum('outputTokens') }
}

test('eight workers run, each in an invocation of its own made through the Lambda endpoint', async () => {
  const runId = await startRun('fan-out')
  const run = await ended(runId)
  expect(run).toMatchObject({ status: 'completed', output: 'all done' })
  const sessions = await sessionsOf(runId)
  expect(sessions.map((s) => [s.kind, s.status]).sort()).toEqual([
    ...Array(8).fill(['background', 'completed']),
    ['root', 'completed'],
  ])
  expect(run.usage).toMatchObject({ calls: 11, inputTokens: 4_700, outputTokens: 610 })
  expect(run.usage).toMatchObject(await bill(sessions))

  // the endpoint says which event it delivered under which request id; the worker says under which one it ran
  const delivered = new Map(invocationsOf(runId).map((l) => [l.requestId, l.event?.sessionId]))
  const began = offline.lines().filter((l) => l.message === 'worker began' && delivered.has(l.requestId))
  for (const line of began) expect(delivered.get(line.requestId)).toBe(line.sessionId)
  expect(new Set(began.map((l) => l.requestId)).size).toBe(began.length)
  expect(new Set(began.map((l) => l.sessionId))).toEqual(new Set(sessions.map((s) => s.sessionId)))
}, 60_000)

test('a worker that throws ends neither the process nor the run, and is stored as failed with what it used', async () => {
  const runId = await startRun('faulty')
  const run = await ended(runId)
  expect(run).toMatchObject({ status: 'completed', output: 'the worker failed' })
  const worker = (await sessionsOf(runId)).find((s) => s.kind === 'background')!
  expect(worker).toMatchObject({ status: 'failed', error: { code: expect.any(String) } })
  expect(worker.usage).toMatchObject({ inputTokens: 100, outputTokens: 50 })
  const deliveries = invocationsOf(runId).filter((l) => l.event?.sessionId === worker.sessionId)
  expect(deliveries.some((l) => l.ok === false)).toBe(true)
  expect(offline.alive()).toBe(true)
}, 120_000)

test('workers that die in every way a handler can are tried again, and the run is whole', async () => {
  await writeFile(path.join(folder, 'crash'), '')
  const runId = await startRun('fan-out')
  const run = await ended(runId)
  await rm(path.join(folder, 'crash'))
  expect(run).toMatchObject({ status: 'completed', output: 'all done' })
  const sessions = await sessionsOf(runId)
  expect(sessions).toHaveLength(9)
  expect(run.usage).toMatchObject({ calls: 11, inputTokens: 4_700, outputTokens: 610 })
  for (const { sessionId } of sessions) {
    const deliveries = invocationsOf(runId).filter((l) => l.event?.sessionId === sessionId)
    expect(deliveries).toContainEqual(expect.objectContaining({ delivery: 1, ok: false }))
    expect(deliveries).toContainEqual(expect.objectContaining({ delivery: 2, ok: true }))
  }
}, 120_000)

test("the scheduled function starts a run when its event is posted, and a run's wrong event is the caller's error", async () => {
  const post = (event: object, InvocationType: 'Event' | 'RequestResponse') =>
    client.send(
      new InvokeCommand({
        FunctionName: 'subledger-offline-start-run',
        InvocationType,
        Payload: JSON.stringify(event),
      }),
    )
  const accepted = await post({ team: 'fan-out', input: 'The scheduled run.', tags: { by: 'schedule' } }, 'Event')
  expect(accepted.StatusCode).toBe(202)
  let run: RunView | undefined
  while (!run) run = (await get<{ runs: RunView[] }>('/runs')).runs.find((r) => r.tags.by === 'schedule')
  expect((await ended(run.runId)).status).toBe('completed')

  const before = (await get<{ runs: RunView[] }>('/runs')).runs.length
  const refused = await post({ team: 'nobody', input: 'x', tenant: 'other' }, 'RequestResponse')
  expect(refused.FunctionError).toBe('Unhandled')
  expect(refused.Payload!.transformToString()).toContain('tenant')
  expect((await get<{ runs: RunView[] }>('/runs')).runs).toHaveLength(before)
}, 60_000)

test('an event that is no event of a worker is dropped and not tried again', async () => {
  await client.send(new InvokeCommand({ FunctionName: WORKER, InvocationType: 'Event', Payload: '{"tenant":"#"}' }))
  while (!offline.lines().some((l) => l.message === 'event dropped')) await new Promise((r) => setTimeout(r, 50))
  expect(offline.lines().filter((l) => l.message === 'event dropped')).toHaveLength(1)
}, 30_000)

test('a thread that dies does not take the process along', async () => {
  await client.send(new InvokeCommand({ FunctionName: WORKER, InvocationType: 'Event', Payload: '{"die":"thread"}' }))
  while (offline.alive() && !offline.output().includes('uncaughtException in a handler: SyntaxError'))
    await new Promise((r) => setTimeout(r, 50))
  expect(await get('/health')).toEqual({ status: 'ok' })
}, 30_000)

test('it ends when it is told to, whatever is still going on', async () => {
  await offline.stop()
  await expect(fetch(`${offline.api}/health`)).rejects.toThrow()
  await expect(fetch(offline.lambda)).rejects.toThrow()
})
