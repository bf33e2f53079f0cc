import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatUsd, parseUsd } from '../../src/domain/money.ts'
import type { CallView } from '../../src/http/views/call.ts'
import type { FiguresView } from '../../src/http/views/figures.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { UsageReport } from '../../src/http/views/usage.ts'
import { anUnknown, aResponse, aRun, aRunningHeader, rootRef, row } from '../support/builders.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { type Api, desk, openApi } from './api.ts'

const step = (text: string) => ({ text, usage: { input: 100, output: 10 } })
/** One worker's model has no price, one fails once, and one is called like a property of every object. */
const mixed = scriptedTeam('mixed', [
  {
    agent: agent('root', { subAgents: ['free', 'shaky', 'constructor'] }),
    steps: [
      {
        calls: ['free', 'shaky', 'constructor'].map((name) => ({
          tool: 'transfer_task',
          args: { agent: name, task: 'x' },
        })),
        usage: { input: 50, output: 5 },
      },
      step('all done'),
    ],
  },
  { agent: agent('free'), steps: [step('free')], model: { provider: 'house', model: 'own', cost: undefined } },
  {
    agent: agent('shaky', { model: 'flaky' }),
    steps: [
      { ...step('shaky'), error: { class: 'overloaded', message: 'busy', times: 1, usage: { input: 40, output: 4 } } },
    ],
    model: { model: 'flaky' },
  },
  { agent: agent('constructor', { model: 'proto' }), steps: [step('proto')], model: { model: 'constructor' } },
])

describe('the books of a run', () => {
  let api: Api
  beforeEach(() => {
    api = openApi({ teams: [desk, mixed] })
  })
  afterEach(() => api.close())

  const callsOf = async (runId: string, limit = 100) =>
    (await api.pages<CallView>(`/v1/runs/${runId}/calls`, 'calls', limit)).flat()
  const usageOf = async (runId: string) => (await api.get<UsageReport>(`/v1/runs/${runId}/usage`)).body

  test('every call is a row, with what is needed to check its cost', async () => {
    const run = await api.run({ team: 'desk', input: 'go' })
    const calls = await callsOf(run.runId, 3)
    expect(calls).toHaveLength(8)
    const first = calls.find((c) => c.sessionId === run.rootSessionId && c.turn === 0)!
    expect(first).toMatchObject({
      sessionId: run.rootSessionId,
      turn: 0,
      attempt: 1,
      agent: 'root',
      provider: 'scripted',
      model: 'script',
      answeredBy: null,
      outcome: 'accepted',
      cause: null,
      usage: {
        calls: 1,
        inputTokens: 1000,
        cacheReadTokens: 400,
        cacheWriteTokens: 0,
        outputTokens: 20,
        reasoningTokens: 0,
        cacheWrite1hTokens: 0,
      },
      usageSource: 'reported',
      costUsd: '0.00222',
      price: {
        input: '3',
        output: '15',
        cacheRead: '0.3',
        cacheWrite: '3.75',
        cacheWrite1h: '6',
        source: 'team file',
      },
      responseId: null,
    })
    expect(Date.parse(first.startedAt)).toBeGreaterThan(0)
    expect(first.durationMs).toBeGreaterThanOrEqual(0)
    expect(formatUsd(calls.map((c) => parseUsd(c.costUsd!)).reduce((a, b) => a + b))).toBe(run.costUsd)
  })

  test('a call without a price has no cost, and every sum that it is in says so', async () => {
    const run = await api.run({ team: 'mixed', input: 'go' })
    const free = (await callsOf(run.runId)).find((c) => c.agent === 'free')!
    expect(free).toMatchObject({ provider: 'house', model: 'own', costUsd: null, price: null })
    expect(run).toMatchObject({ costComplete: false, unpricedCalls: 1 })
    const usage = await usageOf(run.runId)
    expect(usage.byAgent.free).toMatchObject({ usage: { calls: 1 }, costUsd: '0', costComplete: false })
    expect(usage.byModel['house/own']).toEqual(usage.byAgent.free)
    expect(usage.byAgent.shaky!.costComplete).toBe(true)
    expect(usage.total.costComplete).toBe(false)
  })

  test('by agent, by model and by outcome are three cuts of one whole', async () => {
    const run = await api.run({ team: 'mixed', input: 'go' })
    const usage = await usageOf(run.runId)
    expect(usage.total).toEqual({ usage: run.usage, costUsd: run.costUsd, costComplete: run.costComplete })
    for (const cut of [usage.byAgent, usage.byModel, usage.byOutcome])
      expect(sum(Object.values(cut))).toEqual(sum([usage.total]))
    expect(Object.keys(usage.byAgent)).toEqual(['constructor', 'free', 'root', 'shaky'])
    expect(Object.keys(usage.byModel)).toEqual([
      'house/own',
      'scripted/constructor',
      'scripted/flaky',
      'scripted/script',
    ])
    expect(usage.byOutcome.failed).toEqual({ usage: run.waste.usage, costUsd: run.waste.costUsd, costComplete: true })
    const failed = (await callsOf(run.runId)).filter((c) => c.outcome === 'failed')
    expect(failed).toMatchObject([
      { agent: 'shaky', usageSource: 'partial', usage: { inputTokens: 40, outputTokens: 4 } },
    ])
    expect(failed[0]!.cause).toContain('busy')
  })

  test('calls of unknown outcome stand apart, at their bound', async () => {
    await api.ctx.store.putDefinition(aRun(), aRun().definition, mixed)
    await api.ctx.store.createRun(aRun())
    await api.ctx.store.putHeader(
      aRunningHeader({ rows: [row(1, { model: 'flaky' }), row(1, { outcome: 'unknown' })] }),
    )
    await api.ctx.store.putResponse(rootRef(), anUnknown(0), 'd')
    await api.ctx.store.putResponse(rootRef(), aResponse(1, { model: 'flaky' }), 'd')
    await api.ctx.store.putResponse(rootRef(), aResponse(2, { outcome: 'none', cost: 0n }), 'd')
    const { runId } = aRun()
    const usage = await usageOf(runId)
    expect(usage.total.usage.calls).toBe(1)
    expect(Object.keys(usage.byModel)).toEqual(['scripted/flaky'])
    expect(usage.byOutcome.unknown).toMatchObject({ usage: { calls: 1 }, costUsd: '0.00045' })
    // an intent that was given up before its call is no call; a model that the team does not know keeps its key
    const calls = await callsOf(runId, 1)
    expect(calls.map((c) => [c.outcome, c.costUsd, c.provider, c.model])).toEqual([
      ['unknown', '0.02288', null, 'mini'],
      ['accepted', '0.00045', 'scripted', 'flaky'],
    ])
    const { body } = await api.get<RunView>(`/v1/runs/${runId}?exact=true`)
    expect(body).toMatchObject({ costUsd: '0.00045', unknown: { calls: 1, costUsd: '0.02288' } })
  })

  const sum = (figures: readonly FiguresView[]) => ({
    calls: figures.reduce((n, f) => n + f.usage.calls, 0),
    inputTokens: figures.reduce((n, f) => n + f.usage.inputTokens, 0),
    outputTokens: figures.reduce((n, f) => n + f.usage.outputTokens, 0),
    cost: figures.reduce((n, f) => n + parseUsd(f.costUsd), 0n),
  })
})

describe('teams', () => {
  let api: Api
  beforeEach(() => {
    api = openApi({ teams: [desk, mixed] })
  })
  afterEach(() => api.close())

  test('are listed with their descriptions', async () => {
    const { body } = await api.get<{ teams: { name: string }[] }>('/v1/teams')
    expect(body.teams.map((t) => t.name)).toEqual(['desk', 'mixed'])
  })

  test('show who is in them and what a call costs, and neither script, address nor key', async () => {
    const secret = { baseUrl: 'https://models.internal', tokenKey: 'MODEL_KEY', options: { steps: ['SCRIPT'] } }
    const hidden = scriptedTeam('hidden', [{ agent: agent('root'), steps: [], model: secret }])
    const other = openApi({ teams: [hidden] })
    const { body } = await other.get<object>('/v1/teams/hidden')
    expect(JSON.stringify(body)).not.toMatch(/SCRIPT|models\.internal|MODEL_KEY/)
    expect(body).toMatchObject({
      name: 'hidden',
      description: '',
      agents: [
        {
          name: 'root',
          description: 'root of the team',
          model: 'root',
          subAgents: [],
          toolsets: [],
          maxIterations: null,
        },
      ],
      models: {
        root: {
          provider: 'scripted',
          model: 'script',
          cost: { input: '3', output: '15', cacheRead: '0.3', cacheWrite: '3.75', cacheWrite1h: '6' },
          priceSource: 'team file',
        },
      },
    })
    await other.close()
  })
})
