/** Whole conversations over HTTP: `npm start`, a team file, and a provider on loopback. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Product, startProduct, type Workplace, workplace } from '../support/product.ts'
import {
  anthropicEvents,
  chatEvents,
  events,
  type ProviderServer,
  type Reply,
  startProviderServer,
} from '../support/provider-server.ts'
import { recordedReplies, recordingsFolder } from '../support/recordings.ts'

const openaiTeam = (url: string) => `
providers:
  here: { api_type: openai_chatcompletions, base_url: ${url}/v1 }
models:
  small: { provider: here, model: gpt-3.5-turbo, cost: { input: 0.5, output: 1.5, cache_read: 0.25, cache_write: 0.5 } }
agents:
  root: { model: small, description: Leads, instruction: Hand questions about the weather on., sub_agents: [weather] }
  weather: { model: small, description: Knows the weather, instruction: Tell the weather. }
`
const anthropicTeam = (url: string) => `
models:
  claude:
    provider: anthropic
    model: claude-sonnet-4-0
    base_url: ${url}/v1
    token_key: TEST_ANTHROPIC_KEY
    cost: { input: 3, output: 15, cache_read: 0.30, cache_write: 3.75 }
agents:
  root: { model: claude, description: Counts files, instruction: Be exact. }
`

let provider: ProviderServer
let place: Workplace
let product: Product
beforeAll(async () => {
  provider = await startProviderServer()
  place = await workplace({ weather: openaiTeam(provider.url), files: anthropicTeam(provider.url) })
  product = await startProduct(place, { TEST_ANTHROPIC_KEY: 'a-key-of-a-test' })
})
afterEach(() => provider.clear())
afterAll(async () => {
  await product?.stop()
  await provider.close()
  await place.remove()
})

const tokensOf = (calls: { usage: { inputTokens: number; outputTokens: number } }[]) =>
  calls.map((c) => `${c.usage.inputTokens}/${c.usage.outputTokens}`).sort()

async function openaiConversation(replies: readonly Reply[]): Promise<void> {
  provider.reply(...replies)
  const { runId } = await product.post('/runs', { team: 'weather', input: 'What is the weather in Paris?' })
  expect(await product.ended(runId)).toMatchObject({ status: 'completed', round: 1 })
  const { calls } = await product.get(`/runs/${runId}/calls`)
  expect(tokensOf(calls)).toEqual(['308/35', '370/20', '82/19'])
  const { sessions } = await product.get(`/runs/${runId}/sessions`)
  const sub = sessions.find((s: { kind: string }) => s.kind === 'transfer')
  expect(sub).toMatchObject({
    agent: 'weather',
    status: 'completed',
    usage: { calls: 1, inputTokens: 82, outputTokens: 19 },
  })

  await product.post(`/runs/${runId}/input`, { input: 'And tomorrow?' })
  const run = await product.ended(runId)
  expect(run).toMatchObject({
    status: 'completed',
    round: 2,
    usage: { calls: 4, inputTokens: 1_164, outputTokens: 94 },
  })
  expect(tokensOf((await product.get(`/runs/${runId}/calls`)).calls)).toEqual(['308/35', '370/20', '404/20', '82/19'])
  // 1,164 × 0.5 + 94 × 1.5 USD per million
  expect(run).toMatchObject({ costUsd: '0.000723', costComplete: true, waste: { calls: 0 }, unknown: { calls: 0 } })
  expect(provider.requests.at(-1)!.body.messages.map((m: { role: string }) => m.role)).toEqual([
    'system',
    'user',
    'assistant',
    'tool',
    'assistant',
    'user',
  ])
}

async function anthropicConversation(replies: readonly Reply[]): Promise<void> {
  provider.reply(...replies)
  const { runId } = await product.post('/runs', { team: 'files', input: 'How many files are there?' })
  const run = await product.ended(runId)
  expect(run).toMatchObject({ status: 'completed', costUsd: '0.0063948', costComplete: true })
  expect(run.usage).toEqual({
    calls: 2,
    inputTokens: 3 + 1_276 + 6 + 72 + 1_276,
    cacheReadTokens: 1_276,
    cacheWriteTokens: 1_276 + 72,
    outputTokens: 58 + 4,
    reasoningTokens: 0,
  })
  expect(provider.requests.at(-1)!.headers['x-api-key']).toBe('a-key-of-a-test')
  expect(product.output()).not.toContain('a-key-of-a-test')
}

describe('streams with the figures of the recordings', () => {
  const chat = (said: Parameters<typeof chatEvents>[0], input: number, output: number): Reply => ({
    chunks: events(chatEvents(said, { prompt_tokens: input, completion_tokens: output, total_tokens: input + output })),
  })
  test('an OpenAI conversation over two rounds books four calls, one of them the sub-session’s', async () => {
    const args = ['{"agent":"weather",', '"task":"Say the weather in Paris."}']
    await openaiConversation([
      chat({ calls: [{ id: 'call_1', name: 'transfer_task', args }] }, 308, 35),
      chat({ text: ['Partly ', 'cloudy.'] }, 82, 19),
      chat({ text: ['It is partly ', 'cloudy.'] }, 370, 20),
      chat({ text: ['I cannot ', 'know.'] }, 404, 20),
    ])
  })

  test('an Anthropic conversation books cache writes and reads to the last digit', async () => {
    const usage = (fresh: number, write: number, read: number, out: number) => ({
      input_tokens: fresh,
      cache_creation_input_tokens: write,
      cache_read_input_tokens: read,
      cache_creation: { ephemeral_5m_input_tokens: write, ephemeral_1h_input_tokens: 0 },
      output_tokens: out,
    })
    const stream = (
      said: Parameters<typeof anthropicEvents>[0],
      fresh: number,
      write: number,
      read: number,
      out: number,
    ) => ({
      chunks: events(anthropicEvents(said, usage(fresh, write, read, 1), usage(fresh, write, read, out))),
    })
    await anthropicConversation([
      stream({ calls: [{ id: 'toolu_1', name: 'list_directory', args: ['{"path": ', '"."}'] }] }, 3, 1_276, 0, 58),
      stream({ text: ['1'] }, 6, 72, 1_276, 4),
    ])
  })
})

describe.skipIf(!recordingsFolder)('recorded traffic (skipped where SUBLEDGER_RECORDINGS names no folder)', () => {
  test('the OpenAI conversation', () =>
    openaiConversation(recordedReplies(recordingsFolder!, 'TestRuntime_MultiAgent_SessionReload.yaml')))
  test('the Anthropic conversation', () =>
    anthropicConversation(recordedReplies(recordingsFolder!, 'TestExec_Anthropic_ToolCall.yaml')))
})
