/** What a team file is told of `provider_opts` that would not be sent with a call. */
import { describe, expect, test } from 'vitest'
import { problemsOf, teamOf, withModel } from './team-text.ts'

const COST = 'cost: { input: 1, output: 2, cache_read: 0.1, cache_write: 1.25 }'
const at = (model: string, opts: string) => withModel(`${model}\n${COST}\nprovider_opts: { ${opts} }`)
const OPENAI = 'provider: openai\nmodel: gpt-5'
const CLAUDE = 'provider: anthropic\nmodel: claude-opus-4-6'
const GEMINI = 'provider: google\nmodel: gemini-2.5-flash'
const BEDROCK = 'provider: amazon-bedrock\nmodel: amazon.nova-pro-v1:0'
const GATEWAY = 'provider: openrouter\nmodel: openai/gpt-5'

describe('an option that would not be sent is an error', () => {
  test.each([
    [OPENAI, 'service_tier: priority', '8:36 error: "service_tier" may be "default" or "flex", not "priority": '],
    [OPENAI, 'service_tier: auto', '8:36 error: "service_tier" may be "default" or "flex", not "auto": '],
    [OPENAI, 'reasoning_mode: pro', '8:38 error: "reasoning_mode" may be "standard", not "pro": '],
    [OPENAI, 'store: true', '8:29 error: "store" may be false, not true: '],
    [OPENAI, 'max_output_tokens: 9', '8:22 error: "max_output_tokens" is not sent with calls: write "max_tokens", '],
    [OPENAI, 'maxOutputTokens: 9', '8:22 error: "maxOutputTokens" is not sent with calls: write "max_tokens", '],
    [OPENAI, 'temperature: 1', '8:22 error: "temperature" is not sent with calls: write it at the model, beside '],
    [OPENAI, 'model: o3-pro', '8:22 error: "model" is not sent with calls: another model might answer'],
    [OPENAI, 'messages: []', '8:22 error: "messages" is not sent with calls: a call is made of the instruction, '],
    [CLAUDE, 'inference_geo: us', '8:37 error: "inference_geo" may be "global", not "us": '],
    [CLAUDE, 'thinking: { type: enabled }', '8:22 error: "thinking" is not sent with calls: write "thinking_budget"'],
    [CLAUDE, 'fallbacks: default', '8:22 error: "fallbacks" is not sent with calls: another model might answer'],
    [CLAUDE, 'anthropic_beta: [some-beta]', '8:38 error: "anthropic_beta" may be "interleaved-thinking-2025-05-14" '],
    [GEMINI, 'response_modalities: [TEXT, IMAGE]', '8:43 error: "response_modalities" may be "TEXT", not ["TEXT","IMA'],
    [GEMINI, 'cached_content: x', '8:22 error: "cached_content" is not sent with calls: a call is made of'],
    [BEDROCK, 'performance_config: { latency: optimized }', '8:53 error: "latency" may be "standard", not "optimized"'],
    [
      BEDROCK,
      'additional_model_request_fields: { max_tokens: 9 }',
      '8:57 error: "max_tokens" is not sent with calls: write "max_tokens", ',
    ],
    [BEDROCK, 'disablePromptCaching: true', '8:22 error: "disablePromptCaching" is not sent with calls: whether it '],
    [GATEWAY, 'models: [x]', '8:22 error: "models" is not sent with calls: another model might answer'],
    [GATEWAY, 'plugins: [{ id: web }]', `8:22 error: "plugins" is not sent with calls: the tools are the agent's`],
    [GATEWAY, 'extra_body: { x: 1 }', '8:22 error: "extra_body" is not sent with calls: write the options themselves'],
    [GATEWAY, 'thinking: { budget_tokens: 9 }', '8:34 error: "budget_tokens" is not sent with calls: write "thinking_'],
    [
      GATEWAY,
      'transforms: [middle-out]',
      '8:22 error: "transforms" is not sent with calls: the conversation is sent whole',
    ],
    [
      GATEWAY,
      'prompt_mode: reasoning',
      '8:22 error: "prompt_mode" is not sent with calls: it puts a prompt of the prov',
    ],
    [
      CLAUDE,
      'thinking_display: summarized',
      '8:22 error: "thinking_display" is not sent with calls: what is thought is',
    ],
    [
      'provider: openai\nmodel: gpt-4o',
      'reasoning_summary: auto',
      '8:22 error: "reasoning_summary" is not sent with calls: chat completions do not know it; write "api_type: ',
    ],
    [CLAUDE, 'reasoning_summary: auto', '8:22 error: "reasoning_summary" is not sent with calls: whether it changes'],
    [GATEWAY, 'constructor: x', '8:22 error: "constructor" is not sent with calls: whether it changes their '],
  ])('%s %s', (model, opts, expected) => {
    const found = problemsOf(at(model, opts))
    expect(found, found.join('\n')).toHaveLength(1)
    expect(found[0]?.slice(0, expected.length)).toBe(expected)
  })

  test('that says what it may have been meant for', () => {
    expect(problemsOf(at(GATEWAY, 'repitition_penalty: 1.1'))).toEqual([
      '8:22 error: "repitition_penalty" is not sent with calls: whether it changes their price, their output cap or the model that answers is not known (did you mean "repetition_penalty"?)',
    ])
  })

  test('at an endpoint that the file names, too', () => {
    const providers = 'providers: { mine: { base_url: "https://llm.example.com/v1" } }'
    const model = `models: { m: { provider: mine, model: x, ${COST}, provider_opts: { best_of: 3 } } }`
    expect(problemsOf(`${providers}\nagents: { root: { model: m } }\n${model}`)).toEqual([
      '3:126 error: "best_of" is not sent with calls: a call asks for one answer',
    ])
  })
})

describe('the beta with which a large prompt has another price', () => {
  const beta = 'anthropic_beta: [interleaved-thinking-2025-05-14, context-1m-2025-08-07]'
  const fields = `additional_model_request_fields: { ${beta} }`
  const SONNET = 'provider: anthropic\nmodel: claude-sonnet-4-0'
  const ON_BEDROCK = 'provider: amazon-bedrock\nmodel: anthropic.claude-sonnet-4-20250514-v1:0'
  const tabled = (model: string, opts: string) =>
    problemsOf(withModel(`${model}\nprovider_opts: { ${opts} }`), { knowsPrice: () => true })

  test.each([
    [SONNET, beta, '7:38'],
    [ON_BEDROCK, fields, '7:73'],
  ])('is not sent at the price of the table: %s', (model, opts, place) => {
    expect(tabled(model, opts)).toEqual([
      `${place} error: "context-1m-2025-08-07" is not sent with calls: a prompt beyond 200,000 tokens has another price, which the table may not have for this model; write the highest as "cost" at the model`,
    ])
  })

  test.each([
    [SONNET, beta],
    [ON_BEDROCK, fields],
  ])("is sent at the team file's own: %s", (model, opts) => {
    expect(problemsOf(at(model, opts))).toEqual([])
  })

  test('hides no other one that is not sent', () => {
    expect(tabled(SONNET, 'anthropic_beta: [context-1m-2025-08-07, some-beta]')[0]).toContain(
      '"anthropic_beta" may be ',
    )
  })
})

test.each([
  [GATEWAY, 'repeat_penalty: 1.1'],
  [GEMINI, 'structured_outputs: false'],
])('an option that changes only the words is sent: %s %s', (model, opts) => {
  expect(problemsOf(at(model, opts))).toEqual([])
})

test('leniently, what is known and not sent is left out', () => {
  const text = at(OPENAI, 'service_tier: priority, user: me, store: false')
  expect(teamOf(text, { lenient: true }).models.m!.options).toEqual({ user: 'me', store: false })
  expect(problemsOf(text, { lenient: true })[0]).toMatch(/^8:36 warning: "service_tier" .*; it is left out$/)
  const unknown = at(OPENAI, 'turbo: true')
  expect(problemsOf(unknown, { lenient: true })[0]).toMatch(/^8:22 error: "turbo" is not sent with calls: /)
})
