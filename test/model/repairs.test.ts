import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { ModelApi } from '../../src/domain/team.ts'
import type { Message } from '../../src/domain/turn.ts'
import { addTotals, NO_TOTALS } from '../../src/domain/usage.ts'
import { createModel } from '../../src/model/model.ts'
import { toPrompt } from '../../src/model/prompt.ts'
import { bookAgain, bookUsage } from '../../src/model/usage.ts'
import { anthropicDocument, chatDocument, responsesDocument } from '../support/provider-documents.ts'
import {
  anthropicEvents,
  awsFrames,
  chatEvents,
  converseEvents,
  events,
  googleEvents,
  type ProviderServer,
  type Reply,
  responsesEvents,
  type Said,
  startProviderServer,
} from '../support/provider-server.ts'
import { definition, env, listFiles, request, tokens } from './call.ts'
import { DIALECTS, dialect, rerouted, streamed, target, whole } from './dialects.ts'

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const play = (name: string, reply: Reply, messages: readonly Message[] = request(definition('anthropic')).messages) => {
  server.reply(reply)
  const { fetch, ...d } = { fetch: rerouted(server), ...target(dialect(name), server) }
  return createModel({ env, fetch }).call(request(d, { messages, tools: [listFiles] }))
}
const CHATS = ['chat completions at OpenAI', 'chat completions elsewhere', 'openai_compatible']
const usage = { prompt_tokens: 20, completion_tokens: 5 }
const responsesUsage = { input_tokens: 20, output_tokens: 5 }
const ARGS = '{"path":"a","n":9007199254740993}'
const CALL = { id: 'call_a', name: 'list_files', args: [ARGS] }
const called = { finishReason: 'tool_calls', usage: tokens(20, 5), usageSource: 'reported' }

/** A text of JSON in which something is said in another way. */
const altered = (list: readonly (object | string)[], from: string | RegExp, to: string): Reply => ({
  chunks: events(list).map((e) => e.replace(from, to)),
})

describe('counts that no request can have', () => {
  const MAX = Number.MAX_SAFE_INTEGER
  const book = (api: ModelApi, raw: object) =>
    bookUsage(api, { usage: raw as Readonly<Record<string, unknown>>, usageFinal: true, outputBytes: 40 }, 9, true)

  it.each<[ModelApi, object]>([
    [
      'openai_chatcompletions',
      { prompt_tokens: 20, completion_tokens: MAX, prompt_tokens_details: { cached_tokens: MAX } },
    ],
    ['openai_responses', { input_tokens: 20, output_tokens: MAX, output_tokens_details: { reasoning_tokens: MAX } }],
    ['anthropic', { input_tokens: 20, output_tokens: 1e9 + 1, cache_read_input_tokens: MAX }],
    ['google', { promptTokenCount: 20, candidatesTokenCount: MAX, totalTokenCount: MAX }],
    ['amazon_bedrock', { inputTokens: 20, outputTokens: MAX, cacheDetails: [{ ttl: '1h', inputTokens: MAX }] }],
  ])('%s: are not said', (api, raw) => {
    expect(book(api, raw)).toMatchObject({ usage: tokens(20, 10), usageSource: 'partial' })
  })

  it('are bounded where they come in lists, parts within their whole, and the same when booked again', () => {
    const one = {
      input_tokens: 1e9,
      output_tokens: 1e9,
      cache_read_input_tokens: 1e9,
      cache_creation_input_tokens: 1e9,
      cache_creation: { ephemeral_1h_input_tokens: 1e9 },
    }
    const many = { ...one, iterations: Array.from({ length: 14 }, () => ({ type: 'compaction', ...one })) }
    const u = tokens(1e10, 1e10, { cacheReadTokens: 1e10 })
    expect(book('anthropic', many)).toMatchObject({ usage: u, usageSource: 'reported' })
    expect(bookAgain('anthropic', JSON.stringify(many))).toEqual(u)
    const details = Array.from({ length: 2000 }, () => ({ ttl: '1h', inputTokens: 1e9 }))
    expect(book('amazon_bedrock', { inputTokens: 1, outputTokens: 1, cacheDetails: details }).usage).toEqual(
      tokens(1e10, 1, { cacheWriteTokens: 1e10, cacheWrite1hTokens: 1e10 }),
    )
  })

  it('leave totals that can be read, after any number of such calls of a run', () => {
    let totals = NO_TOTALS
    const lie = book('openai_compatible', { prompt_tokens: 1e9, completion_tokens: 1e9, cached_tokens: 1e9 }).usage
    for (let i = 0; i < 10_000; i++) totals = addTotals(totals, { ...NO_TOTALS, ...lie, calls: 1 })
    expect(totals.inputTokens).toBe(1e13)
    expect(Number.isSafeInteger(totals.outputTokens)).toBe(true)
  })

  it.each(CHATS)('%s: a whole answer with them is kept and storable', async (name) => {
    const lie = { prompt_tokens: MAX, completion_tokens: MAX, prompt_tokens_details: { cached_tokens: MAX } }
    const result = await play(name, { chunks: events(chatEvents({ text: ['hi'] }, lie)) })
    expect(result.message?.content).toBe('hi')
    expect(Object.values(result.usage).every((n) => Number.isSafeInteger(n) && n < 1000)).toBe(true)
    expect(result.usageSource).toBe('estimated')
  })
})

describe.each(CHATS)('%s: a call that is told in another way is read', (name) => {
  const said: Said = { calls: [CALL] }
  const json = JSON.stringify(ARGS)

  it.each<[string, Reply]>([
    ['arguments as an object', altered(chatEvents(said, usage), `"arguments":${json}`, `"arguments":${ARGS}`)],
    ['its index as text', altered(chatEvents(said, usage), '"index":0,"id"', '"index":"0","id"')],
    [
      'its index as text throughout',
      altered(chatEvents(said, usage), '"tool_calls":[{"index":0', '"tool_calls":[{"index":"0"'),
    ],
    [
      'the older function_call',
      altered(chatEvents(said, usage), /"tool_calls":\[.*"function":(\{.*?\})\}\]/, '"function_call":$1'),
    ],
    ['arguments as an object, in a document', whole(chatDocument({ calls: [{ ...CALL, args: ['@'] }] }, usage))],
  ])('%s', async (_, reply) => {
    const chunks = reply.chunks.map((c) => String(c).replace('"@"', ARGS))
    const result = await play(name, { ...reply, chunks })
    expect(result).toMatchObject(called)
    expect(result.message?.toolCalls).toMatchObject([{ name: 'list_files', arguments: ARGS }])
  })

  it('the older function_call, in a document', async () => {
    const text = JSON.stringify(chatDocument(said, usage))
    const older = text.replace(/"tool_calls":\[.*?"function":(\{.*?\})\}\]/, '"function_call":$1')
    expect(older).toContain('"function_call":{')
    const result = await play(name, { headers: { 'content-type': 'application/json' }, chunks: [older] })
    expect(result).toMatchObject(called)
    expect(result.message?.toolCalls).toMatchObject([{ name: 'list_files', arguments: ARGS }])
  })

  it.each<[string, Reply]>([
    [
      'calls that are promised and not there',
      altered(chatEvents({ text: ['hi'] }, usage), '"finish_reason":"stop"', '"finish_reason":"tool_calls"'),
    ],
    ['calls that are no list', altered(chatEvents(said, usage), /"tool_calls":\[(.*?)\]\}/, '"tool_calls":$1}')],
    [
      'text of a shape that nobody knows',
      altered(chatEvents({ text: ['hi'] }, usage), '"content":"hi"', '"content":{"value":"hi"}'),
    ],
    ['a call without a name', altered(chatEvents(said, usage), '"name":"list_files"', '"name":""')],
  ])('or fails, paid for, where it cannot: %s', async (_, reply) => {
    const result = await play(name, reply)
    expect(result).toMatchObject({ failure: { class: 'incomplete' }, usage: tokens(20, 5), usageSource: 'partial' })
    expect(result.message).toBeUndefined()
  })
})

describe('responses', () => {
  const list = responsesEvents({ calls: [CALL] }, responsesUsage)

  it.each<[string, Reply]>([
    ['an item without id', altered(list, /"id":"fc_0",/, '')],
    ['arguments as an object', altered(list, `"arguments":${JSON.stringify(ARGS)}`, `"arguments":${ARGS}`)],
    [
      'a call that only the response has',
      {
        chunks: events([
          list[0]!,
          {
            type: 'response.completed',
            sequence_number: 9,
            response: responsesDocument({ calls: [CALL] }, responsesUsage),
          },
        ]),
      },
    ],
    [
      'an item without id, in a document',
      {
        headers: { 'content-type': 'application/json' },
        chunks: [JSON.stringify(responsesDocument({ calls: [CALL] }, responsesUsage)).replace('"id":"fc_0",', '')],
      },
    ],
  ])('%s is read', async (_, reply) => {
    const result = await play('responses', reply)
    expect(result).toMatchObject(called)
    expect(result.message?.toolCalls).toMatchObject([{ id: 'call_a', name: 'list_files', arguments: ARGS }])
  })

  it('text that only the response has is read', async () => {
    const response = responsesDocument({ text: ['There are ', 'two.'] }, responsesUsage)
    const text = JSON.stringify(response)
    const before = server.requests.length
    for (const told of [response, JSON.parse(text.replace(',"annotations":[]', ''))]) {
      const completed = { type: 'response.completed', sequence_number: 9, response: told }
      const result = await play('responses', { chunks: events([list[0]!, completed]) })
      expect(result).toMatchObject({ message: { content: 'There are two.' }, finishReason: 'stop' })
      expect(result).toMatchObject({ usage: tokens(20, 5), usageSource: 'reported' })
    }
    expect(server.requests.length - before).toBe(2)
  })

  it('a call without a name fails, paid for', async () => {
    const result = await play('responses', altered(list, '"name":"list_files",', ''))
    expect(result).toMatchObject({ failure: { class: 'incomplete' }, usage: tokens(20, 5), usageSource: 'partial' })
  })
})

test.each([true, false])('anthropic: a paused turn is no whole answer (streamed: %s)', async (stream) => {
  const counts = { input_tokens: 20, output_tokens: 5 }
  const reply = stream
    ? altered(anthropicEvents({ text: [] }, counts, counts), 'end_turn', 'pause_turn')
    : whole(JSON.parse(JSON.stringify(anthropicDocument({ text: ['hi'] }, counts)).replace('end_turn', 'pause_turn')))
  const result = await play('anthropic', reply)
  expect(result).toMatchObject({ failure: { class: 'incomplete' }, usage: tokens(20, 5), usageSource: 'partial' })
  expect(result.failure?.message).toContain('pause_turn')
})

test.each([
  ['anthropic', () => altered(anthropicEvents({}, { input_tokens: 20 }, { output_tokens: 5 }), 'end_turn', 'tool_use')],
  [
    'bedrock',
    () => {
      const list = converseEvents({ text: ['hi'] }, { inputTokens: 20, outputTokens: 5, totalTokens: 25 })
      const calling = list.map((e) => (e.name === 'messageStop' ? { ...e, body: { stopReason: 'tool_use' } } : e))
      return { chunks: awsFrames(calling), headers: { 'content-type': 'application/vnd.amazon.eventstream' } }
    },
  ],
  [
    'google',
    () =>
      altered(
        googleEvents({ calls: [CALL] }, { promptTokenCount: 20, candidatesTokenCount: 5 }),
        '"name":"list_files",',
        '',
      ),
  ],
])('%s: a call that was promised or cannot be read fails, paid for', async (name, reply) => {
  const result = await play(name, reply())
  expect(result).toMatchObject({ failure: { class: 'incomplete' }, usage: tokens(20, 5), usageSource: 'partial' })
})

describe('a transcript can be sent again', () => {
  const SHAPE = /^[a-zA-Z0-9_-]{1,64}$/

  it.each(DIALECTS)('$name: whatever ids its calls have', async (d) => {
    const ids = ['same', 'same', 'with blank', 'x'.repeat(65), 'before', 'call_1_1']
    const before: Message[] = [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: '', toolCalls: [{ id: 'before', name: 'list_files', arguments: '{}' }] },
      { role: 'tool', toolCallId: 'before', toolName: 'list_files', content: 'none' },
    ]
    const calls = ids.map((id, i) => ({ id, name: 'list_files', args: [`{"path":"${i}"}`] }))
    const once = async (reply: Reply) => (await play(d.name, reply, before)).message!.toolCalls
    for (const reply of [streamed(d, d.whole({ calls }, true)), whole(d.document({ calls }, true))]) {
      const made = await once(reply)
      expect(made.map((c) => JSON.parse(c.arguments).path)).toEqual(['0', '1', '2', '3', '4', '5'])
      const got = made.map((c) => c.id)
      expect(new Set([...got, 'before']).size).toBe(7)
      for (const id of got) expect(id).toMatch(SHAPE)
      expect([got[0], got[5]]).toEqual(['same', 'call_1_1'])
      expect((await once(reply)).map((c) => c.id)).toEqual(got)
    }
  })

  it.each(['anthropic', 'openai_chatcompletions', 'google'] as const)(
    '%s: whatever names its calls have, which stay as the model wrote them',
    (api) => {
      const names = ['list_files', 'a.b/c d', '', 'ä'.repeat(80), '\ud800', '7up']
      const toolCalls = names.map((name, i) => ({ id: `c${i}`, name, arguments: '{}' }))
      const results = toolCalls.map((c) => ({
        role: 'tool' as const,
        toolCallId: c.id,
        toolName: c.name,
        content: 'there is no such tool',
      }))
      const messages: Message[] = [{ role: 'assistant', content: '', toolCalls }, ...results]
      const prompt = toPrompt(definition(api), { system: '', messages, tools: [] })
      const nameOf = (type: string) =>
        prompt.flatMap((m) =>
          m.role === 'assistant' || m.role === 'tool'
            ? [...m.content].flatMap((p) => (p.type === type && 'toolName' in p ? [p.toolName] : []))
            : [],
        )
      expect(nameOf('tool-call')).toEqual(nameOf('tool-result'))
      expect(nameOf('tool-call').slice(0, 3)).toEqual(['list_files', 'a_b_c_d', 'unnamed'])
      for (const name of nameOf('tool-call')) expect(name).toMatch(api === 'google' ? /^[a-zA-Z_][\w-]{0,63}$/ : SHAPE)
      expect(nameOf('tool-call').at(-1)).toBe(api === 'google' ? '_7up' : '7up')
    },
  )

  it.each([...CHATS, 'google'])('%s: whose calls came without ids', async (name) => {
    const d = dialect(name)
    const calls = ['a', 'b'].map((path) => ({ ...CALL, args: [`{"path":"${path}"}`] }))
    for (const list of [d.whole({ calls }, true), [d.document({ calls }, true)]]) {
      const bare = list.map((e) =>
        typeof e === 'string' ? e : JSON.parse(JSON.stringify(e).replaceAll('"id":"call_a",', '')),
      )
      const result = await play(name, list.length > 1 ? streamed(d, bare) : whole(bare[0]))
      expect(result.message?.toolCalls.map((c) => c.id)).toEqual(['call_0_0', 'call_0_1'])
    }
  })

  it('keeps the name as the model wrote it for the engine', async () => {
    const calls = [{ ...CALL, name: 'files.list' }]
    const result = await play('openai_compatible', { chunks: events(chatEvents({ calls }, usage)) })
    expect(result.message?.toolCalls).toMatchObject([{ id: 'call_a', name: 'files.list' }])
  })
})
