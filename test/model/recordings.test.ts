import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { formatUsd } from '../../src/domain/money.ts'
import { costOf } from '../../src/domain/pricing.ts'
import { type ModelApi, perToken } from '../../src/domain/team.ts'
import type { TokenUsage } from '../../src/domain/usage.ts'
import { createModel } from '../../src/model/model.ts'
import type { ModelResult } from '../../src/ports.ts'
import {
  anthropicEvents,
  chatEvents,
  events,
  type ProviderServer,
  type Reply,
  type Said,
  startProviderServer,
} from '../support/provider-server.ts'
import { recordedReplies, recordingsFolder } from '../support/recordings.ts'
import { baseUrl, definition, env, listFiles, request, tokens } from './call.ts'

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

/** What the providers said in the recorded conversations: must be booked to the last token. */
const OPENAI: TokenUsage[] = [tokens(308, 35), tokens(82, 19), tokens(370, 20), tokens(404, 20)]
const ANTHROPIC: TokenUsage[] = [
  tokens(3 + 1276, 58, { cacheWriteTokens: 1276 }),
  tokens(6 + 72 + 1276, 4, { cacheWriteTokens: 72, cacheReadTokens: 1276 }),
]

async function play(api: ModelApi, replies: readonly Reply[]): Promise<ModelResult[]> {
  server.reply(...replies)
  const model = createModel({ env })
  const results: ModelResult[] = []
  for (const _ of replies)
    results.push(await model.call(request(definition(api, { baseUrl: baseUrl(server) }), { tools: [listFiles] })))
  const booked = results.map((r) => ({ input: r.usage.inputTokens, output: r.usage.outputTokens }))
  const charged = server.bill.slice(-replies.length)
  if (replies.every((r) => r.charged)) expect(booked).toEqual(charged)
  for (const r of results) expect(r).toMatchObject({ usageSource: 'reported', message: { role: 'assistant' } })
  return results
}

function expectOpenai(results: readonly ModelResult[]): void {
  expect(results.map((r) => r.usage)).toEqual(OPENAI)
  expect(results.map((r) => r.finishReason)).toEqual(['tool_calls', 'stop', 'stop', 'stop'])
  const sum = (f: (u: TokenUsage) => number) => results.reduce((s, r) => s + f(r.usage), 0)
  expect([sum((u) => u.inputTokens), sum((u) => u.outputTokens)]).toEqual([1164, 94])
}

function expectAnthropic(results: readonly ModelResult[]): void {
  expect(results.map((r) => r.usage)).toEqual(ANTHROPIC)
  expect(results.map((r) => r.finishReason)).toEqual(['tool_calls', 'stop'])
  const price = { input: '3', output: '15', cacheRead: '0.30', cacheWrite: '3.75' }
  const perTokens = Object.fromEntries(Object.entries(price).map(([k, v]) => [k, perToken(v)]))
  const cost = results.map((r) => costOf(r.usage, perTokens as never)!)
  expect(formatUsd(cost[0]! + cost[1]!)).toBe('0.0063948')
}

describe('streams with the figures of the recordings', () => {
  const chargeOf = (u: TokenUsage) => ({ input: u.inputTokens, output: u.outputTokens })
  const usageOf = (u: TokenUsage) => ({
    prompt_tokens: u.inputTokens,
    completion_tokens: u.outputTokens,
    total_tokens: u.inputTokens + u.outputTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  })

  it('book the four calls of the OpenAI conversation', async () => {
    const args = ['{"agent":', '"weather","task":"Say the weather."}']
    const said: Said[] = [
      { calls: [{ id: 'call_1', name: 'transfer_task', args }] },
      { text: ['It is ', 'mild.'] },
      { text: ['It is ', 'mild there.'] },
      { text: ['As I ', 'said.'] },
    ]
    const replies = said.map((s, i) => ({
      chunks: events(chatEvents(s, usageOf(OPENAI[i]!))),
      charged: chargeOf(OPENAI[i]!),
    }))
    const results = await play('openai_chatcompletions', replies)
    expectOpenai(results)
    expect(results[0]!.message!.toolCalls[0]!.arguments).toBe(args.join(''))
  })

  it('book the two calls of the Anthropic conversation, cache written and read', async () => {
    const opening = (u: TokenUsage) => ({
      input_tokens: u.inputTokens - u.cacheReadTokens - u.cacheWriteTokens,
      cache_creation_input_tokens: u.cacheWriteTokens,
      cache_read_input_tokens: u.cacheReadTokens,
      cache_creation: { ephemeral_5m_input_tokens: u.cacheWriteTokens, ephemeral_1h_input_tokens: 0 },
      output_tokens: 1,
    })
    const said: Said[] = [
      { calls: [{ id: 'toolu_1', name: 'list_files', args: ['', '{"path": "here', '"}'] }] },
      { text: ['1'] },
    ]
    const replies = said.map((s, i) => {
      const u = ANTHROPIC[i]!
      const closing = { ...opening(u), output_tokens: u.outputTokens }
      return { chunks: events(anthropicEvents(s, opening(u), closing)), charged: chargeOf(u) }
    })
    expectAnthropic(await play('anthropic', replies))
  })
})

describe.skipIf(!recordingsFolder)('recorded traffic (skipped where SUBLEDGER_RECORDINGS names no folder)', () => {
  it('of OpenAI chat completions books what OpenAI said', async () => {
    const replies = recordedReplies(recordingsFolder!, 'TestRuntime_MultiAgent_SessionReload.yaml')
    const results = await play('openai_chatcompletions', replies)
    expectOpenai(results)
    expect(results[0]!.message!.toolCalls[0]!.name).toBe('transfer_task')
    expect(JSON.parse(results[0]!.message!.toolCalls[0]!.arguments)).toMatchObject({ agent: 'weather' })
  })

  it('of Anthropic messages books what Anthropic said', async () => {
    expectAnthropic(await play('anthropic', recordedReplies(recordingsFolder!, 'TestExec_Anthropic_ToolCall.yaml')))
  })
})
