import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ModelDefinition } from '../../src/domain/team.ts'
import type { Message } from '../../src/domain/turn.ts'
import { createModel } from '../../src/model/model.ts'
import type { ModelRequest } from '../../src/ports.ts'
import { googleDocument } from '../support/provider-documents.ts'
import {
  events,
  googleEvents,
  type ProviderServer,
  type Reply,
  startProviderServer,
} from '../support/provider-server.ts'
import { baseUrl, definition, env, listFiles, request, tokens } from './call.ts'
import { whole } from './dialects.ts'

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const usage = { promptTokenCount: 9, candidatesTokenCount: 1, totalTokenCount: 10 }
const OK: Reply = { chunks: events(googleEvents({ text: ['ok'] }, usage)) }
const led: typeof fetch = (url, init) => fetch(String(url).replace(/^https:\/\/[^/]+/, server.url), init)

async function send(
  more: Partial<ModelDefinition> = {},
  options: { env?: typeof env; reply?: Reply; req?: Partial<ModelRequest> } = {},
) {
  const before = server.requests.length
  server.reply(options.reply ?? OK)
  const def = definition('google', { model: 'gemini-2.5-flash', baseUrl: baseUrl(server), ...more })
  const result = await createModel({ env: options.env ?? env, fetch: led }).call(request(def, options.req))
  server.clear()
  return { result, received: server.requests[before], requests: server.requests.length - before }
}

describe('keys', () => {
  const atHome = { baseUrl: '', tokenKey: undefined } as unknown as Partial<ModelDefinition>
  const keys =
    (...names: string[]) =>
    (name: string) =>
      names.includes(name) ? `key of ${name}` : undefined

  it.each([
    [['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'], 'GOOGLE_API_KEY'],
    [['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'], 'GEMINI_API_KEY'],
    [['GOOGLE_GENERATIVE_AI_API_KEY'], 'GOOGLE_GENERATIVE_AI_API_KEY'],
  ])('of %j the one that is taken is %s', async (names, taken) => {
    const { received } = await send(atHome, { env: keys(...names) })
    expect(received!.headers['x-goog-api-key']).toBe(`key of ${taken}`)
    expect(received!.path).toBe('/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse')
  })

  it('that are missing are all named', async () => {
    const { received, result } = await send(atHome, { env: () => undefined })
    expect(received).toBeUndefined()
    expect(result.failure).toEqual({
      class: 'auth',
      message:
        'GOOGLE_API_KEY or GEMINI_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY is not set: model gemini-2.5-flash of provider test needs it.',
    })
  })

  it('do not go to another host, also to another one of Google', async () => {
    const other = { baseUrl: 'https://storage.googleapis.com', tokenKey: undefined } as unknown as ModelDefinition
    const { received } = await send(other, { env: keys('GOOGLE_API_KEY') })
    expect(received!.headers).not.toHaveProperty('x-goog-api-key')
  })
})

describe('a request', () => {
  const bodyOf = async (more: Partial<ModelDefinition>, req: Partial<ModelRequest> = {}) =>
    (await send(more, { req })).received!.body

  it('goes to the version that the package wants', async () => {
    expect((await send({ baseUrl: server.url })).received!.path).toMatch(/^\/v1beta\/models\//)
    expect((await send({ baseUrl: `${server.url}/v1` })).received!.path).toMatch(/^\/v1\/models\//)
  })

  it('has the cap, and says how much may be thought in the words of the model', async () => {
    const config = async (model: string, thinkingBudget: number | string, maxOutputTokens = 10_000) =>
      (await bodyOf({ model, thinkingBudget }, { maxOutputTokens })).generationConfig
    expect(await config('gemini-2.5-flash', 4000)).toEqual({
      maxOutputTokens: 10_000,
      thinkingConfig: { thinkingBudget: 4000 },
    })
    const thinking = async (...args: Parameters<typeof config>) => (await config(...args)).thinkingConfig
    // half of the cap is left for the answer
    expect(await thinking('gemini-2.5-flash', 8000)).toEqual({ thinkingBudget: 5000 })
    expect(await thinking('gemini-2.5-flash', 'low')).toEqual({ thinkingBudget: 2048 })
    expect(await thinking('gemini-2.5-flash', -1)).toEqual({ thinkingBudget: -1 })
    expect(await thinking('gemini-2.5-flash', 'none')).toEqual({ thinkingBudget: 0 })
    expect(await thinking('gemini-2.5-pro', 'none')).toEqual({ thinkingBudget: 128 })
    expect(await thinking('gemini-2.5-flash', 1_000_000, 60_000)).toEqual({ thinkingBudget: 24_576 })
    expect(await thinking('gemini-3.5-flash', 'high')).toEqual({ thinkingLevel: 'high' })
    expect(await thinking('gemini-3.5-flash', 2000)).toEqual({ thinkingLevel: 'low' })
    expect(await thinking('gemini-3-pro-preview', 'none')).toEqual({ thinkingLevel: 'low' })
    expect(await thinking('gemini-3-pro-preview', -1)).toBeUndefined()
    expect(await thinking('gemini-2.0-flash', 'none')).toBeUndefined()
  })

  it('takes provider_opts, but nothing that adds to what a call may cost', async () => {
    const body = await bodyOf({
      options: {
        top_k: 7,
        seed: 3,
        service_tier: 'flex',
        thinking_config: { include_thoughts: true },
        cached_content: 'cachedContents/large',
        max_output_tokens: 999_999,
        continuation_token: 'more',
      },
    })
    expect(body).toMatchObject({ serviceTier: 'flex', generationConfig: { topK: 7, seed: 3, maxOutputTokens: 32_768 } })
    expect(body.generationConfig.thinkingConfig).toEqual({ includeThoughts: true })
    expect(JSON.stringify(body)).not.toMatch(/cachedContent|continuationToken|999/)
  })

  it('carries arguments with the numbers that the model wrote, and signatures where they were', async () => {
    const said = {
      text: ['I look.'],
      calls: [{ id: 'c1', name: 'list_files', args: ['{"n": 9007199254740993, "path": "é"}'] }],
    }
    const [text, call, end] = googleEvents(said, usage) as [
      { candidates: [{ content: { parts: object[] } }] },
      object,
      object,
    ]
    Object.assign(text.candidates[0].content.parts[0]!, { thoughtSignature: 'of the text' })
    const first = await send({}, { reply: { chunks: events([text, call, end]) }, req: { tools: [listFiles] } })
    const { message } = first.result
    expect(message).toEqual({
      role: 'assistant',
      content: 'I look.',
      marks: [{ from: 0, to: 7, providerMetadata: { google: { thoughtSignature: 'of the text' } } }],
      toolCalls: [
        {
          id: 'c1',
          name: 'list_files',
          arguments: '{"n":9007199254740993,"path":"é"}',
          providerMetadata: { google: { thoughtSignature: 'signed' } },
        },
      ],
    })
    const messages: Message[] = [
      { role: 'user', content: 'look' },
      JSON.parse(JSON.stringify(message)),
      { role: 'tool', toolCallId: 'c1', toolName: 'list_files', content: 'none', isError: true },
    ]
    const again = await send({ model: 'gemini-3.5-flash' }, { req: { messages, tools: [listFiles] } })
    const { text: sent, body } = again.received!
    expect(sent).toContain('"args":{"n":9007199254740993,"path":"é"}')
    expect(body.contents[1]).toMatchObject({
      role: 'model',
      parts: [
        { text: 'I look.', thoughtSignature: 'of the text' },
        { functionCall: { id: 'c1', name: 'list_files' }, thoughtSignature: 'signed' },
      ],
    })
    expect(body.contents[2].parts[0].functionResponse).toMatchObject({
      id: 'c1',
      response: { error: 'none' },
    })
  })
})

describe('an answer', () => {
  const ending = (finishReason: string, more: object = {}) => [
    ...googleEvents({ text: ['half'] }).slice(0, -1),
    { candidates: [{ content: { role: 'model', parts: [] }, finishReason, ...more }], usageMetadata: usage },
  ]

  it.each([
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['OTHER', 'other'],
  ])('that ends with %s ends with %s', async (word, reason) => {
    const { result } = await send({}, { reply: { chunks: events(ending(word)) } })
    expect(result).toMatchObject({ finishReason: reason, message: { content: 'half' }, usageSource: 'reported' })
  })

  it('with a call that is none is a failure worth another try, and is paid for', async () => {
    const { result } = await send({}, { reply: { chunks: events(ending('MALFORMED_FUNCTION_CALL')) } })
    expect(result.failure?.class).toBe('server')
    expect(result.usage).toEqual(tokens(9, 1))
  })

  it('to a prompt that is blocked is a refusal without an answer', async () => {
    const blocked = {
      promptFeedback: { blockReason: 'SAFETY' },
      usageMetadata: { promptTokenCount: 9, totalTokenCount: 9 },
    }
    for (const reply of [{ chunks: events([blocked]) }, whole(blocked)]) {
      const { result } = await send({}, { reply })
      expect(result).toMatchObject({ finishReason: 'content_filter', message: { content: '' } })
      expect(result.usage).toEqual(tokens(9, 0))
      expect(result.usageSource).toBe('reported')
    }
  })

  it('that could be continued is not: that would be a second request in one row of the books', async () => {
    const more = { continuationToken: 'more' }
    const streamed = await send({}, { reply: { chunks: events(ending('CONTINUATION', more)) } })
    const document = googleDocument({ text: ['half'] }, usage) as { candidates: [object] }
    Object.assign(document.candidates[0], { finishReason: 'CONTINUATION', ...more })
    const single = await send({ options: { stream: false } }, { reply: whole(document) })
    for (const { result, requests } of [streamed, single]) {
      expect(requests).toBe(1)
      expect(result).toMatchObject({ finishReason: 'length', message: { content: 'half' }, usageSource: 'reported' })
      expect(result.usage).toEqual(tokens(9, 1))
    }
  })
})
