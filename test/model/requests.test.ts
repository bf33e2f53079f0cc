import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ModelApi } from '../../src/domain/team.ts'
import type { Message } from '../../src/domain/turn.ts'
import { createModel } from '../../src/model/model.ts'
import type { ModelRequest, ModelResult } from '../../src/ports.ts'
import {
  anthropicEvents,
  awsFrames,
  chatEvents,
  converseEvents,
  events,
  googleEvents,
  type ProviderServer,
  type ReceivedRequest,
  responsesEvents,
  type Said,
  startProviderServer,
} from '../support/provider-server.ts'
import { baseUrl, definition, env, KEY, listFiles, request, tokens } from './call.ts'

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const usage = { input_tokens: 1, output_tokens: 1 }
function answer(api: ModelApi, said: Said): (string | Uint8Array)[] {
  if (api === 'anthropic') return events(anthropicEvents(said, usage, usage))
  if (api === 'openai_responses') return events(responsesEvents(said, usage))
  if (api === 'google') return events(googleEvents(said, { promptTokenCount: 1, candidatesTokenCount: 1 }))
  if (api === 'amazon_bedrock') return awsFrames(converseEvents(said, { inputTokens: 1, outputTokens: 1 }))
  return events(chatEvents(said, { prompt_tokens: 1, completion_tokens: 1 }))
}

/** The request that a model call makes, and what came of it. Makers' own addresses lead to the server. */
async function send(
  req: ModelRequest,
  options: { env?: typeof env; said?: Said } = {},
): Promise<{ received: ReceivedRequest | undefined; result: ModelResult }> {
  const before = server.requests.length
  server.reply({ chunks: answer(req.definition.api, options.said ?? { text: ['ok'] }) })
  const led: typeof fetch = (url, init) => fetch(String(url).replace(/^https:\/\/[^/]+/, server.url), init)
  const result = await createModel({ env: options.env ?? env, fetch: led }).call(req)
  server.clear()
  return { received: server.requests[before], result }
}

const at = (api: ModelApi, more = {}) => definition(api, { baseUrl: baseUrl(server), ...more })
const ALL: readonly ModelApi[] = [
  'openai_chatcompletions',
  'openai_compatible',
  'openai_responses',
  'anthropic',
  'google',
]

describe('keys', () => {
  const OPENAI = 'sk-openai-key-of-the-account'
  const ANTHROPIC = 'sk-ant-key-of-the-account'
  const account = (name: string) =>
    ({ OPENAI_API_KEY: `${OPENAI}\n`, ANTHROPIC_API_KEY: ANTHROPIC, AWS_SECRET_ACCESS_KEY: 'aws' })[name]
  const authOf = (r: ReceivedRequest | undefined) =>
    ['authorization', 'x-api-key', 'x-goog-api-key'].map((name) => r?.headers[name])

  it('are the usual ones at the makers own hosts', async () => {
    for (const api of ['openai_chatcompletions', 'openai_responses'] as const) {
      const { received } = await send(request({ provider: 'openai', api, model: 'gpt-4o' }), { env: account })
      expect(authOf(received)).toEqual([`Bearer ${OPENAI}`, undefined, undefined])
    }
    const claude = request({ provider: 'anthropic', api: 'anthropic', model: 'claude-sonnet-4-0' })
    const { received } = await send(claude, { env: account })
    expect(authOf(received)).toEqual([undefined, ANTHROPIC, undefined])
  })

  it.each(ALL)('%s: do not go to another host unless the team file says so', async (api) => {
    const { tokenKey: _, ...open } = at(api)
    const { received, result } = await send(request(open), { env: account })
    expect(authOf(received)).toEqual([undefined, undefined, undefined])
    expect(result.message?.content).toBe('ok')
    const named = await send(request({ ...open, tokenKey: 'TEST_KEY' }))
    const bare = api === 'anthropic' || api === 'google'
    expect(authOf(named.received)).toContain(bare ? KEY : `Bearer ${KEY}`)
  })

  it.each(ALL)('%s: that are missing are named before any request', async (api) => {
    const { received, result } = await send(request(at(api, { tokenKey: 'NOT_SET' })))
    expect(received).toBeUndefined()
    expect(await send(request(at(api)), { env: () => ' \n' })).toMatchObject({ result: { failure: { class: 'auth' } } })
    expect(result).toEqual({
      finishReason: 'error',
      usage: tokens(0, 0),
      usageSource: 'reported',
      failure: { class: 'auth', message: 'NOT_SET is not set: model test-model of provider test needs it.' },
    })
  })

  it('of the AWS account are never sent', async () => {
    const { received, result } = await send(request(at('anthropic', { tokenKey: 'AWS_SECRET_ACCESS_KEY' })), {
      env: account,
    })
    expect(received).toBeUndefined()
    expect(result.failure?.class).toBe('auth')
  })

  it('and addresses in the environment of the process are not used', async () => {
    const names = ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL']
    names.push('GOOGLE_GENERATIVE_AI_API_KEY')
    for (const name of names) process.env[name] = name.endsWith('URL') ? 'http://127.0.0.1:9' : 'sk-of-the-process'
    try {
      for (const api of ALL) {
        const { tokenKey: _, ...open } = at(api)
        expect(authOf((await send(request(open))).received)).toEqual([undefined, undefined, undefined])
      }
      const { received, result } = await send(request({ provider: 'openai', api: 'openai_responses', model: 'gpt-4o' }))
      expect(received).toBeUndefined()
      expect(result.failure?.message).toContain('OPENAI_API_KEY is not set')
    } finally {
      for (const name of names) delete process.env[name]
    }
  })

  it('are taken out of the text of a failure before it is cut to 300 bytes', async () => {
    const text = `${'x'.repeat(290)} ${KEY} and sk-other-abcdefgh`
    const failing: typeof fetch = () => Promise.reject(new TypeError(text))
    const { failure } = await createModel({ env, fetch: failing }).call(request(at('anthropic')))
    expect(Buffer.byteLength(failure!.message)).toBeLessThanOrEqual(300)
    expect(failure!.message).not.toContain('sk-')
  })
})

describe('the conversation', () => {
  const invalid = '{"path": "a'
  const exact = '{ "path" : "\\u00e9" }'
  const messages: Message[] = [
    { role: 'user', content: 'look' },
    {
      role: 'assistant',
      content: 'I look.',
      reasoning: [
        {
          text: 'thought',
          providerMetadata: {
            anthropic: { signature: 'signed' },
            openai: { itemId: 'rs_1', reasoningEncryptedContent: 'sealed' },
          },
        },
        { text: 'unsealed', providerMetadata: { openai: { itemId: 'rs_2' } } },
      ],
      toolCalls: [
        { id: 'c1', name: 'list_files', arguments: exact },
        { id: 'c2', name: 'list_files', arguments: invalid },
        { id: 'c3', name: 'list_files', arguments: '' },
      ],
    },
    { role: 'tool', toolCallId: 'c1', toolName: 'list_files', content: 'a half \ud83d' },
    { role: 'tool', toolCallId: 'c2', toolName: 'list_files', content: 'not JSON', isError: true },
    { role: 'tool', toolCallId: 'c3', toolName: 'list_files', content: 'two' },
    { role: 'assistant', content: '', toolCalls: [] },
    { role: 'user', content: 'go on' },
  ]
  const wrapped = JSON.stringify({ invalid_arguments: invalid })
  const bodyAt = async (api: ModelApi) =>
    (await send(request(at(api), { messages, tools: [listFiles] }))).received!.body

  it('goes back over chat completions with the arguments as they were, also those that are no JSON', async () => {
    for (const api of ['openai_chatcompletions', 'openai_compatible'] as const) {
      const call = (id: string, args: string) => ({
        id,
        type: 'function',
        function: { name: 'list_files', arguments: args },
      })
      expect((await bodyAt(api)).messages).toEqual([
        { role: 'system', content: 'You help.' },
        { role: 'user', content: 'look' },
        {
          role: 'assistant',
          content: 'I look.',
          reasoning_content: 'thoughtunsealed',
          tool_calls: [call('c1', exact), call('c2', wrapped), call('c3', '{}')],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'a half \ufffd' },
        { role: 'tool', tool_call_id: 'c2', content: 'not JSON' },
        { role: 'tool', tool_call_id: 'c3', content: 'two' },
        { role: 'user', content: 'go on' },
      ])
    }
  })

  it('goes back over the responses API without anything stored there: sealed reasoning only', async () => {
    const body = await bodyAt('openai_responses')
    expect(body.store).toBe(false)
    const call = (call_id: string, args: string) => ({
      type: 'function_call',
      call_id,
      name: 'list_files',
      arguments: args,
    })
    expect(body.input.slice(2, -1)).toEqual([
      {
        type: 'reasoning',
        id: 'rs_1',
        encrypted_content: 'sealed',
        summary: [{ type: 'summary_text', text: 'thought' }],
      },
      { role: 'assistant', content: 'I look.' },
      call('c1', exact),
      call('c2', wrapped),
      call('c3', '{}'),
      { type: 'function_call_output', call_id: 'c1', output: 'a half \ufffd' },
      { type: 'function_call_output', call_id: 'c2', output: '{"error":"not JSON"}' },
      { type: 'function_call_output', call_id: 'c3', output: 'two' },
    ])
  })

  it('goes back to Anthropic with signed thinking first, and is marked for its cache', async () => {
    const body = await bodyAt('anthropic')
    expect(body.system).toEqual([{ type: 'text', text: 'You help.', cache_control: { type: 'ephemeral' } }])
    expect(body.messages[1].content).toEqual([
      { type: 'thinking', thinking: 'thought', signature: 'signed' },
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'c1', name: 'list_files', input: { path: 'é' } },
      { type: 'tool_use', id: 'c2', name: 'list_files', input: { invalid_arguments: invalid } },
      { type: 'tool_use', id: 'c3', name: 'list_files', input: {} },
    ])
    expect(body.messages[2].content).toMatchObject([
      { type: 'tool_result', tool_use_id: 'c1', content: 'a half \ufffd' },
      { type: 'tool_result', tool_use_id: 'c2', content: 'not JSON', is_error: true },
      { type: 'tool_result', tool_use_id: 'c3', content: 'two' },
      { type: 'text', text: 'go on', cache_control: { type: 'ephemeral' } },
    ])
    expect(body.messages).toHaveLength(3)
    const marks = JSON.stringify((await send(request(at('anthropic'), { messages }))).received!.body)
    expect(marks).not.toContain('cache_control') // an agent without tools hardly ever calls twice
  })

  it('goes back with arguments whose numbers are no doubles', async () => {
    const args = '{"n":9007199254740993,"x":1.23e40,"y":1.0}'
    const turn: Message[] = [
      { role: 'user', content: 'look' },
      { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'list_files', arguments: args }] },
      { role: 'tool', toolCallId: 'c1', toolName: 'list_files', content: 'two' },
    ]
    for (const api of ['anthropic', 'google'] as const) {
      const { received } = await send(request(at(api), { messages: turn, tools: [listFiles] }))
      expect(received!.text).toContain(args)
    }
  })

  it('goes back over the responses API with the phase of each text', async () => {
    const phased = (id: string, text: string, phase: string) => [
      { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id, phase } },
      { type: 'response.output_text.delta', item_id: id, output_index: 0, content_index: 0, delta: text },
      { type: 'response.output_item.done', output_index: 0, item: { type: 'message', id, phase } },
    ]
    const [begin, done] = [responsesEvents({}, usage)[0]!, responsesEvents({}, usage).at(-1)!]
    const said = [...phased('m1', 'I will look.', 'commentary'), ...phased('m2', 'It is two.', 'final_answer')]
    server.reply({ chunks: events([begin, ...said, done]) })
    const first = await createModel({ env }).call(request(at('openai_responses')))
    const message = JSON.parse(JSON.stringify(first.message)) as Message
    expect(message).toMatchObject({
      content: 'I will look.\n\nIt is two.',
      marks: [
        { from: 0, to: 12, providerMetadata: { openai: { phase: 'commentary' } } },
        { from: 14, to: 24, providerMetadata: { openai: { phase: 'final_answer' } } },
      ],
    })
    const { received } = await send(
      request(at('openai_responses'), { messages: [message, { role: 'user', content: 'go on' }] }),
    )
    expect(received!.body.input.slice(1, 3)).toEqual([
      { role: 'assistant', content: 'I will look.', phase: 'commentary' },
      { role: 'assistant', content: 'It is two.', phase: 'final_answer' },
    ])
    // another API gets the text in one piece
    const chat = await send(request(at('openai_compatible'), { messages: [message] }))
    expect(chat.received!.body.messages[1]).toEqual({ role: 'assistant', content: 'I will look.\n\nIt is two.' })
  })

  it.each(ALL)('%s: an answer that it gave can be sent again', async (api) => {
    const said = {
      reasoning: 'deep',
      text: ['I look.'],
      calls: [{ id: 'c1', name: 'list_files', args: ['{"path":', '"."}'] }],
    }
    const first = await send(request(at(api), { tools: [listFiles] }), { said })
    const { message } = first.result
    expect(message?.toolCalls).toHaveLength(1)
    // stored and read again in between
    const stored = JSON.parse(JSON.stringify(message)) as typeof message
    expect(stored).toEqual(message)
    const again: Message[] = [
      { role: 'user', content: 'look' },
      stored!,
      { role: 'tool', toolCallId: 'c1', toolName: 'list_files', content: 'two' },
    ]
    const { received, result } = await send(request(at(api), { messages: again, tools: [listFiles] }))
    expect(result.message?.content).toBe('ok')
    expect(JSON.stringify(received!.body)).toContain('deep')
  })
})

describe('parameters', () => {
  const bodyOf = async (api: ModelApi, more = {}, req: Partial<ModelRequest> = {}) =>
    (await send(request(at(api, more), req))).received!.body
  const atOpenai = async (api: ModelApi, more = {}) => {
    const def = { provider: 'openai', api, tokenKey: 'TEST_KEY', model: 'gpt-5', ...more }
    return (await send(request(def, { maxOutputTokens: 500 }))).received!.body
  }

  it('of a compatible endpoint are those that every server knows', async () => {
    const body = await bodyOf('openai_chatcompletions', { temperature: 0.5, topP: 0.9 }, { maxOutputTokens: 500 })
    expect(body).toEqual({
      model: 'test-model',
      messages: [
        { role: 'system', content: 'You help.' },
        { role: 'user', content: 'How many files are there?' },
      ],
      max_tokens: 500,
      temperature: 0.5,
      top_p: 0.9,
      stream: true,
      stream_options: { include_usage: true },
    })
  })

  it('of OpenAIs own newer models are the new ones at OpenAI; elsewhere the role stays system', async () => {
    const own = await atOpenai('openai_chatcompletions')
    expect(own).toMatchObject({ max_completion_tokens: 500, messages: [{ role: 'developer' }, {}] })
    expect(own.max_tokens).toBeUndefined()
    const elsewhere = await bodyOf('openai_chatcompletions', { model: 'gpt-5' }, { maxOutputTokens: 500 })
    expect(elsewhere).toMatchObject({ max_completion_tokens: 500, messages: [{ role: 'system' }, {}] })
    expect(elsewhere.max_tokens).toBeUndefined()
    expect(await atOpenai('openai_responses')).toMatchObject({
      store: false,
      include: ['reasoning.encrypted_content'],
      input: [{ role: 'developer' }, {}],
    })
    expect((await bodyOf('openai_responses', { model: 'gpt-5' })).input[0].role).toBe('system')
  })

  it('say the effort of reasoning in the words of the API', async () => {
    expect((await atOpenai('openai_chatcompletions', { thinkingBudget: 'low' })).reasoning_effort).toBe('low')
    expect((await atOpenai('openai_responses', { thinkingBudget: 2000 })).reasoning).toEqual({ effort: 'low' })
    expect((await bodyOf('openai_compatible', { thinkingBudget: 'high' })).reasoning_effort).toBe('high')
    expect(await bodyOf('openai_compatible', { thinkingBudget: 'none' })).not.toHaveProperty('reasoning_effort')
  })

  it('never let Anthropic think beyond the cap that the hold was computed with', async () => {
    const thinking = (thinkingBudget: number | string, maxOutputTokens?: number) =>
      bodyOf('anthropic', { model: 'claude-sonnet-4-0', thinkingBudget }, maxOutputTokens ? { maxOutputTokens } : {})
    expect(await thinking(4000, 10_000)).toMatchObject({ max_tokens: 10_000, thinking: { budget_tokens: 4000 } })
    expect(await thinking(8000, 10_000)).toMatchObject({ max_tokens: 10_000, thinking: { budget_tokens: 5000 } })
    expect(await thinking('low')).toMatchObject({ max_tokens: 32_768, thinking: { budget_tokens: 2048 } })
    const options = { thinking: { type: 'enabled', budgetTokens: 30_000 } }
    const smuggled = await bodyOf('anthropic', { options }, { maxOutputTokens: 2000 })
    expect(smuggled).toMatchObject({ max_tokens: 2000 })
    expect(smuggled.thinking).toBeUndefined()
    const small = await thinking(4000, 2000)
    expect(small).toMatchObject({ max_tokens: 2000 })
    expect(small.thinking).toBeUndefined()
  })

  it('take provider_opts, but not those that change what a call is or may cost', async () => {
    const options = {
      top_k: 40,
      seed: 7,
      service_tier: 'flex',
      rerank_prompt: 'x',
      model: 'dearer',
      max_tokens: 999_999,
      maxCompletionTokens: 999_999,
      n: 5,
      stream_options: { include_usage: false },
      store: true,
      fallbacks: 'default',
      contextManagement: { edits: [] },
      messages: [],
    }
    const compatible = await bodyOf('openai_compatible', { options, parallelToolCalls: false }, { tools: [listFiles] })
    expect(compatible).toMatchObject({ top_k: 40, seed: 7, service_tier: 'flex', parallel_tool_calls: false })
    expect(compatible).toMatchObject({ model: 'test-model', stream: true, messages: [{}, {}] })
    expect(compatible).toMatchObject({ max_tokens: 32_768, stream_options: { include_usage: true } })
    for (const key of ['n', 'store', 'maxCompletionTokens', 'rerank_prompt', 'fallbacks', 'contextManagement'])
      expect(compatible).not.toHaveProperty(key)
    const own = await atOpenai('openai_responses', { options })
    expect(own).toMatchObject({ model: 'gpt-5', store: false, max_output_tokens: 500, service_tier: 'flex' })
    const { service_tier: _, ...known } = options
    expect(await bodyOf('anthropic', { options: known }, { maxOutputTokens: 500 })).toMatchObject({
      top_k: 40,
      max_tokens: 500,
    })
  })

  it('say nothing about parallel calls where there are no tools', async () => {
    expect(await bodyOf('openai_compatible', { parallelToolCalls: false })).not.toHaveProperty('parallel_tool_calls')
    const claude = await bodyOf('anthropic', { parallelToolCalls: false }, { tools: [listFiles] })
    expect(claude.tool_choice).toEqual({ type: 'auto', disable_parallel_tool_use: true })
    expect(claude.tools[0]).not.toHaveProperty('eager_input_streaming')
  })
})

describe('the cap', () => {
  it('is sent with every call, as low as the model wants it', async () => {
    const sent = async (api: ModelApi, model: string, more = {}) => {
      const { body } = (await send(request(at(api, { model, ...more })))).received!
      return (
        body.max_tokens ?? body.max_completion_tokens ?? body.max_output_tokens ?? body.generationConfig.maxOutputTokens
      )
    }
    expect(await sent('openai_compatible', 'some-model')).toBe(32_768)
    expect(await sent('openai_chatcompletions', 'openai/gpt-4o')).toBe(16_384)
    expect(await sent('openai_responses', 'gpt-5')).toBe(32_768)
    expect(await sent('anthropic', 'claude-3-haiku-20240307')).toBe(4096)
    expect(await sent('google', 'gemini-2.0-flash')).toBe(8192)
    expect(await sent('google', 'gemini-2.0-flash', { maxTokens: 100 })).toBe(100)
  })

  it('that a model refuses is named in the failure, where the team file has given none', async () => {
    const refused = async (more = {}) => {
      const error = { message: 'max_tokens is too large: 32768. This model has a context of 8192 tokens.' }
      server.reply({ status: 400, chunks: [JSON.stringify({ error })] })
      return (await createModel({ env }).call(request(at('openai_compatible', more)))).failure
    }
    expect(await refused()).toEqual({
      class: 'invalid_request',
      message:
        'Give the model a lower max_tokens than 32768. HTTP 400: max_tokens is too large: 32768. This model has a context of 8192 tokens.',
    })
    expect((await refused({ maxTokens: 32_768 }))!.message).toMatch(/^HTTP 400/)
  })
})

describe('what cannot be called', () => {
  it('is refused with the reason and costs nothing', async () => {
    const { baseUrl: _, ...nowhere } = at('openai_compatible')
    const cases: [ModelRequest, RegExp][] = [
      [request(nowhere), /^base_url is missing/],
      [request(at('anthropic', { baseUrl: 'not a url' })), /is no URL/],
      [request(definition('scripted')), /scripted models are not served here/],
      [request(at('openai_responses', { options: { user: 5 } })), /user/i],
    ]
    for (const [req, message] of cases) {
      const { received, result } = await send(req)
      expect(received).toBeUndefined()
      expect(result).toMatchObject({ usage: tokens(0, 0), usageSource: 'reported' })
      expect(result.failure?.class).toBe('invalid_request')
      expect(result.failure?.message).toMatch(message)
    }
  })
})
