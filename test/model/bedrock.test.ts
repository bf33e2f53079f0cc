import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ModelDefinition } from '../../src/domain/team.ts'
import type { Message } from '../../src/domain/turn.ts'
import { createModel } from '../../src/model/model.ts'
import type { ModelRequest } from '../../src/ports.ts'
import {
  type AwsEvent,
  awsFrames,
  converseEvents,
  type ProviderServer,
  type Reply,
  startProviderServer,
} from '../support/provider-server.ts'
import { listFiles, request, tokens } from './call.ts'

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const CLAUDE = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const HEADERS = { 'content-type': 'application/vnd.amazon.eventstream', 'x-amzn-requestid': 'request-1' }
const usage = { inputTokens: 9, outputTokens: 1, totalTokens: 10 }
const reply = (list: readonly AwsEvent[]): Reply => ({ chunks: awsFrames(list), headers: HEADERS })
const OK = reply(converseEvents({ text: ['ok'] }, usage))
const CREDENTIALS = { accessKeyId: 'ASIATESTTESTTEST', secretAccessKey: 'the-secret', sessionToken: 'the-session' }
const REGION = { AWS_REGION: 'eu-central-1' }

interface Options {
  env?: { readonly [name: string]: string }
  reply?: Reply
  req?: Partial<ModelRequest>
  credentials?: () => Promise<typeof CREDENTIALS>
}

async function send(more: Partial<ModelDefinition> = {}, options: Options = {}) {
  const before = server.requests.length
  const asked: string[] = []
  const led: typeof fetch = (url, init) => {
    asked.push(String(url))
    return fetch(String(url).replace(/^https:\/\/[^/]+/, server.url), init)
  }
  server.reply(options.reply ?? OK)
  const def: ModelDefinition = { provider: 'amazon-bedrock', api: 'amazon_bedrock', model: CLAUDE, ...more }
  const model = createModel({
    env: (name) => (options.env ?? REGION)[name as keyof typeof options.env],
    fetch: led,
    awsCredentials: options.credentials ?? (async () => CREDENTIALS),
  })
  const result = await model.call(request(def, options.req))
  server.clear()
  return { result, received: server.requests[before], url: asked[0] }
}

describe('access', () => {
  it('is signed with the credentials of the function, for the region', async () => {
    const { received, url, result } = await send()
    expect(url).toBe(
      `https://bedrock-runtime.eu-central-1.amazonaws.com/model/${encodeURIComponent(CLAUDE)}/converse-stream`,
    )
    expect(received!.headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=ASIATESTTESTTEST\/\d{8}\/eu-central-1\/bedrock\/aws4_request, /,
    )
    expect(received!.headers['x-amz-security-token']).toBe('the-session')
    expect(result).toMatchObject({ message: { content: 'ok' }, responseId: 'request-1' })
    expect(result.usage).toEqual(tokens(9, 1))
  })

  it('is by the key of Bedrock where there is one', async () => {
    const { received } = await send({}, { env: { ...REGION, AWS_BEARER_TOKEN_BEDROCK: ' the-key\n' } })
    expect(received!.headers.authorization).toBe('Bearer the-key')
    expect(received!.headers).not.toHaveProperty('x-amz-security-token')
    const named = await send(
      { tokenKey: 'MY_KEY' },
      { env: { ...REGION, MY_KEY: 'mine', AWS_BEARER_TOKEN_BEDROCK: 'no' } },
    )
    expect(named.received!.headers.authorization).toBe('Bearer mine')
  })

  it.each([
    [{ region: 'us-west-2' }, { AWS_REGION: 'eu-central-1' }, 'bedrock-runtime.us-west-2.amazonaws.com'],
    [{}, { AWS_REGION: 'eu-central-1', AWS_DEFAULT_REGION: 'us-east-1' }, 'bedrock-runtime.eu-central-1.amazonaws.com'],
    [{}, { AWS_DEFAULT_REGION: 'us-east-1' }, 'bedrock-runtime.us-east-1.amazonaws.com'],
    [{ region: 'cn-north-1' }, {}, 'bedrock-runtime.cn-north-1.amazonaws.com.cn'],
  ])('is in the region of %j, then of %j', async (options, env, host) => {
    expect(new URL((await send({ options }, { env: env as Options['env'] & object })).url!).host).toBe(host)
  })

  it('goes to AWS alone: nobody else gets the key or the credentials', async () => {
    for (const host of [
      'llm.example.com',
      'x.execute-api.eu-central-1.amazonaws.com',
      'bedrock-runtime.amazonaws.com.evil.com',
    ])
      for (const env of [REGION, { ...REGION, AWS_BEARER_TOKEN_BEDROCK: 'the-key' }]) {
        const { received, result } = await send({ baseUrl: `https://${host}` }, { env })
        expect(received).toBeUndefined()
        expect(result.failure).toMatchObject({ class: 'auth', message: expect.stringContaining(host) })
      }
    const inside = 'https://vpce-0a1b-xyz.bedrock-runtime.eu-central-1.vpce.amazonaws.com'
    expect((await send({ baseUrl: inside })).received!.headers.authorization).toContain('AWS4-HMAC-SHA256')
    const gateway = await send(
      { baseUrl: 'https://llm.example.com', tokenKey: 'MY_KEY' },
      { env: { ...REGION, MY_KEY: 'mine' } },
    )
    expect(gateway.received!.headers.authorization).toBe('Bearer mine')
  })

  it.each<[string, Partial<ModelDefinition>, Options['env'] & object, RegExp, string]>([
    [
      'token_key names what is never sent',
      { tokenKey: 'AWS_SESSION_TOKEN' },
      REGION,
      /names AWS_SESSION_TOKEN/,
      'auth',
    ],
    ['no region is known', {}, {}, /has no region: set provider_opts.region or AWS_REGION/, 'invalid_request'],
    ['the region is a trick', { options: { region: 'x.evil.com/' } }, {}, /is no name of a region/, 'invalid_request'],
    [
      'role_arn',
      { options: { role_arn: 'arn:x' } },
      REGION,
      /provider_opts.role_arn .* is not supported/,
      'invalid_request',
    ],
    ['profile', { options: { profile: 'me' } }, REGION, /provider_opts.profile .* is not supported/, 'invalid_request'],
    ['endpoint_url', { options: { endpoint_url: 'x' } }, REGION, /the address is base_url/, 'invalid_request'],
  ])('is refused before any request where %s', async (_, more, env, message, kind) => {
    const { received, result } = await send(more, { env })
    expect(received).toBeUndefined()
    expect(result).toMatchObject({ failure: { class: kind }, usage: tokens(0, 0), usageSource: 'reported' })
    expect(result.failure!.message).toMatch(message)
  })

  it('is refused with the reason where there are no credentials', async () => {
    const { received, result } = await send({}, { credentials: () => Promise.reject(new Error('nothing found')) })
    expect(received).toBeUndefined()
    expect(result).toMatchObject({ usage: tokens(0, 0), usageSource: 'reported' })
    expect(result.failure).toEqual({
      class: 'auth',
      message: `There are no AWS credentials for model ${CLAUDE}: nothing found`,
    })
  })

  it('is not looked for in the environment of the process', async () => {
    const names = ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME']
    const before = names.map((name) => process.env[name])
    for (const name of names) process.env[name] = name.includes('URL') ? 'http://127.0.0.1:9' : 'of-the-process'
    try {
      const { received, url } = await send()
      expect(url).toContain('bedrock-runtime.eu-central-1.amazonaws.com')
      expect(received!.headers.authorization).toContain('AWS4-HMAC-SHA256')
    } finally {
      for (const [i, name] of names.entries()) {
        if (before[i] === undefined) delete process.env[name]
        else process.env[name] = before[i]
      }
    }
  })

  it('leaves no secret in the text of a failure', async () => {
    const message = 'The canonical string was x-amz-security-token:the-session by ASIATESTTESTTEST, the-secret'
    const { result } = await send({}, { reply: { status: 403, headers: {}, chunks: [JSON.stringify({ message })] } })
    expect(result.failure).toEqual({
      class: 'auth',
      message: 'HTTP 403: The canonical string was x-amz-security-token:[key] by [key], [key]',
    })
  })
})

describe('a request', () => {
  const bodyOf = async (more: Partial<ModelDefinition>, req: Partial<ModelRequest> = {}) =>
    (await send(more, { req })).received!.body

  it('is cached for Claude with tools, unless the team file says no', async () => {
    const marked = await bodyOf({}, { tools: [listFiles] })
    expect(marked.system).toEqual([{ text: 'You help.' }, { cachePoint: { type: 'default' } }])
    expect(marked.messages[0].content).toEqual([
      { text: 'How many files are there?' },
      { cachePoint: { type: 'default' } },
    ])
    for (const more of [
      { options: { disable_prompt_caching: true } },
      { model: 'anthropic.claude-3-haiku-20240307-v1:0' },
      { model: 'amazon.nova-pro-v1:0' },
    ])
      expect(JSON.stringify(await bodyOf(more, { tools: [listFiles] }))).not.toContain('cachePoint')
    expect(JSON.stringify(await bodyOf({}))).not.toContain('cachePoint')
  })

  it('never lets a model think beyond the cap that the hold was computed with', async () => {
    const at = (thinkingBudget: number | string, more: Partial<ModelDefinition> = {}) =>
      bodyOf({ thinkingBudget, ...more }, { maxOutputTokens: 10_000 })
    const cap = { inferenceConfig: { maxTokens: 10_000 } }
    const fields = {
      thinking: { type: 'enabled', budget_tokens: 4000 },
      anthropic_beta: ['interleaved-thinking-2025-05-14'],
    }
    expect(await at(4000)).toMatchObject({ ...cap, additionalModelRequestFields: fields })
    expect((await at(9000)).additionalModelRequestFields.thinking.budget_tokens).toBe(5000)
    const alone = await at(4000, { options: { interleaved_thinking: false } })
    expect(alone).toMatchObject(cap)
    expect(alone.additionalModelRequestFields).not.toHaveProperty('anthropic_beta')
    const adaptive = await at(4000, { model: 'global.anthropic.claude-opus-5-5' })
    expect(adaptive).toMatchObject({ ...cap, additionalModelRequestFields: { thinking: { type: 'adaptive' } } })
    expect((await at('none')).additionalModelRequestFields).toBeUndefined()
    // with a high effort Nova takes no cap at all
    const nova = await at('high', { model: 'amazon.nova-2-lite-v1:0' })
    expect(nova).toMatchObject({
      ...cap,
      additionalModelRequestFields: { reasoningConfig: { maxReasoningEffort: 'medium' } },
    })
    expect(await at('high', { model: 'openai.gpt-oss-120b-1:0' })).toMatchObject(cap)
  })

  it('takes provider_opts, but nothing that changes what is asked or what a call may cost', async () => {
    const body = await bodyOf(
      {
        options: {
          top_k: 7,
          guardrail_config: { guardrailIdentifier: 'g', guardrailVersion: '1' },
          additional_model_request_fields: { safe_prompt: true, max_tokens: 999_999, thinking: { budget_tokens: 99 } },
          inference_config: { maxTokens: 999_999 },
          reasoning_config: { type: 'enabled', budgetTokens: 99_999 },
          messages: [],
          system: [],
          toolConfig: {},
          anything: 'else',
        },
      },
      { maxOutputTokens: 500 },
    )
    expect(body).toEqual({
      system: [{ text: 'You help.' }],
      messages: [{ role: 'user', content: [{ text: 'How many files are there?' }] }],
      inferenceConfig: { maxTokens: 500 },
      guardrailConfig: { guardrailIdentifier: 'g', guardrailVersion: '1' },
      additionalModelRequestFields: { safe_prompt: true, top_k: 7 },
      additionalModelResponseFieldPaths: ['/delta/stop_sequence'],
    })
  })

  it('says of parallel calls what Claude understands', async () => {
    const { toolConfig, additionalModelRequestFields } = await bodyOf(
      { parallelToolCalls: false },
      { tools: [listFiles] },
    )
    expect(JSON.stringify([toolConfig, additionalModelRequestFields])).toContain('"disable_parallel_tool_use":true')
  })

  it('carries an answer back: signed reasoning, and the numbers that the model wrote', async () => {
    const said = {
      reasoning: 'deep',
      text: ['I look.'],
      calls: [{ id: 'c1', name: 'list_files', args: ['{"n": 90071992', '54740993}'] }],
    }
    const first = await send({}, { reply: reply(converseEvents(said, usage)), req: { tools: [listFiles] } })
    const { message } = first.result
    expect(message!.toolCalls[0]!.arguments).toBe('{"n": 9007199254740993}')
    expect(message!.reasoning).toEqual([{ text: 'deep', providerMetadata: { amazonBedrock: { signature: 'signed' } } }])
    const messages: Message[] = [
      { role: 'user', content: 'look' },
      JSON.parse(JSON.stringify(message)),
      { role: 'tool', toolCallId: 'c1', toolName: 'list_files', content: 'none' },
    ]
    const sent = (await send({}, { req: { messages, tools: [listFiles] } })).received!.text
    expect(sent).toContain('"input":{"n":9007199254740993}')
    expect(JSON.parse(sent).messages[1].content).toMatchObject([
      { reasoningContent: { reasoningText: { text: 'deep', signature: 'signed' } } },
      { text: 'I look.' },
      { toolUse: { toolUseId: 'c1', name: 'list_files' } },
    ])
  })
})

describe('a stream', () => {
  const half = converseEvents({ text: ['half'] }).slice(0, 2)

  it.each([
    ['throttlingException', 'rate_limit'],
    ['serviceUnavailableException', 'overloaded'],
    ['internalServerException', 'server'],
    ['modelStreamErrorException', 'server'],
    ['validationException', 'invalid_request'],
    ['someNewException', 'server'],
  ])('that ends with a %s fails, and what had come is booked', async (name, kind) => {
    const exception: AwsEvent = { kind: 'exception', name, body: { message: 'no' } }
    const { result } = await send({}, { reply: reply([...half, exception]) })
    expect(result.failure).toEqual({ class: kind, message: `${name}: no` })
    expect(result.usage).toEqual(tokens(9, 1))
    expect(result.usageSource).toBe('estimated')
  })

  it('that is cut inside a frame is incomplete, and what had come is booked', async () => {
    const frames = Buffer.concat(awsFrames(converseEvents({ text: ['half', 'and the rest'] }, usage)))
    const at = frames.indexOf('and the rest') + 5
    const { result } = await send({}, { reply: { chunks: [frames.subarray(0, at)], headers: HEADERS } })
    expect(result.failure?.class).toBe('incomplete')
    expect(result.usage).toEqual(tokens(9, 1))
  })

  it('that is none is incomplete', async () => {
    for (const chunks of [['<html>this is no event stream</html>'], [Buffer.alloc(64)]]) {
      const { result } = await send({}, { reply: { chunks, headers: HEADERS } })
      expect(result.failure?.class).toBe('incomplete')
      expect(result.usageSource).toBe('estimated')
    }
  })

  it.each([
    ['max_tokens', 'length'],
    ['guardrail_intervened', 'content_filter'],
    ['content_filtered', 'content_filter'],
    ['stop_sequence', 'stop'],
  ])('that stops with %s ends with %s', async (word, reason) => {
    const list = converseEvents({ text: ['half'] }, usage).map((e) =>
      e.name === 'messageStop' ? { ...e, body: { stopReason: word } } : e,
    )
    const { result } = await send({}, { reply: reply(list) })
    expect(result).toMatchObject({ finishReason: reason, message: { content: 'half' } })
  })

  it('that names the model behind a router says who answered', async () => {
    const list = converseEvents({ text: ['ok'] }, usage)
    const { name, kind, body } = list.at(-1)!
    const routed = { kind, name, body: { ...body, trace: { promptRouter: { invokedModelId: 'the-small-one' } } } }
    expect((await send({}, { reply: reply([...list.slice(0, -1), routed]) })).result.answeredBy).toBe('the-small-one')
  })
})
