/** What a stream tells of approvals and of budgets. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { changeBudget } from '../../src/engine/change-budget.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { bySession, parseEvents, type Told, told, typesOf } from '../support/events.ts'
import { type Api, echo, openApi } from './api.ts'

/** Its root asks for two calls of its first answer, its helper for one. */
const asking = {
  ...scriptedTeam('asking', [
    {
      agent: agent('root', { subAgents: ['helper'] }),
      steps: [
        { calls: [1, 2].map((i) => ({ tool: 'transfer_task', args: { agent: 'helper', task: `part ${i}` } })) },
        { text: 'all: {results}' },
      ],
    },
    {
      agent: agent('helper', { toolsets: ['think'] }),
      steps: [{ calls: [{ tool: 'think', args: { thought: 'hm' } }] }, { text: 'helped' }],
    },
  ]),
  permissions: { ask: ['transfer_task', 'think'] },
}

describe('approvals', () => {
  let api: Api
  beforeAll(() => {
    api = openApi({ teams: [asking], app: { tenantOf: () => ({ tenant: 'local', name: 'user-7' }) } })
  })
  afterAll(() => api.close())
  const decide = async (runId: string, approvalId: string, body: object) => {
    expect((await api.post(`/v1/runs/${runId}/approvals/${approvalId}`, body)).status).toBe(202)
    await api.invoker.drain()
  }
  const asked = (t: Told) => t.events.filter((e) => e.event === 'approval.asked').map((e) => e.data)
  const short = (t: Told) => t.events.map((e) => [e.event, e.data.index])

  test('are told in the order of the calls, whoever looks when', async () => {
    const { runId, rootSessionId } = await api.run({ team: 'asking', input: 'go' })
    const first = await told(api, runId)
    const [one, two] = asked(first)
    expect(one).toEqual({
      type: 'approval.asked',
      sessionId: rootSessionId,
      at: expect.any(String),
      approvalId: expect.any(String),
      tool: 'transfer_task',
      turn: 0,
      index: 0,
    })
    expect(typesOf(first, rootSessionId)).toEqual([
      ...['session.created', 'session.started', 'approval.asked', 'approval.asked'],
    ])
    await decide(runId, two.approvalId, { decision: 'deny', note: 'one is enough' })
    const second = await api.get<string>(`/v1/runs/${runId}/events?cursor=${first.events[2]!.id}`)
    expect(short(parseEvents(second.body))).toEqual([['approval.asked', 1]])
    await decide(runId, one.approvalId, { decision: 'approve' })
    const third = await told(api, runId, `?cursor=${first.cursor}`)
    expect(third.events.slice(0, 2).map((e) => e.data)).toMatchObject([
      { type: 'approval.decided', approvalId: one.approvalId, decision: 'approve', by: 'user-7', note: null },
      { type: 'approval.decided', index: 1, turn: 0, decision: 'deny', by: 'user-7', note: 'one is enough' },
    ])
    const [helped] = asked(third)
    expect(helped).toMatchObject({ tool: 'think', turn: 0, index: 0 })
    await decide(runId, helped.approvalId, { decision: 'approve' })
    const last = await told(api, runId, `?cursor=${third.cursor}`)
    expect(last.end).toMatchObject({ status: 'completed' })
    const all = await told(api, runId)
    const live = [...first.events, ...third.events, ...last.events].map((e) => e.data)
    expect(bySession(all.events.map((e) => e.data))).toEqual(bySession(live))
    expect(typesOf(all, helped.sessionId)).toEqual([
      ...['session.created', 'session.started', 'approval.asked', 'approval.decided', 'session.finished'],
    ])
    for (const session of ['', rootSessionId, helped.sessionId]) {
      const query = session === '' ? '' : `session=${session}`
      const whole = await told(api, runId, `?${query}`)
      for (const [i, { id }] of whole.events.entries()) {
        const rest = await told(api, runId, `?${query}&cursor=${id}`)
        expect(rest.events.map((e) => e.data)).toEqual(whole.events.slice(i + 1).map((e) => e.data))
      }
    }
    const turns = typesOf(await told(api, runId, `?session=${helped.sessionId}`), helped.sessionId)
    const turn = ['turn.started', 'turn.finished']
    expect(turns).toEqual([
      ...['session.created', 'session.started', ...turn, 'approval.asked', 'approval.decided', 'tool.result'],
      ...[...turn, 'session.finished'],
    ])
  })

  test('that are open when the run is cancelled are followed by its end, also behind a next round', async () => {
    const { runId, rootSessionId } = await api.run({ team: 'asking', input: 'go' })
    const first = await told(api, runId)
    await decide(runId, asked(first)[0].approvalId, { decision: 'approve' })
    await api.post(`/v1/runs/${runId}/cancel`, {})
    await api.invoker.drain()
    const late = await api.post<{ code: string }>(`/v1/runs/${runId}/approvals/${asked(first)[1].approvalId}`, {
      decision: 'approve',
    })
    expect([late.status, late.body.code]).toEqual([409, 'approval_closed'])
    const rest = await told(api, runId, `?cursor=${first.cursor}`)
    expect(rest.events.map((e) => e.event)).toEqual(['approval.decided', 'session.finished'])
    await api.post(`/v1/runs/${runId}/input`, { input: 'go on' })
    await api.invoker.drain()
    const more = await told(api, runId, `?cursor=${rest.cursor}`)
    expect(more.events.map((e) => e.event)).toEqual(['session.reopened', 'approval.asked', 'approval.asked'])
    const all = await told(api, runId)
    expect(typesOf(all, rootSessionId)).toEqual([...first.events, ...rest.events, ...more.events].map((e) => e.event))
  })
})

describe('the warning of a budget', () => {
  test('is told once, and again of another budget', async () => {
    const api = openApi({ teams: [echo] })
    const { runId } = await api.run({ team: 'echo', input: 'one', budget: { usd: '1' } })
    const ref = { tenant: 'local', runId }
    const before = await told(api, runId)
    await api.ctx.store.warnBudget(ref, 0, Date.parse('2026-03-01T00:00:00Z'))
    const first = await told(api, runId, `?cursor=${before.cursor}`)
    expect(first.events.map((e) => e.data)).toEqual([
      { type: 'budget.warning', sessionId: null, at: '2026-03-01T00:00:00.000Z', budgetSeq: 0 },
    ])
    expect((await told(api, runId, `?cursor=${first.cursor}`)).events).toEqual([])
    await changeBudget(api.ctx, ref, { usd: '2' })
    await api.ctx.store.warnBudget(ref, 1, Date.parse('2026-03-02T00:00:00Z'))
    const second = await told(api, runId, `?cursor=${first.cursor}`)
    expect(second.events.map((e) => e.data.budgetSeq)).toEqual([1])
    expect((await told(api, runId, `?cursor=${second.cursor}`)).events).toEqual([])
    await api.close()
  })
})
