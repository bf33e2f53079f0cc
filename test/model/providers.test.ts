import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createModel } from '../../src/model/model.ts'
import type { ModelResult } from '../../src/ports.ts'
import {
  anthropicEvents,
  chatEvents,
  events,
  type ProviderServer,
  type Reply,
  refusal,
  startProviderServer,
} from '../support/provider-server.ts'
import { ESTIMATED_INPUT, env, KEY, request, tokens } from './call.ts'
import {
  anthropicUsage,
  chatUsage,
  claudeInput,
  DIALECTS,
  type Dialect,
  dialect,
  errorWith,
  HALF,
  half,
  openaiBooked,
  rerouted,
  responsesUsage,
  streamed,
  TEXT,
  target,
  watched,
  whole,
} from './dialects.ts'

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const NOW = Date.parse('2026-01-01T00:00:00Z')

const call = (
  d: Dialect,
  reply: Reply,
  signal = new AbortController().signal,
  via = rerouted(server),
): Promise<ModelResult> => {
  server.reply(reply)
  return createModel({ env, fetch: via, now: () => NOW }).call(request(target(d, server), { signal }))
}

/** What must be booked for an answer that broke in the middle. */
function expectHalf(d: Dialect, result: ModelResult): void {
  expect(result.message).toBeUndefined()
  expect(result.usage).toEqual(d.opening ? { ...d.opening, outputTokens: HALF } : tokens(ESTIMATED_INPUT, HALF))
  expect(result.usageSource).toBe(d.opening ? 'partial' : 'estimated')
}

describe.each(DIALECTS)('$name', (d) => {
  it('books a whole answer as the provider reports it', async () => {
    const said = { text: TEXT, model: 'test-model-2026', id: 'id-1' }
    const result = await call(d, streamed(d, d.whole(said, true)))
    expect(result.message).toMatchObject({ content: 'There are two.', toolCalls: [] })
    expect(result.finishReason).toBe('stop')
    // Bedrock's stream names neither itself nor its model
    if (d.api !== 'amazon_bedrock') expect(result).toMatchObject({ responseId: 'id-1', answeredBy: 'test-model-2026' })
    expect(result.usage).toEqual(d.booked)
    expect(result.usageSource).toBe('reported')
    expect(JSON.parse(result.rawUsage!)).toBeTypeOf('object')
    expect(result.failure).toBeUndefined()
  })

  it('reads an answer that comes byte by byte and whose connection stays open after its end', async () => {
    const bytewise: typeof fetch = async (url, init) => {
      const response = await rerouted(server)(url, init)
      const split = new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, controller) {
          for (const b of bytes) controller.enqueue(Uint8Array.of(b))
        },
      })
      return new Response(response.body!.pipeThrough(split), { headers: response.headers })
    }
    const { chunks, headers = {} } = streamed(d, d.whole({ text: ['Über ', 'hundert 🐟'] }, true))
    const returns = chunks.map((c) => (typeof c === 'string' ? c.replaceAll('\n', '\r\n') : c))
    const reply: Reply = { chunks: returns, headers, ending: 'hang' }
    const result = await call(d, reply, new AbortController().signal, bytewise)
    expect(result.message?.content).toBe('Über hundert 🐟')
    expect(result.usage).toEqual(d.booked)
    expect(result.usageSource).toBe('reported')
  })

  it('keeps the arguments of a tool call to the last byte', async () => {
    const args = ['{"path" : ', '"a\\u00e9é",', ' "n":9007199254740993, "x":1.23e40 }']
    const calls = [{ id: 'call_a', name: 'list_files', args }]
    const result = await call(d, streamed(d, d.whole({ calls }, true)))
    expect(result.finishReason).toBe('tool_calls')
    const exact = d.objects ? '{"path":"aéé","n":9007199254740993,"x":1.23e40}' : args.join('')
    expect(result.message!.toolCalls[0]).toMatchObject({ id: 'call_a', name: 'list_files', arguments: exact })
  })

  // Anthropic's package does not read a stream without any usage: see below
  if (d.needsUsage !== 'all')
    it('books an answer without usage as an estimate', async () => {
      const result = await call(d, streamed(d, d.whole({ text: TEXT }, false)))
      expect(result.message?.content).toBe('There are two.')
      expect(result.usage).toEqual(tokens(ESTIMATED_INPUT, 4))
      expect(result.usageSource).toBe('estimated')
    })

  it.each([
    ['minds', true],
    ['does not mind', false],
  ])('books what was said when the caller breaks off, and lets go of a fetch that %s the signal', async (_, minds) => {
    const abort = new AbortController()
    const { fetch, seen } = watched(server, 'are ', minds)
    const result = call(d, { ...streamed(d, half(d)), ending: 'hang' }, abort.signal, fetch)
    await seen
    abort.abort('stopped')
    expectHalf(d, await result)
    expect((await result).failure).toEqual({ class: 'aborted', message: 'The call was broken off (stopped).' })
    await server.requests.at(-1)!.closed
  })

  it('books what was said when the connection is cut', async () => {
    const result = await call(d, { ...streamed(d, half(d)), ending: 'cut' })
    expectHalf(d, result)
    expect(result.failure?.class).toBe('network')
  })

  it('books what was said when the stream ends without its mark', async () => {
    const result = await call(d, streamed(d, half(d)))
    expectHalf(d, result)
    expect(result.failure?.class).toBe('incomplete')
  })

  it('books what was said before an error inside the stream, and does not wait for its end', async () => {
    const result = await call(d, { ...streamed(d, [...half(d), d.errorEvent]), ending: 'hang' })
    expectHalf(d, result)
    expect(result.failure?.class).toBe(d.errorClass)
  })

  it('takes an error at the very start of a 200 stream for a failure that may have cost its input', async () => {
    const result = await call(d, streamed(d, [d.errorEvent]))
    expect(result.failure?.class).toBe(d.errorClass)
    expect(result.usage).toEqual(tokens(ESTIMATED_INPUT, 0))
    expect(result.usageSource).toBe('estimated')
  })

  it('ends at once when the caller breaks off a provider that never answers, whatever its fetch does', async () => {
    const abort = new AbortController()
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    const deaf: typeof fetch = () => {
      resolve()
      return new Promise(() => {})
    }
    const result = createModel({ env, fetch: deaf }).call(request(target(d, server), { signal: abort.signal }))
    await asked
    abort.abort('timeout')
    expect(await result).toMatchObject({
      failure: { class: 'timeout' },
      usage: tokens(ESTIMATED_INPUT, 0),
      usageSource: 'estimated',
    })
  })

  it.each([
    [429, { 'retry-after': '2' }, 'rate_limit', 2000],
    [429, { 'retry-after-ms': '350', 'retry-after': '2' }, 'rate_limit', 350],
    [503, { 'retry-after': 'Thu, 01 Jan 2026 00:00:05 GMT' }, 'overloaded', 5000],
    [529, {}, 'overloaded', undefined],
    [401, {}, 'auth', undefined],
    [403, {}, 'auth', undefined],
    [400, {}, 'invalid_request', undefined],
    [404, {}, 'invalid_request', undefined],
  ])('books nothing for a refusal with %i %o', async (status, headers, kind, retryAfterMs) => {
    const body = d.errorBody(`no, ${KEY} will not do`)
    const result = await call(d, { status, ...whole(body), headers: { ...whole(body).headers, ...headers } })
    expect(result).toEqual({
      finishReason: 'error',
      usage: tokens(0, 0),
      usageSource: 'reported',
      failure: {
        class: kind,
        message: `HTTP ${status}: no, [key] will not do`,
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      },
    })
  })

  it('books the input of a call that failed with 500, because the model may have worked', async () => {
    const result = await call(d, { status: 500, ...whole(d.errorBody('oops')) })
    expect(result.failure).toEqual({ class: 'server', message: 'HTTP 500: oops' })
    expect(result.usage).toEqual(tokens(ESTIMATED_INPUT, 0))
    expect(result.usageSource).toBe('estimated')
  })

  it('books what an error says of usage, wherever it comes', async () => {
    const usage = d.counts(5000, 1200)
    const body = { ...d.errorBody('oops'), ...usage }
    const event = errorWith(d, usage)
    for (const reply of [
      streamed(d, [...half(d), event]),
      streamed(d, [event]),
      whole(body),
      { status: 500, ...whole(body) },
      { status: 400, ...whole(body) },
    ]) {
      const result = await call(d, reply)
      expect(result.message).toBeUndefined()
      expect(result.usage).toMatchObject({
        inputTokens: expect.toSatisfy((n: number) => n >= 5000),
        outputTokens: 1200,
      })
      expect(result.usageSource).toBe('partial')
    }
    const nothing = await call(d, { status: 429, ...whole({ ...d.errorBody('busy'), ...d.counts(0, 0) }) })
    expect(nothing).toMatchObject({ usage: tokens(0, 0), usageSource: 'reported' })
  })

  it('never books less than what had come, whatever an error says of usage', async () => {
    const usage = d.counts(5000, 1)
    const event = errorWith(d, usage)
    const result = await call(d, streamed(d, [...half(d), event]))
    expect(result.usage).toMatchObject({ outputTokens: HALF })
  })

  it('makes one request a call: nothing is retried behind the books', async () => {
    const before = server.requests.length
    await call(d, refusal(500, 'oops'))
    await call(d, refusal(429, 'slow down', { 'retry-after': '0' }))
    expect(server.requests.length - before).toBe(2)
  })

  it('books nothing where nobody listens', async () => {
    const nowhere = await startProviderServer()
    await nowhere.close()
    const lost: typeof fetch = (url, init) => fetch(String(url).replace(/^https?:\/\/[^/]+/, nowhere.url), init)
    const result = await createModel({ env, fetch: lost }).call(request(target(d, server)))
    expect(result).toMatchObject({ failure: { class: 'network' }, usage: tokens(0, 0), usageSource: 'reported' })
  })

  it('makes no request for a call that was broken off before it began', async () => {
    const before = server.requests.length
    const result = await createModel({ env, fetch: rerouted(server) }).call(
      request(target(d, server), { signal: AbortSignal.abort() }),
    )
    expect(result).toMatchObject({ failure: { class: 'aborted' }, usage: tokens(0, 0), usageSource: 'reported' })
    expect(server.requests.length).toBe(before)
  })
})

describe('what one API alone does', () => {
  const responses = dialect('responses')
  const anthropic = dialect('anthropic')
  const compatible = dialect('openai_compatible')

  it('responses: a failed response keeps the usage that it reports', async () => {
    const output = { output_tokens: 12, output_tokens_details: { reasoning_tokens: 8 }, total_tokens: 2012 }
    const usage = { ...responsesUsage, ...output }
    const failed = (sequence: object) => ({
      type: 'response.failed',
      ...sequence,
      response: { id: 'resp_1', error: { code: 'server_error', message: 'It broke' }, usage },
    })
    // the package refuses the event without its sequence number, and with it the usage
    for (const event of [failed({ sequence_number: 9 }), failed({})]) {
      for (const before of [[], half(responses)]) {
        const result = await call(responses, { chunks: events([...before, event]) })
        expect(result.failure).toEqual({ class: 'server', message: 'server_error: It broke' })
        expect(result.usage).toEqual(tokens(2000, 12, { cacheReadTokens: 1920, reasoningTokens: 8 }))
        expect(result.usageSource).toBe('partial')
      }
    }
  })

  it('anthropic: a stream that ends before message_stop is incomplete though its usage is known', async () => {
    const list = anthropicEvents({ text: TEXT }, anthropicUsage, { output_tokens: 77 })
    const result = await call(anthropic, { chunks: events(list.slice(0, -1)) })
    expect(result.failure?.class).toBe('incomplete')
    expect(result.usage).toEqual(tokens(31_521, 77, claudeInput))
    expect(result.usageSource).toBe('partial')
  })

  it('anthropic: without a closing usage the output is what was received, and nothing is ever NaN', async () => {
    const half = await call(anthropic, { chunks: events(anthropicEvents({ text: TEXT }, anthropicUsage, undefined)) })
    expect(half.message?.content).toBe('There are two.')
    expect(half.usage).toEqual(tokens(31_521, 4, claudeInput))
    expect(half.usageSource).toBe('partial')
    const none = await call(anthropic, { chunks: events(anthropicEvents({ text: TEXT }, undefined, undefined)) })
    expect(none.failure?.class).toBe('incomplete')
    expect(none.usage).toEqual(tokens(ESTIMATED_INPUT, 4))
    expect(none.usageSource).toBe('estimated')
  })

  it.each([
    ['NaN', 'NaN'],
    ['text', '"many"'],
    ['null', 'null'],
  ])('compatible: a usage of %s is an estimate, and the answer is kept', async (_, value) => {
    const list = events(chatEvents({ text: TEXT }, { prompt_tokens: 777, completion_tokens: 777 }))
    const chunks = list.map((e) => e.replaceAll('777', value))
    const result = await call(compatible, { chunks })
    expect(result.message?.content).toBe('There are two.')
    expect(result.usage).toEqual(tokens(ESTIMATED_INPUT, 4))
    expect(result.usageSource).toBe('estimated')
  })

  it('compatible: an answer that ends without [DONE] is whole, one that breaks after its end too', async () => {
    const list = chatEvents({ text: TEXT }, chatUsage).slice(0, -1)
    for (const ending of ['end', 'cut'] as const) {
      const result = await call(compatible, { chunks: events(list), ending })
      expect(result.message?.content).toBe('There are two.')
      expect(result.usageSource).toBe('reported')
    }
  })

  it('compatible: an event of the answer that cannot be read makes it incomplete', async () => {
    const list = events(chatEvents({ text: TEXT }, chatUsage))
    const chunks = list.map((e) => (e.includes('"are "') ? 'data: {"choices": [{"delta": {"content": "are"\n\n' : e))
    const result = await call(compatible, { chunks })
    expect(result.message).toBeUndefined()
    expect(result.failure?.class).toBe('incomplete')
    expect(result.usage).toEqual(openaiBooked)
    expect(result.usageSource).toBe('partial')
  })

  it('an account without money is not asked again', async () => {
    const body = {
      error: { message: 'You exceeded your quota', type: 'insufficient_quota', code: 'insufficient_quota' },
    }
    const result = await call(compatible, { status: 429, chunks: [JSON.stringify(body)] })
    expect(result.failure?.class).toBe('auth')
  })

  it('a redirect is not followed, so that no key goes to another host', async () => {
    const before = server.requests.length
    const result = await call(anthropic, { status: 307, headers: { location: `${server.url}/other` }, chunks: [] })
    expect(result.failure?.class).toBe('network')
    expect(server.requests.length - before).toBe(1)
  })
})
