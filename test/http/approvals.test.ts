/** Approvals over the API: who is asked, who decides, and what is refused. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createApp } from '../../src/http/app.ts'
import type { ApprovalView } from '../../src/http/approvals.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { type Api, expectProblem, openApi } from './api.ts'

const args = { agent: 'worker', task: 'send "it" to everybody' }
const asking = {
  ...scriptedTeam('asking', [
    {
      agent: agent('root', { subAgents: ['worker'], toolsets: ['think'] }),
      steps: [
        {
          calls: [
            { tool: 'transfer_task', args },
            { tool: 'think', args: { thought: 'hm' } },
          ],
        },
        { text: 'all: {results}' },
      ],
    },
    { agent: agent('worker'), steps: [{ text: 'sent' }] },
  ]),
  permissions: { ask: ['transfer_task'] },
}

let api: Api
let run: RunView
let one: ApprovalView
beforeEach(async () => {
  api = openApi({ teams: [asking], app: { tenantOf: () => ({ tenant: 'local', name: 'user-7' }) } })
  run = await api.run({ team: 'asking', input: 'go' })
  one = (await list()).approvals[0]!
})
afterEach(() => api.close())

interface Page {
  readonly approvals: readonly ApprovalView[]
  readonly next: string | null
}
const list = async (query = '') => (await api.get<Page>(`/v1/runs/${run.runId}/approvals${query}`)).body
const session = async () => (await api.get<SessionView>(`/v1/runs/${run.runId}/sessions/${run.rootSessionId}`)).body
const decide = <T = RunView>(body: unknown, id = one.approvalId, headers = {}) =>
  api.post<T>(`/v1/runs/${run.runId}/approvals/${id}`, body, headers)

describe('a tool call that waits for approval', () => {
  test('is told by its session and by its run', async () => {
    expect(run).toMatchObject({ status: 'running', sessions: { total: 1, waiting: 1 } })
    expect(one).toEqual({
      approvalId: expect.any(String),
      sessionId: run.rootSessionId,
      tool: 'transfer_task',
      arguments: JSON.stringify(args),
      askedAt: expect.any(String),
      decision: null,
    })
    expect(await session()).toMatchObject({ status: 'waiting', stopReason: 'approval', approvals: [one] })
    expect(await list()).toEqual({ approvals: [one], next: null })
  })

  test('runs when it is approved: 202 and the run', async () => {
    const answer = await decide({ decision: 'approve', note: 'fine' })
    expect([answer.status, answer.headers.get('location')]).toEqual([202, `/v1/runs/${run.runId}`])
    expect(answer.body).toMatchObject({ runId: run.runId, status: 'running', input: 'go' })
    await api.invoker.drain()
    expect((await api.get<RunView>(`/v1/runs/${run.runId}`)).body).toMatchObject({
      status: 'completed',
      output: 'all: sent\nNoted.',
      sessions: { total: 2 },
    })
    const decision = { decision: 'approve', by: 'user-7', at: expect.any(String), note: 'fine' }
    expect(await session()).toMatchObject({ stopReason: 'end_turn', approvals: [{ ...one, decision }] })
  })

  test('has an error as its result when it is denied', async () => {
    await decide({ decision: 'deny', note: 'not everybody' })
    await api.invoker.drain()
    expect((await api.get<RunView>(`/v1/runs/${run.runId}`)).body).toMatchObject({
      status: 'completed',
      sessions: { total: 1 },
    })
    const { messages } = (
      await api.get<{ messages: { toolName?: string; content: unknown; isError?: boolean }[] }>(
        `/v1/runs/${run.runId}/sessions/${run.rootSessionId}/messages`,
      )
    ).body
    expect(messages.filter((m) => m.isError)).toMatchObject([
      { toolName: 'transfer_task', content: 'This call was not approved: not everybody' },
    ])
  })

  test('is decided once: the same again is the same answer, another one is 409', async () => {
    expect((await decide({ decision: 'approve' })).status).toBe(202)
    expect((await decide({ decision: 'approve' })).status).toBe(202)
    expectProblem(await decide({ decision: 'deny' }), 409, 'approval_closed')
    await api.invoker.drain()
    expect((await decide({ decision: 'approve' })).status).toBe(202)
  })

  test('with one Idempotency-Key it gets one answer, and another decision is another body', async () => {
    const key = { 'idempotency-key': 'k' }
    const first = await decide({ decision: 'deny' }, one.approvalId, key)
    await api.invoker.drain()
    expect((await decide({ decision: 'deny' }, one.approvalId, key)).body).toEqual(first.body)
    expectProblem(await decide({ decision: 'approve' }, one.approvalId, key), 422, 'idempotency_mismatch')
  })

  test('cannot be decided any more when its run was cancelled', async () => {
    await api.post(`/v1/runs/${run.runId}/cancel`, {})
    await api.invoker.drain()
    expectProblem(await decide({ decision: 'approve' }), 409, 'approval_closed')
    expect((await session()).stopReason).toBe('cancelled')
  })
})

describe('what is refused', () => {
  test.each<[string, unknown, string]>([
    ['no decision', {}, '/decision'],
    ['another decision', { decision: 'maybe' }, '/decision'],
    ['a note that is no text', { decision: 'deny', note: 7 }, '/note'],
    ['a note that is too long', { decision: 'deny', note: 'x'.repeat(1_001) }, '/note'],
    ['a field that is not known', { decision: 'deny', by: 'me' }, '/by'],
  ])('%s', async (_, body, path) => {
    const problem = expectProblem(await decide(body), 400, 'bad_request')
    expect(problem.errors!.map((e) => e.path)).toEqual([path])
    expect((await list()).approvals[0]!.decision).toBeNull()
  })

  test.each(['x', '0', 'ROOT.0.1', 'ROOT.9.0', 'ROOT.0.0x', '%00'])('an id that nobody was given: %s', async (id) => {
    const named = id.replace('ROOT', run.rootSessionId)
    expectProblem(await decide({ decision: 'approve' }, named), 404, 'unknown_approval')
  })

  test('an approval of another run, and one of another tenant', async () => {
    const other = await api.run({ team: 'asking', input: 'go' })
    const path = `/v1/runs/${other.runId}/approvals/${one.approvalId}`
    expectProblem(await api.post(path, { decision: 'approve' }), 404, 'unknown_approval')
    const foreign = createApp(api.ctx, { tenantOf: () => 'foreign' })
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"decision":"approve"}',
    }
    expect((await foreign.request(`/v1/runs/${run.runId}/approvals/${one.approvalId}`, init)).status).toBe(404)
    expect((await foreign.request(`/v1/runs/${run.runId}/approvals`)).status).toBe(404)
    expect((await list()).approvals[0]!.decision).toBeNull()
  })
})

/** A team that asks so often about thoughts of so much text. */
const asksMuch = (times: number, text: string) => ({
  ...scriptedTeam('many', [
    {
      agent: agent('root', { toolsets: ['think'] }),
      steps: [
        { calls: Array.from({ length: times }, (_, i) => ({ tool: 'think', args: { thought: `${i}${text}` } })) },
        { text: 'end' },
      ],
      model: { maxTokens: 4_000_000 },
    },
  ]),
  permissions: { ask: ['*'] },
})

test.each([
  ['quotes', '"'],
  ['control characters', '\u0001'],
  ['backslashes', '\\'],
])('what a session has asked stays within an answer of Lambda, also with arguments full of %s', async (_what, c) => {
  await api.close()
  api = openApi({ teams: [asksMuch(100, c.repeat(9_000))] })
  run = await api.run({ team: 'many', input: 'go' })
  const { approvals } = await session()
  expect(approvals!.length).toBeGreaterThan(5)
  // as a string in JSON, which is how Lambda sends it
  expect(JSON.stringify(JSON.stringify(approvals)).length).toBeLessThan(1_100_000)
})

test('a run lists its approvals page by page, each once, and pages of large arguments end early', async () => {
  const many = asksMuch(30, 'x'.repeat(300_000))
  await api.close()
  api = openApi({ teams: [many] })
  run = await api.run({ team: 'many', input: 'go' })
  const pages = await api.pages<ApprovalView>(`/v1/runs/${run.runId}/approvals`, 'approvals', 100)
  expect(pages.flat().map((a) => JSON.parse(a.arguments).thought.replace(/x+/, ''))).toEqual(
    Array.from({ length: 30 }, (_, i) => `${i}`),
  )
  for (const page of pages) expect(JSON.stringify(page).length).toBeLessThan(5_000_000)
  expect(pages.length).toBeGreaterThan(1)
  const { approvals } = await session()
  expect(JSON.stringify(approvals).length).toBeLessThan(2_000_000)
  expect(approvals!.at(-1)!.approvalId).toBe(pages.flat().at(-1)!.approvalId)
})
