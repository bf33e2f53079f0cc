/** Calls that do not stream: because the team file says so, or because the server answers with one document anyway. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createModel } from '../../src/model/model.ts'
import type { ModelResult } from '../../src/ports.ts'
import { type ProviderServer, type Reply, startProviderServer } from '../support/provider-server.ts'
import { ESTIMATED_INPUT, env, request, tokens } from './call.ts'
import { DIALECTS, type Dialect, HALF, rerouted, TEXT, target, watched, whole } from './dialects.ts'

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

async function call(
  d: Dialect,
  reply: Reply,
  stream: boolean,
  { signal, via = rerouted(server) }: { signal?: AbortSignal; via?: typeof fetch } = {},
): Promise<ModelResult> {
  server.reply(reply)
  const definition = target(d, server, stream ? {} : { options: { stream: false } })
  const model = createModel({ env, fetch: via })
  return model.call(request(definition, signal && { signal }))
}

/** What must be booked for a document of which only the first half came: the provider says its usage at the end. */
function expectHalf(result: ModelResult): void {
  expect(result.message).toBeUndefined()
  expect(result.usage).toEqual(tokens(ESTIMATED_INPUT, HALF))
  expect(result.usageSource).toBe('estimated')
}

describe.each(DIALECTS)('$name', (d) => {
  it.each([
    ['that was asked for', false],
    ['that came though a stream was asked for', true],
  ])('books a whole document %s, with one request', async (_, stream) => {
    const before = server.requests.length
    const said = { reasoning: 'deep', text: TEXT, model: 'test-model-2026', id: 'id-1' }
    const result = await call(d, whole(d.document(said, true)), stream)
    expect(result.message).toMatchObject({ content: 'There are two.', toolCalls: [] })
    expect(result.finishReason).toBe('stop')
    if (d.api !== 'amazon_bedrock') expect(result).toMatchObject({ responseId: 'id-1', answeredBy: 'test-model-2026' })
    expect(result.usage).toEqual(d.booked)
    expect(result.usageSource).toBe('reported')
    expect(JSON.parse(result.rawUsage!)).toBeTypeOf('object')
    expect(server.requests.length - before).toBe(1)
    const { path, body } = server.requests.at(-1)!
    expect(body.stream === true || path.includes('tream')).toBe(stream)
  })

  it('keeps the numbers in the arguments of calls, all of them', async () => {
    const calls = [
      { id: 'call_a', name: 'list_files', args: ['{"n":9007199254740993}'] },
      { id: 'call_b', name: 'list_files', args: ['{"x":1.23e40, "y":[1.0]}'] },
    ]
    const result = await call(d, whole(d.document({ calls }, true)), false)
    expect(result.finishReason).toBe('tool_calls')
    const args = result.message!.toolCalls.map((c) => c.arguments.replaceAll(' ', ''))
    expect(args).toEqual(['{"n":9007199254740993}', '{"x":1.23e40,"y":[1.0]}'])
  })

  it('books a document without usage as an estimate', async () => {
    const result = await call(d, whole(d.document({ text: TEXT }, false)), false)
    // two packages do not read such an answer; it was paid for all the same
    if (d.needsUsage) expect(result.failure?.class).toBe('incomplete')
    else expect(result.message?.content).toBe('There are two.')
    expect(result.usage).toEqual(tokens(ESTIMATED_INPUT, 4))
    expect(result.usageSource).toBe('estimated')
  })

  it('books what had come when the caller breaks off', async () => {
    const abort = new AbortController()
    const [first] = whole(d.document({ text: TEXT }, true)).chunks
    const headers = { 'content-type': 'application/json' }
    const { fetch: via, seen } = watched(server, 'are ')
    const reply: Reply = { headers, chunks: [first], ending: 'hang' }
    const result = call(d, reply, false, { signal: abort.signal, via })
    await seen
    abort.abort('stopped')
    expectHalf(await result)
    expect((await result).failure?.class).toBe('aborted')
    await server.requests.at(-1)!.closed
  })

  it.each([
    ['cut', 'network'],
    ['end', 'incomplete'],
  ] as const)('books what had come when the document breaks off (%s)', async (ending, kind) => {
    const { headers, chunks } = whole(d.document({ text: TEXT }, true))
    const result = await call(d, { headers: headers!, chunks: [chunks[0]], ending }, false)
    expectHalf(result)
    expect(result.failure?.class).toBe(kind)
  })

  it.each([true, false])('takes an error in a document with 200 for a failure (stream: %s)', async (stream) => {
    const result = await call(d, whole(d.errorBody('It broke')), stream)
    expect(result.failure?.class).toBe(d.api === 'amazon_bedrock' ? 'incomplete' : 'server')
    expect(result.usage).toEqual(tokens(ESTIMATED_INPUT, 0))
    expect(result.usageSource).toBe('estimated')
  })
})
