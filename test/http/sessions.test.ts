import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { MessageView } from '../../src/http/views/message.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'
import {
  aChild,
  anIntent,
  aRequest,
  aResponse,
  aRun,
  aRunningHeader,
  aToolResult,
  childRef,
  rootRef,
  row,
  T0,
} from '../support/builders.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { type Api, desk, echo, expectProblem, openApi } from './api.ts'

const many = scriptedTeam('many', [
  { agent: agent('worker'), steps: [{ text: 'done', usage: { input: 7, output: 3 } }] },
])
const thinker = scriptedTeam('thinker', [
  {
    agent: agent('root', { toolsets: ['think'] }),
    steps: [
      { calls: [{ tool: 'think', args: { thought: 'one' } }] },
      {
        error: { class: 'overloaded', message: 'busy', times: 1, usage: { input: 4, output: 1 } },
        calls: [{ tool: 'think', args: { thought: 'two' } }],
      },
      { text: 'so be it', reasoning: 'because' },
    ],
  },
])

describe('sessions', () => {
  let api: Api
  beforeEach(() => {
    api = openApi({ teams: [desk, echo, many, thinker] })
  })
  afterEach(() => api.close())

  const sessionsOf = async (runId: string, limit = 100) =>
    (await api.pages<SessionView>(`/v1/runs/${runId}/sessions`, 'sessions', limit)).flat()

  test('a session tells who it is, what it was asked, what it answered and what it spent', async () => {
    const run = await api.run({ team: 'desk', input: 'go' })
    const listed = await sessionsOf(run.runId, 1)
    const transfer = listed.find((s) => s.kind === 'transfer')!
    expect(listed.map((s) => s.kind).sort()).toEqual(['background', 'background', 'root', 'transfer'])
    expect(transfer).toMatchObject({ task: 'first', output: 'worker done', model: 'scripted/script' })
    const { body } = await api.get<SessionView>(`/v1/runs/${run.runId}/sessions/${transfer.sessionId}`)
    expect(transfer.approvals).toBeNull()
    expect(body).toEqual({ ...transfer, expectedOutput: 'a word', approvals: [] })
    expect(body).toMatchObject({
      runId: run.runId,
      parentSessionId: run.rootSessionId,
      ordinal: 0,
      agent: 'worker',
      status: 'completed',
      stopReason: 'end_turn',
      error: null,
      attempt: 1,
      depth: 1,
      usage: { calls: 1, inputTokens: 100, outputTokens: 50 },
      costUsd: '0.00105',
      costComplete: true,
      subtree: { usage: { calls: 1, inputTokens: 100, outputTokens: 50 }, costUsd: '0.00105', sessions: 1 },
    })
    const { body: root } = await api.get<SessionView>(`/v1/runs/${run.runId}/sessions/${run.rootSessionId}`)
    expect(root).toMatchObject({ parentSessionId: null, kind: 'root', depth: 0, task: 'go', output: 'all done' })
    expect(root.subtree).toEqual({ usage: run.usage, costUsd: run.costUsd, costComplete: true, sessions: 4 })
    expect(root.usage.calls).toBe(5)
  })

  test('groups are hidden: tasks stand under the root, and pages have no gap where a group was', async () => {
    const tasks = Array.from({ length: 130 }, (_, i) => ({ agent: 'worker', task: `task ${i}` }))
    const run = await api.run({ team: 'many', tasks })
    expect(run).toMatchObject({ status: 'completed', tasks: 130, agent: null, input: null, output: null })
    expect(run.sessions).toMatchObject({ total: 131, completed: 131 })
    const { items } = await api.ctx.store.listHeaders({ tenant: 'local', runId: run.runId }, {})
    const groups = items.filter((h) => h.kind === 'group')
    expect(groups.length).toBeGreaterThan(1)

    const pages = await api.pages<SessionView>(`/v1/runs/${run.runId}/sessions`, 'sessions', 7)
    expect(pages.slice(0, -1).map((p) => p.length)).toEqual(pages.slice(0, -1).map(() => 7))
    const all = pages.flat()
    const root = all.find((s) => s.kind === 'root')!
    const rest = all.filter((s) => s.kind === 'task')
    expect(all).toHaveLength(131)
    expect(rest.every((s) => s.parentSessionId === root.sessionId && s.depth === 1)).toBe(true)
    expect(rest.map((s) => s.ordinal).sort((a, b) => a - b)).toEqual(tasks.map((_, i) => i))
    expect(root).toMatchObject({ agent: null, model: null, subtree: { sessions: 131, usage: { calls: 130 } } })
    for (const s of rest.slice(0, 3)) {
      const { body } = await api.get<SessionView>(`/v1/runs/${run.runId}/sessions/${s.sessionId}`)
      expect(body.task).toBe(`task ${s.ordinal}`)
    }
    expectProblem(await api.get(`/v1/runs/${run.runId}/sessions/${groups[0]!.sessionId}`), 404, 'unknown_session')
    const { body } = await api.get<{ messages: unknown[] }>(`/v1/runs/${run.runId}/sessions/${root.sessionId}/messages`)
    expect(body).toEqual({ messages: [], next: null })
  })

  test("what a session's children spend is in its subtree before they have settled", async () => {
    const team = await api.ctx.teams.get('desk')
    await api.ctx.store.putDefinition(aRun(), aRun().definition, team)
    await api.ctx.store.createRun(aRun())
    await api.ctx.store.putHeader(aRunningHeader({ next: 2, pending: new Set([0, 1]), rows: [row(1)] }))
    await api.ctx.store.putHeader(aChild(0, { status: 'running', lease: T0 + 90_000, rows: [row(3)] }))
    await api.ctx.store.putHeader(aChild(1))
    const path = `/v1/runs/${aRun().runId}/sessions`
    const { body } = await api.get<SessionView>(`${path}/${rootRef().sessionId}`)
    expect(body.usage.calls).toBe(1)
    expect(body.subtree).toMatchObject({ usage: { calls: 4, inputTokens: 400 }, costUsd: '0.0018', sessions: 3 })
    expect(body.asOf).toBe(new Date(T0).toISOString())
    const listed = (await api.pages<SessionView>(path, 'sessions', 1)).flat()
    expect(listed.find((s) => s.kind === 'root')!.subtree).toEqual(body.subtree)
  })

  test('a session of another run is not there', async () => {
    const one = await api.run({ team: 'echo', input: 'go' })
    const two = await api.run({ team: 'echo', input: 'go' })
    for (const id of [two.rootSessionId, 'x', `${one.rootSessionId}0`, one.rootSessionId.toUpperCase()])
      expectProblem(await api.get(`/v1/runs/${one.runId}/sessions/${id}`), 404, 'unknown_session')
  })

  test('a cursor is good for its own list and for no other', async () => {
    const one = await api.run({ team: 'desk', input: 'go' })
    const two = await api.run({ team: 'desk', input: 'go' })
    const first = await api.get<{ next: string }>(`/v1/runs/${one.runId}/sessions?limit=1`)
    const cursor = encodeURIComponent(first.body.next)
    const use = (path: string) => api.get(`${path}cursor=${cursor}`)
    expect((await use(`/v1/runs/${one.runId}/sessions?`)).status).toBe(200)
    for (const path of [
      `/v1/runs/${two.runId}/sessions?`,
      `/v1/runs/${one.runId}/calls?`,
      `/v1/runs/${one.runId}/sessions/${one.rootSessionId}/messages?`,
      '/v1/runs?',
    ])
      expectProblem(await use(path), 400, 'bad_cursor')
    const runs = await api.get<{ next: string }>('/v1/runs?limit=1&team=desk')
    const filtered = encodeURIComponent(runs.body.next)
    expect((await api.get(`/v1/runs?team=desk&cursor=${filtered}`)).status).toBe(200)
    expectProblem(await api.get(`/v1/runs?cursor=${filtered}`), 400, 'bad_cursor')
    expectProblem(await api.get(`/v1/runs?team=desk&cursor=${filtered.slice(0, -2)}`), 400, 'bad_cursor')
  })

  describe('messages', () => {
    const messagesOf = async (run: RunView, sessionId = run.rootSessionId, limit = 100) =>
      (await api.pages<MessageView>(`/v1/runs/${run.runId}/sessions/${sessionId}/messages`, 'messages', limit)).flat()
    const brief = (list: readonly MessageView[]) =>
      list.map((m) => [m.turn, m.role, m.toolCalls?.map((c) => c.name) ?? m.toolName ?? m.content])

    test('a transcript is what the model read and wrote, in order', async () => {
      const run = await api.run({ team: 'desk', input: 'go' })
      const list = await messagesOf(run)
      expect(brief(list).slice(1)).toEqual([
        [0, 'user', 'go'],
        [0, 'assistant', ['transfer_task']],
        [0, 'tool', 'transfer_task'],
        [1, 'assistant', ['think']],
        [1, 'tool', 'think'],
        [2, 'assistant', ['run_background_agent', 'run_background_agent']],
        [2, 'tool', 'run_background_agent'],
        [2, 'tool', 'run_background_agent'],
        [3, 'assistant', ['wait_background_agents']],
        [3, 'tool', 'wait_background_agents'],
        [4, 'assistant', 'all done'],
      ])
      expect(list[0]).toMatchObject({ turn: 0, role: 'system' })
      expect(list[0]!.content).toMatch(/^You are root\./)
      expect(list[2]!.toolCalls![0]!.arguments).toBe('{"agent":"worker","task":"first","expected_output":"a word"}')
      expect(list[3]).toMatchObject({ toolCallId: list[2]!.toolCalls![0]!.id })
      expect(list[3]!.content).toContain('worker done')
      const times = list.map((m) => m.createdAt)
      expect(times).toEqual(times.toSorted())
    })

    test('pages of any size make up the same transcript', async () => {
      const run = await api.run({ team: 'desk', input: 'go' })
      const whole = await messagesOf(run)
      for (const limit of [1, 2, 3, 5, 11, 12]) expect(await messagesOf(run, undefined, limit)).toEqual(whole)
    })

    test("a worker's task is its first message, though it is stored with its parent's answer", async () => {
      const run = await api.run({ team: 'desk', input: 'go' })
      const transfer = (await sessionsOf(run.runId)).find((s) => s.kind === 'transfer')!
      expect(brief(await messagesOf(run, transfer.sessionId))).toEqual([
        [0, 'system', 'You are worker.'],
        [0, 'user', 'first\n\nExpected output: a word'],
        [0, 'assistant', 'worker done'],
      ])
    })

    test('a further round goes on in the same transcript', async () => {
      const run = await api.run({ team: 'echo', input: 'one' })
      await api.post(`/v1/runs/${run.runId}/input`, { input: 'two' })
      await api.invoker.drain()
      expect(brief(await messagesOf(run)).slice(1)).toEqual([
        [0, 'user', 'one'],
        [0, 'assistant', 'you said one'],
        [1, 'user', 'two'],
        [1, 'assistant', 'you said two'],
      ])
    })

    test('a failed call leaves no trace, and reasoning is a part of its answer', async () => {
      const run = await api.run({ team: 'thinker', input: 'go' })
      expect(run.waste.calls).toBe(1)
      const list = await messagesOf(run)
      expect(brief(list.slice(1, -1))).toEqual([
        [0, 'user', 'go'],
        [0, 'assistant', ['think']],
        [0, 'tool', 'think'],
        [2, 'assistant', ['think']],
        [2, 'tool', 'think'],
      ])
      expect(list.at(-1)).toMatchObject({
        turn: 3,
        content: [
          { type: 'reasoning', text: 'because' },
          { type: 'text', text: 'so be it' },
        ],
      })
    })

    test('results that are there while others are waited for are shown once, before and after', async () => {
      const { store } = api.ctx
      const ref = childRef(rootRef(), 0)
      await store.putDefinition(aRun(), aRun().definition, await api.ctx.teams.get('desk'))
      await store.createRun(aRun())
      await store.putHeader(aChild(0, { status: 'running', lease: T0 + 90_000 }))
      const toolCalls = ['a', 'b'].map((id) => ({ id, name: `tool_${id}`, arguments: '{}' }))
      await store.putRequest(ref, aRequest(0), 'd')
      await store.putResponse(ref, aResponse(0, { message: { role: 'assistant', content: '', toolCalls } }), 'd')
      await store.putToolResult(ref, aToolResult(0, 1, { content: 'late', isError: true, at: T0 + 9_000 }), 'd')
      const path = `/v1/runs/${aRun().runId}/sessions/${ref.sessionId}/messages`
      const read = async (limit: number) => (await api.pages<MessageView>(path, 'messages', limit)).flat()
      expect((await read(100)).slice(3)).toEqual([
        {
          turn: 0,
          role: 'tool',
          content: 'late',
          toolCallId: 'b',
          toolName: 'tool_b',
          isError: true,
          createdAt: new Date(T0 + 9_000).toISOString(),
        },
      ])
      const messages = toolCalls.map((c) => ({
        role: 'tool' as const,
        toolCallId: c.id,
        toolName: c.name,
        content: c.id,
      }))
      await store.putRequest(ref, aRequest(1, { messages, intent: anIntent(), at: T0 + 20_000 }), 'd')
      for (const limit of [1, 3, 4, 100]) {
        const after = (await read(limit)).slice(3)
        expect(after.map((m) => [m.turn, m.content, m.createdAt])).toEqual([
          [0, 'a', new Date(T0 + 20_000).toISOString()],
          [0, 'b', new Date(T0 + 9_000).toISOString()],
        ])
      }
    })

    test('a transcript that takes several reads has no seam', async () => {
      const { store } = api.ctx
      const ref = childRef(rootRef(), 0)
      await store.putDefinition(aRun(), aRun().definition, await api.ctx.teams.get('desk'))
      await store.createRun(aRun())
      await store.putHeader(aChild(0, { status: 'running', lease: T0 + 90_000 }))
      for (let n = 0; n < 95; n++) {
        const call = { id: `c${n}`, name: 'tool', arguments: '{}' }
        const result = { role: 'tool' as const, toolCallId: `c${n - 1}`, toolName: 'tool', content: `result ${n - 1}` }
        if (n > 0) await store.putRequest(ref, aRequest(n, { messages: [result] }), 'd')
        else await store.putRequest(ref, aRequest(0), 'd')
        await store.putResponse(
          ref,
          aResponse(n, { message: { role: 'assistant', content: `answer ${n}`, toolCalls: [call] } }),
          'd',
        )
      }
      await store.putToolResult(ref, aToolResult(94, 0, { content: 'result 94' }), 'd')
      const path = `/v1/runs/${aRun().runId}/sessions/${ref.sessionId}/messages`
      const expected = Array.from({ length: 95 }, (_, n) => [
        [n, 'assistant', `answer ${n}`],
        [n, 'tool', `result ${n}`],
      ]).flat()
      for (const limit of [100, 17]) {
        const list = (await api.pages<MessageView>(path, 'messages', limit)).flat()
        expect(list.slice(2).map((m) => [m.turn, m.role, m.content])).toEqual(expected)
      }
    })

    test('a session that nobody has driven yet shows what it will be asked', async () => {
      api.lose = () => true
      const { body: run } = await api.post<RunView>('/v1/runs', { team: 'echo', input: 'go' })
      expect(brief(await messagesOf(run))).toEqual([
        [0, 'system', 'You are root.'],
        [0, 'user', 'go'],
      ])
    })
  })
})
