/** What of `provider_opts` leaves the process: nothing that raises a call's price or its output cap, or changes its model. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { optionsBound } from '../../src/domain/provider-options.ts'
import type { ModelDefinition } from '../../src/domain/team.ts'
import { estimateCall } from '../../src/engine/estimate.ts'
import { createModel } from '../../src/model/model.ts'
import { type ProviderServer, startProviderServer } from '../support/provider-server.ts'
import { request } from './call.ts'

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())
afterEach(() => server.clear())

const CAP = 1_000

const MODELS = {
  responses: { provider: 'openai', api: 'openai_responses', model: 'gpt-5' },
  chat: { provider: 'openai', api: 'openai_chatcompletions', model: 'gpt-4o' },
  anthropic: { provider: 'anthropic', api: 'anthropic', model: 'claude-opus-4-6' },
  google: { provider: 'google', api: 'google', model: 'gemini-2.5-flash' },
  bedrock: { provider: 'amazon-bedrock', api: 'amazon_bedrock', model: 'amazon.nova-pro-v1:0' },
  compatible: {
    provider: 'gateway',
    api: 'openai_compatible',
    model: 'some',
    baseUrl: 'https://llm.example.com/v1',
    tokenKey: 'KEY',
  },
  'chat elsewhere': {
    provider: 'gateway',
    api: 'openai_chatcompletions',
    model: 'some',
    baseUrl: 'https://llm.example.com/v1',
    tokenKey: 'KEY',
  },
} as const satisfies { [name: string]: ModelDefinition }
type Name = keyof typeof MODELS

/** A call with these options, as it is sent; every host is the test's server. */
async function sent(name: Name, options: object, more: Partial<ModelDefinition> = {}) {
  const before = server.requests.length
  server.reply({ status: 500, chunks: ['{}'] })
  const model = createModel({
    env: (variable) => (variable === 'AWS_REGION' ? 'us-east-1' : 'sk-test'),
    fetch: (url, init) => fetch(String(url).replace(/^https:\/\/[^/]+/, server.url), init),
    awsCredentials: async () => ({ accessKeyId: 'a', secretAccessKey: 's', sessionToken: 't' }),
  })
  const definition = { ...MODELS[name], ...more, options: options as { [key: string]: unknown } }
  const { failure } = await model.call(request(definition, { maxOutputTokens: more.maxTokens ?? CAP }))
  const received = server.requests[before]
  if (!received) throw new Error(`no request: ${failure?.message}`)
  return received
}

const bodyOf = async (name: Name, options: object) => (await sent(name, options)).body

describe('what is never asked for', () => {
  const DEARER: readonly (readonly [string, Name, object])[] = [
    ['priority processing', 'responses', { service_tier: 'priority' }],
    ["what the project's setting may make priority processing", 'responses', { service_tier: 'auto' }],
    ['priority processing', 'chat', { serviceTier: 'priority' }],
    ['priority processing under its newer name', 'chat', { service_tier: 'fast' }],
    ['more work for one answer', 'responses', { reasoning_mode: 'pro' }],
    ['a cache of another price', 'responses', { prompt_cache_options: { ttl: '12h' } }],
    ['output beyond the cap', 'chat', { prediction: { type: 'content', content: 'x' } }],
    ['inference in one country', 'anthropic', { inference_geo: 'us' }],
    ['fast answers', 'anthropic', { speed: 'fast' }],
    ['the priority tier', 'anthropic', { service_tier: 'auto' }],
    ['a beta that nobody knows', 'anthropic', { anthropic_beta: ['dearer-2027-01-01'] }],
    ['a context whose large prompts are dearer', 'anthropic', { anthropic_beta: ['context-1m-2025-08-07'] }],
    ['priority processing', 'google', { service_tier: 'priority' }],
    ['images', 'google', { response_modalities: ['TEXT', 'IMAGE'] }],
    ['the priority tier', 'bedrock', { service_tier: 'priority' }],
    ['the priority tier', 'bedrock', { service_tier: { type: 'priority' } }],
    ['quicker answers', 'bedrock', { performance_config: { latency: 'optimized' } }],
    ['more answers', 'bedrock', { additional_model_request_fields: { num_generations: 3 } }],
    ['priority processing', 'compatible', { service_tier: 'priority' }],
    ['another model', 'compatible', { models: ['openai/gpt-5-pro'] }],
    ['plugins', 'compatible', { plugins: [{ id: 'web' }] }],
    ['a search of the web', 'compatible', { web_search_options: {} }],
    ['another provider', 'compatible', { provider: { order: ['dear'] } }],
    ['another cap', 'compatible', { extra_body: { max_tokens: 90_000 } }],
    ['another cap', 'compatible', { max_new_tokens: 90_000 }],
    ['another cap', 'compatible', { generation_config: { max_output_tokens: 90_000 } }],
    ['more answers', 'compatible', { best_of: 5 }],
    ['tools of its own', 'compatible', { functions: [{ name: 'f' }] }],
    ['what nobody knows', 'chat elsewhere', { turbo: true }],
  ]

  test.each(DEARER)('%s: %s %j', async (_, name, options) => {
    expect(await bodyOf(name, options)).toEqual(await bodyOf(name, {}))
    expect(optionsBound({ ...MODELS[name], options: options as { [key: string]: unknown } })).toBe(0)
  })

  test('a budget of thinking beyond the cap, while the rest of the option is', async () => {
    const options = { thinking: { type: 'enabled', budget_tokens: 60_000 } }
    expect((await bodyOf('compatible', options)).thinking).toEqual({ type: 'enabled' })
  })
})

describe('what is asked for as it stands', () => {
  test.each<[Name, object, object]>([
    ['responses', { service_tier: 'flex', user: 'me' }, { service_tier: 'flex', user: 'me' }],
    ['responses', { text_verbosity: 'low', reasoning_effort: 'low' }, { text: { verbosity: 'low' } }],
    ['responses', { metadata: { a: 'b' }, truncation: 'auto' }, { metadata: { a: 'b' }, truncation: 'auto' }],
    ['chat', { service_tier: 'default', seed: 7, store: false }, { service_tier: 'default', seed: 7, store: false }],
    ['chat', { logit_bias: { 50256: -100 }, stop: 'END' }, { logit_bias: { 50256: -100 }, stop: ['END'] }],
    ['anthropic', { topK: 7, stop_sequences: ['END'] }, { top_k: 7, stop_sequences: ['END'] }],
    ['anthropic', { metadata: { user_id: 'me' }, inference_geo: 'global' }, { metadata: { user_id: 'me' } }],
    ['anthropic', { service_tier: 'standard_only' }, { service_tier: 'standard_only' }],
    ['anthropic', { cache_control: { type: 'ephemeral', ttl: '1h' } }, { cache_control: { ttl: '1h' } }],
    ['google', { response_modalities: ['TEXT'], stop: ['END'] }, { generationConfig: { stopSequences: ['END'] } }],
    ['google', { service_tier: 'flex', topK: 7 }, { serviceTier: 'flex', generationConfig: { topK: 7 } }],
    ['bedrock', { service_tier: 'flex' }, { serviceTier: { type: 'flex' } }],
    ['bedrock', { stop_sequences: ['END'] }, { inferenceConfig: { maxTokens: CAP, stopSequences: ['END'] } }],
    ['bedrock', { performance_config: { latency: 'standard' } }, { performanceConfig: { latency: 'standard' } }],
    ['compatible', { top_k: 7, min_p: 0.1, stop: ['END'] }, { top_k: 7, min_p: 0.1, stop: ['END'] }],
    ['compatible', { response_format: { type: 'json_object' } }, { response_format: { type: 'json_object' } }],
    ['compatible', { repeat_penalty: 1.1 }, { repeat_penalty: 1.1 }],
    ['compatible', { verbosity: 'low', service_tier: 'flex' }, { verbosity: 'low', service_tier: 'flex' }],
    ['chat elsewhere', { reasoning: { effort: 'low' } }, { reasoning: { effort: 'low' } }],
  ])('%s %j', async (name, options, expected) => {
    expect(await bodyOf(name, options)).toMatchObject(expected)
  })

  test("the context of large prompts, at the team file's own price alone", async () => {
    const beta = async (more: Partial<ModelDefinition>) =>
      (await sent('anthropic', { anthropic_beta: ['context-1m-2025-08-07'] }, more)).headers['anthropic-beta'] ?? ''
    expect(await beta({ cost: { input: '6', output: '22.5' } })).toContain('context-1m-2025-08-07')
    expect(await beta({})).not.toContain('context-1m')
  })

  test('thinking between tool calls, of Claude', async () => {
    const thinks = { model: 'claude-sonnet-4-0', thinkingBudget: 'low', maxTokens: 8_000 }
    const beta = async (options: object) => (await sent('anthropic', options, thinks)).headers['anthropic-beta'] ?? ''
    expect(await beta({ interleaved_thinking: true })).toContain('interleaved-thinking-2025-05-14')
    expect(await beta({})).not.toContain('interleaved')
  })
})

describe('the bound of the input', () => {
  const schema = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`p${i}`, { description: `é ${i}` }]))

  test.each<[Name, object]>([
    ['compatible', { response_format: { type: 'json_schema', json_schema: { name: 's', schema } } }],
    ['responses', { text_format: { type: 'grammar', syntax: 'regex', definition: 'é'.repeat(9_000) } }],
    ['google', { safety_settings: Array(200).fill({ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'OFF' }) }],
  ])('has all bytes of the options that are sent: %s', (name, options) => {
    const definition = { ...MODELS[name], options: options as { [key: string]: unknown } }
    const bound = (d: ModelDefinition) => estimateCall(d, request(d), 0).estimate
    const bytes = Buffer.byteLength(JSON.stringify(options))
    expect(bytes).toBeGreaterThan(8_000)
    expect(bound(definition) - bound(MODELS[name])).toBe(bytes)
  })

  test('has nothing of settings that are not sent, nor of a script', () => {
    const settings = { region: 'eu-central-1', stream: false, disable_prompt_caching: true }
    expect(optionsBound({ ...MODELS.bedrock, options: settings })).toBe(0)
    expect(optionsBound({ api: 'scripted', options: { steps: [{ text: 'hi' }] } })).toBe(0)
  })
})
