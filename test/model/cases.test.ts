/**
 * Failures met in production, with the figures in which they showed, played by a provider-shaped server through the real
 * packages. Each is named by its number.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatUsd } from '../../src/domain/money.ts'
import { costOf } from '../../src/domain/pricing.ts'
import { type ModelApi, perToken } from '../../src/domain/team.ts'
import { known } from '../../src/domain/usage.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { createModel } from '../../src/model/model.ts'
import { bookAgain } from '../../src/model/usage.ts'
import type { ModelResult } from '../../src/ports.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { agent, testEngine } from '../support/engine.ts'
import {
  anthropicDocument,
  chatDocument,
  converseDocument,
  googleDocument,
  responsesDocument,
} from '../support/provider-documents.ts'
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
  startProviderServer,
} from '../support/provider-server.ts'
import { baseUrl, definition, ESTIMATED_INPUT, env, request, tokens } from './call.ts'
import { whole } from './dialects.ts'

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const TEXT = { text: ['hi'] }
const AWS = { 'content-type': 'application/vnd.amazon.eventstream' }

async function play(api: ModelApi, reply: Reply, stream = true): Promise<ModelResult> {
  server.reply(reply)
  const options = { region: 'eu-central-1', ...(!stream && { stream: false }) }
  return createModel({ env }).call(request(definition(api, { baseUrl: baseUrl(server), options })))
}

/** What is booked for a usage object that comes with a whole answer, streamed and not; and again from what was kept. */
async function booked(api: ModelApi, usage: object, opening: object = usage) {
  const streams: { readonly [A in ModelApi]?: () => Reply } = {
    openai_chatcompletions: () => ({ chunks: events(chatEvents(TEXT, usage)) }),
    openai_compatible: () => ({ chunks: events(chatEvents(TEXT, usage)) }),
    openai_responses: () => ({ chunks: events(responsesEvents(TEXT, usage)) }),
    anthropic: () => ({ chunks: events(anthropicEvents(TEXT, opening, usage)) }),
    google: () => ({ chunks: events(googleEvents(TEXT, usage)) }),
    amazon_bedrock: () => ({ chunks: awsFrames(converseEvents(TEXT, usage)), headers: AWS }),
  }
  const documents: { readonly [A in ModelApi]?: () => object } = {
    openai_chatcompletions: () => chatDocument(TEXT, usage),
    openai_compatible: () => chatDocument(TEXT, usage),
    openai_responses: () => responsesDocument(TEXT, usage),
    anthropic: () => anthropicDocument(TEXT, { ...opening, ...usage }),
    google: () => googleDocument(TEXT, usage),
    amazon_bedrock: () => converseDocument(TEXT, usage),
  }
  const streamed = await play(api, streams[api]!())
  const single = await play(api, whole(documents[api]!()), false)
  for (const result of [streamed, single]) {
    expect(result).toMatchObject({ usageSource: 'reported', message: { content: 'hi' } })
    expect(result.usage).toEqual(streamed.usage)
    expect(bookAgain(api, result.rawUsage!)).toEqual(result.usage)
  }
  return streamed.usage
}

/** The test price of a case, in USD per million tokens. */
const price = (input: string, output: string, cacheRead: string, cacheWrite: string, cacheWrite1h: string) => ({
  input: perToken(input),
  output: perToken(output),
  cacheRead: perToken(cacheRead),
  cacheWrite: perToken(cacheWrite),
  cacheWrite1h: perToken(cacheWrite1h),
})
const OPUS = price('5', '25', '0.5', '6.25', '10')

test('A7: workers that share a client book what each call used, and a second run has nothing of the first', async () => {
  const figures = [
    [100, 10],
    [2000, 20],
    [30_000, 30],
    [7, 1],
    [7, 1],
    [7, 1],
  ] as const
  const table = memoryTable()
  const worker = definition('openai_compatible', { baseUrl: baseUrl(server), cost: { input: '1', output: '10' } })
  const team = {
    shape: 1,
    name: 'warm',
    agents: [agent('root'), agent('worker')],
    models: { root: worker, worker },
  } as const
  const engine = testEngine({ table, teams: [team] })
  // one model for both runs, as in a container that stays warm
  Object.assign(engine.ctx, { model: createModel({ env }) })
  const runOf3 = async () => {
    const tasks = [1, 2, 3].map((n) => ({ agent: 'worker', task: `task ${n}` }))
    const { runId } = await startRun(engine.ctx, { tenant: 'local', team: 'warm', tasks })
    await engine.invoker.drain()
    const ref = { tenant: 'local', runId }
    const { items } = await engine.ctx.store.listCalls(ref, { limit: 10 })
    return { totals: known((await engine.ctx.store.getRun(ref))!.books), calls: items.map((c) => c.usage.inputTokens) }
  }
  for (const [prompt_tokens, completion_tokens] of figures)
    server.reply({ chunks: events(chatEvents(TEXT, { prompt_tokens, completion_tokens })) })
  const first = await runOf3()
  expect(first.calls.sort((a, b) => a - b)).toEqual([100, 2000, 30_000])
  expect(first.totals).toMatchObject({ calls: 3, inputTokens: 32_100, outputTokens: 60 })
  const second = await runOf3()
  expect(second.calls).toEqual([7, 7, 7])
  expect(second.totals).toMatchObject({ calls: 3, inputTokens: 21, outputTokens: 3, cost: 51_000_000n })
})

test('A9: an answer that repeats its usage is one call with the last, complete one', async () => {
  const same = { input_tokens: 25, cache_read_input_tokens: 1000, cache_creation_input_tokens: 0 }
  const delta = (output_tokens: number, stop_reason: string | null) => ({
    type: 'message_delta',
    delta: { stop_reason },
    usage: { ...same, output_tokens },
  })
  const [start, ...rest] = anthropicEvents(TEXT, { ...same, output_tokens: 1 }, {})
  const list = [start!, start!, ...rest.slice(0, -2), delta(1, null), delta(2495, 'end_turn'), rest.at(-1)!]
  const result = await play('anthropic', { chunks: events(list) })
  expect(result.usage).toEqual(tokens(1025, 2495, { cacheReadTokens: 1000 }))
  expect(result.usageSource).toBe('reported')
})

test('B3: thoughts of Gemini are output, and input and output are the total', async () => {
  const b3 = { promptTokenCount: 55_021, candidatesTokenCount: 923, thoughtsTokenCount: 785, totalTokenCount: 56_729 }
  const usage = await booked('google', b3)
  expect(usage).toEqual(tokens(55_021, 1708, { reasoningTokens: 785 }))
  expect(usage.inputTokens + usage.outputTokens).toBe(56_729)
})

test('B6: reasoning that the total counts beside the output is added, and the text is never negative', async () => {
  const usage = await booked('openai_compatible', {
    prompt_tokens: 12,
    completion_tokens: 2,
    total_tokens: 331,
    completion_tokens_details: { reasoning_tokens: 317 },
  })
  expect(usage).toEqual(tokens(12, 319, { reasoningTokens: 317 }))
  expect(usage.outputTokens - usage.reasoningTokens).toBe(2)
})

test('B9: reasoning that the total counts inside the output is not added', async () => {
  const chat = {
    prompt_tokens: 22_118,
    completion_tokens: 1970,
    total_tokens: 24_088,
    completion_tokens_details: { reasoning_tokens: 956 },
  }
  const responses = {
    input_tokens: 22_118,
    output_tokens: 1970,
    total_tokens: 24_088,
    output_tokens_details: { reasoning_tokens: 956 },
  }
  const right = tokens(22_118, 1970, { reasoningTokens: 956 })
  expect(await booked('openai_chatcompletions', chat)).toEqual(right)
  expect(await booked('openai_responses', responses)).toEqual(right)
})

test('B11: a cache that is written and one that is read are the same input, at different cost', async () => {
  const of = (written: number, read: number, output: number) => ({
    input_tokens: 18,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: output,
  })
  const written = await booked('anthropic', of(2284, 0, 158))
  const read = await booked('anthropic', of(0, 2284, 141))
  expect(written).toEqual(tokens(2302, 158, { cacheWriteTokens: 2284 }))
  expect(read).toEqual(tokens(2302, 141, { cacheReadTokens: 2284 }))
  expect([written, read].map((u) => formatUsd(costOf(u, OPUS)!))).toEqual(['0.018315', '0.004757'])
})

describe('B13: cache writes of an hour cost more than those of five minutes', () => {
  const bill = async (api: ModelApi, usage: object) => {
    const { outputTokens: _, ...input } = await booked(api, usage)
    return formatUsd(costOf({ ...input, outputTokens: 0 }, OPUS)!)
  }

  test('as Anthropic tells them apart; without a breakdown they cost as those of five minutes', async () => {
    const writes = { input_tokens: 0, cache_creation_input_tokens: 1_000_000, output_tokens: 1 }
    const split = { ephemeral_5m_input_tokens: 600_000, ephemeral_1h_input_tokens: 400_000 }
    expect(await bill('anthropic', { ...writes, cache_creation: split })).toBe('7.75')
    expect(await bill('anthropic', writes)).toBe('6.25')
  })

  test('as Bedrock tells them apart', async () => {
    const writes = { inputTokens: 0, outputTokens: 1, totalTokens: 1_000_001, cacheWriteInputTokens: 1_000_000 }
    const cacheDetails = [
      { ttl: '5m', inputTokens: 600_000 },
      { ttl: '1h', inputTokens: 400_000 },
    ]
    expect(await bill('amazon_bedrock', { ...writes, cacheDetails })).toBe('7.75')
    expect(await bill('amazon_bedrock', writes)).toBe('6.25')
  })
})

test('B21: the count at the start of a stream is not added to the one at its end', async () => {
  expect(await booked('anthropic', { output_tokens: 15 }, { input_tokens: 25, output_tokens: 1 })).toEqual(
    tokens(25, 15),
  )
})

test.each([
  ['absent', undefined],
  ['NaN', 'NaN'],
  ['null', 'null'],
  ['text', '"many"'],
  ['negative', '-5'],
])('B24: a usage that is %s is an estimate and no number that is none; the usage was asked for', async (_, value) => {
  const usage = value === undefined ? undefined : { prompt_tokens: 777, completion_tokens: 777, total_tokens: 777 }
  const chunks = events(chatEvents({ text: ['There are ', 'two.'] }, usage))
  const result = await play('openai_compatible', { chunks: chunks.map((e) => e.replaceAll('777', value ?? '777')) })
  expect(result).toMatchObject({ usageSource: 'estimated', message: { content: 'There are two.' } })
  expect(result.usage).toEqual(tokens(ESTIMATED_INPUT, 4))
  expect(server.requests.at(-1)!.body.stream_options).toEqual({ include_usage: true })
})

describe('where the obvious answer is wrong', () => {
  test('cached input is never taken out of the input by the price: it is normalised where it comes in', async () => {
    // the same call told in three ways, by the total of each: cached inside the prompt, beside it, and apart
    const inside = {
      prompt_tokens: 2302,
      completion_tokens: 141,
      total_tokens: 2443,
      prompt_tokens_details: { cached_tokens: 2284 },
    }
    const beside = { ...inside, prompt_tokens: 18 }
    const apart = { input_tokens: 18, cache_read_input_tokens: 2284, output_tokens: 141 }
    const right = tokens(2302, 141, { cacheReadTokens: 2284 })
    expect(await booked('openai_compatible', inside)).toEqual(right)
    expect(await booked('openai_compatible', beside)).toEqual(right)
    expect(await booked('anthropic', apart)).toEqual(right)
    expect(formatUsd(costOf(right, OPUS)!)).toBe('0.004757')
  })

  test('xAI counts reasoning by two rules: each response is read by its own total', async () => {
    const xai = (completion_tokens: number, total_tokens: number) =>
      booked('openai_compatible', {
        prompt_tokens: 12,
        completion_tokens,
        total_tokens,
        completion_tokens_details: { reasoning_tokens: 317 },
      })
    const right = tokens(12, 319, { reasoningTokens: 317 })
    expect(await xai(2, 331)).toEqual(right) // beside
    expect(await xai(319, 331)).toEqual(right) // inside
  })

  test('thoughts that a response of Gemini counts inside its candidates are not added', async () => {
    const usage = { promptTokenCount: 100, candidatesTokenCount: 50, thoughtsTokenCount: 30, totalTokenCount: 150 }
    expect(await booked('google', usage)).toEqual(tokens(100, 50, { reasoningTokens: 30 }))
  })

  test("what Gemini's own tools read is input", async () => {
    const usage = {
      promptTokenCount: 100,
      toolUsePromptTokenCount: 400,
      candidatesTokenCount: 50,
      thoughtsTokenCount: 30,
      totalTokenCount: 580,
    }
    expect(await booked('google', usage)).toEqual(tokens(500, 80, { reasoningTokens: 30 }))
  })

  test('compactions are billed though the counts at the top leave them out', async () => {
    const usage = {
      input_tokens: 23_000,
      output_tokens: 1000,
      iterations: [
        { type: 'compaction', input_tokens: 180_000, output_tokens: 3500, cache_read_input_tokens: 500 },
        { type: 'message', input_tokens: 23_000, output_tokens: 1000 },
      ],
    }
    expect(await booked('anthropic', usage)).toEqual(tokens(203_500, 4500, { cacheReadTokens: 500 }))
  })

  test('an attempt that was declined before another model answered is billed where it had written, and else is free', async () => {
    const served = { input_tokens: 412, output_tokens: 264 }
    const fallback = { type: 'fallback_message', model: 'claude-opus-4-8', ...served }
    const declined = (output_tokens: number) => ({
      ...served,
      iterations: [{ type: 'message', model: 'claude-fable-5', input_tokens: 412, output_tokens }, fallback],
    })
    expect(await booked('anthropic', declined(0))).toEqual(tokens(412, 264))
    expect(await booked('anthropic', declined(90))).toEqual(tokens(824, 354))
    // whatever a list lacks, nothing is booked lower than the counts at the top
    const short = { ...served, iterations: [{ type: 'message', input_tokens: 1, output_tokens: 1 }] }
    expect(await booked('anthropic', short)).toEqual(tokens(412, 264))
    const advised = { ...served, iterations: [{ type: 'advisor_message', input_tokens: 9, output_tokens: 9 }] }
    expect(await booked('anthropic', advised)).toEqual(tokens(412, 264))
  })

  test('caches of Bedrock are beside its input', async () => {
    const usage = {
      inputTokens: 21,
      outputTokens: 77,
      totalTokens: 98,
      cacheReadInputTokens: 30_000,
      cacheWriteInputTokens: 1500,
    }
    expect(await booked('amazon_bedrock', usage)).toEqual(
      tokens(31_521, 77, { cacheReadTokens: 30_000, cacheWriteTokens: 1500 }),
    )
  })

  test('a gateway to Claude that speaks as OpenAI keeps its cache writes', async () => {
    const usage = {
      prompt_tokens: 2302,
      completion_tokens: 158,
      total_tokens: 2460,
      cache_creation_input_tokens: 2284,
      cache_read_input_tokens: 0,
    }
    expect(await booked('openai_compatible', usage)).toEqual(tokens(2302, 158, { cacheWriteTokens: 2284 }))
  })
})
