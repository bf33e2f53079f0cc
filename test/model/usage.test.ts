import { describe, expect, it } from 'vitest'
import { formatUsd } from '../../src/domain/money.ts'
import { costOf } from '../../src/domain/pricing.ts'
import { type ModelApi, perToken } from '../../src/domain/team.ts'
import { hear, hearRefusal } from '../../src/model/hear.ts'
import { hearBedrock } from '../../src/model/hear-bedrock.ts'
import { type Json, newHeard } from '../../src/model/heard.ts'
import { bookRefused, bookUsage, estimateInput } from '../../src/model/usage.ts'
import { tokens } from './call.ts'

const book = (api: ModelApi, usage: Json) => bookUsage(api, { usage, usageFinal: true, outputBytes: 0 }, 99, true).usage

describe('OpenAI and what is compatible with it', () => {
  const chat = (prompt: number, completion: number, reasoning: number, total?: number) =>
    book('openai_chatcompletions', {
      prompt_tokens: prompt,
      completion_tokens: completion,
      ...(total !== undefined && { total_tokens: total }),
      completion_tokens_details: { reasoning_tokens: reasoning },
    })

  it('has reasoning inside the output where the total says so', () => {
    expect(chat(22_118, 1970, 956, 24_088)).toEqual(tokens(22_118, 1970, { reasoningTokens: 956 }))
  })

  it('has reasoning beside the output where the total says so', () => {
    expect(chat(12, 2, 317, 331)).toEqual(tokens(12, 319, { reasoningTokens: 317 }))
    expect(chat(55_021, 923, 785, 56_729)).toEqual(tokens(55_021, 1708, { reasoningTokens: 785 }))
  })

  it('has reasoning beside the output where it could not be inside, and the total is not given', () => {
    expect(chat(12, 2, 317)).toEqual(tokens(12, 319, { reasoningTokens: 317 }))
    expect(chat(12, 500, 317)).toEqual(tokens(12, 500, { reasoningTokens: 317 }))
  })

  it('has reasoning beside the output where the total has too little for it', () => {
    expect(chat(12, 2, 317, 114)).toEqual(tokens(12, 319, { reasoningTokens: 317 }))
    expect(chat(12, 2, 317, 14)).toEqual(tokens(12, 319, { reasoningTokens: 317 }))
  })

  it('reads a count that is not there out of the total', () => {
    expect(book('openai_compatible', { prompt_tokens: 12, total_tokens: 331 })).toEqual(tokens(12, 319))
    expect(book('openai_compatible', { completion_tokens: 319, total_tokens: 331 })).toEqual(tokens(12, 319))
  })

  it('bills output that the total has and no count names', () => {
    expect(chat(100, 20, 0, 180)).toEqual(tokens(100, 80))
  })

  it('has cached tokens inside the input, under any of their names', () => {
    const cached = tokens(2000, 5, { cacheReadTokens: 1920 })
    for (const name of [
      { prompt_tokens_details: { cached_tokens: 1920 } },
      { prompt_cache_hit_tokens: 1920, prompt_cache_miss_tokens: 80 },
      { cached_tokens: 1920 },
    ])
      expect(book('openai_chatcompletions', { prompt_tokens: 2000, completion_tokens: 5, ...name })).toEqual(cached)
    expect(
      book('openai_responses', {
        input_tokens: 2000,
        output_tokens: 5,
        input_tokens_details: { cached_tokens: 1920, cache_write_tokens: 40 },
      }),
    ).toEqual({ ...cached, cacheWriteTokens: 40 })
  })

  it('never has parts larger than their whole', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 50 } }
    // so many cached tokens cannot be inside the input: they were counted beside it
    expect(book('openai_chatcompletions', usage)).toEqual(tokens(60, 3, { cacheReadTokens: 50 }))
  })
})

describe('Anthropic', () => {
  it('adds cache reads and writes to the input', () => {
    const written = {
      input_tokens: 18,
      cache_creation_input_tokens: 2284,
      cache_read_input_tokens: 0,
      output_tokens: 158,
    }
    const read = { input_tokens: 18, cache_creation_input_tokens: 0, cache_read_input_tokens: 2284, output_tokens: 141 }
    expect(book('anthropic', written)).toEqual(tokens(2302, 158, { cacheWriteTokens: 2284 }))
    expect(book('anthropic', read)).toEqual(tokens(2302, 141, { cacheReadTokens: 2284 }))
  })

  it('tells cache writes of an hour from those of five minutes, which cost less', () => {
    const price = {
      input: perToken('5'),
      output: perToken('25'),
      cacheRead: perToken('0.5'),
      cacheWrite: perToken('6.25'),
      cacheWrite1h: perToken('10'),
    }
    const cost = (usage: Json) => formatUsd(costOf(book('anthropic', usage), price)!)
    const writes = { input_tokens: 0, cache_creation_input_tokens: 1_000_000, output_tokens: 0 }
    const split = { ephemeral_5m_input_tokens: 600_000, ephemeral_1h_input_tokens: 400_000 }
    expect(cost({ ...writes, cache_creation: split })).toBe('7.75')
    expect(cost(writes)).toBe('6.25')
  })
})

describe('Gemini', () => {
  const google = (usage: Json) => book('google', usage)

  it('has thoughts beside the candidates where they could not be inside, whatever the total says', () => {
    const counts = { promptTokenCount: 100, candidatesTokenCount: 20, thoughtsTokenCount: 500, totalTokenCount: 120 }
    expect(google(counts)).toEqual(tokens(100, 520, { reasoningTokens: 500 }))
  })

  it('bills an answer that was all thoughts, which the total leaves out', () => {
    const counts = { promptTokenCount: 100, thoughtsTokenCount: 500, totalTokenCount: 100 }
    expect(google(counts)).toEqual(tokens(100, 500, { reasoningTokens: 500 }))
  })

  it('has cached tokens beside the prompt where they could not be inside', () => {
    const counts = { promptTokenCount: 10, cachedContentTokenCount: 50, candidatesTokenCount: 3 }
    for (const total of [{}, { totalTokenCount: 13 }, { totalTokenCount: 63 }])
      expect(google({ ...counts, ...total })).toEqual(tokens(60, 3, { cacheReadTokens: 50 }))
  })

  it('reads a prompt that is not there out of the total', () => {
    expect(google({ candidatesTokenCount: 3, totalTokenCount: 5_003 })).toEqual(tokens(5_000, 3))
  })
})

describe('Bedrock', () => {
  it('bills what the total has and no count names', () => {
    const cached = { inputTokens: 21, outputTokens: 77, cacheReadInputTokens: 300 }
    // the total has the cached tokens or not
    for (const totalTokens of [98, 398])
      expect(book('amazon_bedrock', { ...cached, totalTokens })).toEqual(tokens(321, 77, { cacheReadTokens: 300 }))
    expect(book('amazon_bedrock', { ...cached, totalTokens: 498 })).toMatchObject({ outputTokens: 177 })
    expect(book('amazon_bedrock', { inputTokens: 21, totalTokens: 98 })).toEqual(tokens(21, 77))
    expect(book('amazon_bedrock', { outputTokens: 77, totalTokens: 98 })).toEqual(tokens(21, 77))
  })
})

it('reasoning is output also where the provider says nothing else of it, or says less', () => {
  const thought = { output_tokens_details: { thinking_tokens: 500 } }
  expect(book('anthropic', { input_tokens: 9, output_tokens: 20, ...thought })).toEqual(
    tokens(9, 520, { reasoningTokens: 500 }),
  )
  const chat = { prompt_tokens: 9, completion_tokens_details: { reasoning_tokens: 500 } }
  const heard = { usage: chat, usageFinal: true, outputBytes: 41 }
  expect(bookUsage('openai_compatible', heard, 99, true)).toMatchObject({
    usage: tokens(9, 500, { reasoningTokens: 500 }),
    usageSource: 'partial',
  })
})

describe('a usage object that says nothing', () => {
  it.each([
    ['not there', undefined],
    ['empty', {}],
    ['NaN', { prompt_tokens: Number.NaN, completion_tokens: Number.NaN }],
    ['null', { prompt_tokens: null, completion_tokens: null }],
    ['negative', { prompt_tokens: -5, completion_tokens: -1 }],
    ['text', { prompt_tokens: 'many', completion_tokens: {} }],
  ])('(%s) is replaced by an estimate', (_, usage) => {
    const booked = bookUsage('openai_chatcompletions', { usage, usageFinal: true, outputBytes: 41 }, 99, true)
    expect(booked).toEqual({ usage: tokens(99, 11), usageSource: 'estimated' })
  })

  it('about one side only is partial', () => {
    const heard = { usage: { prompt_tokens: 7 }, usageFinal: true, outputBytes: 41 }
    expect(bookUsage('openai_chatcompletions', heard, 99, true)).toMatchObject({
      usage: tokens(7, 11),
      usageSource: 'partial',
    })
    // no request is without input, and no text without output
    const zeros = { usage: { prompt_tokens: 0, completion_tokens: 0 }, usageFinal: true, outputBytes: 41 }
    expect(bookUsage('openai_chatcompletions', zeros, 99, true)).toMatchObject({
      usage: tokens(99, 11),
      usageSource: 'partial',
    })
  })
})

it('what a broken stream had said is never booked lower than it was said', () => {
  const heard = newHeard()
  hear('anthropic', heard, '{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":40}}}')
  hear('anthropic', heard, '{"type":"content_block_delta","delta":{"type":"text_delta","text":"12345678"}}')
  expect(bookUsage('anthropic', heard, 99, false)).toMatchObject({ usage: tokens(25, 40), usageSource: 'partial' })
})

it('counts that are repeated as null or 0 take nothing back', () => {
  const heard = newHeard()
  hear('anthropic', heard, '{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}')
  hear('anthropic', heard, '{"type":"message_delta","delta":{},"usage":{"input_tokens":0,"output_tokens":15}}')
  hear('anthropic', heard, '{"type":"message_delta","delta":{},"usage":{"input_tokens":null,"output_tokens":0}}')
  expect(heard.usage).toEqual({ input_tokens: 25, output_tokens: 15 })
})

describe('the usage of an error takes back nothing that was said before', () => {
  const chat = (usage: Json) => JSON.stringify({ choices: [{ delta: { content: 'x' } }], usage })
  const said = { prompt_tokens: 100, completion_tokens: 500, prompt_tokens_details: { cached_tokens: 40 } }

  it.each<[string, Json]>([
    ['lower', { prompt_tokens: 0, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } }],
    ['negative', { prompt_tokens: -1, completion_tokens: -1, prompt_tokens_details: { cached_tokens: -1 } }],
    ['text', { prompt_tokens: 'unknown', completion_tokens: 'unknown', prompt_tokens_details: 'unknown' }],
    ['more than any request has', { prompt_tokens: 1e12, completion_tokens: 1e12 }],
  ])('%s', (_, usage) => {
    for (const event of [{ error: { message: 'x', usage } }, { error: { message: 'x' }, usage }]) {
      const heard = newHeard()
      hear('openai_chatcompletions', heard, chat(said))
      hear('openai_chatcompletions', heard, JSON.stringify(event))
      expect(heard.usage).toEqual(said)
    }
  })

  it('and adds what is more', () => {
    const heard = newHeard()
    hear('openai_chatcompletions', heard, chat(said))
    const more = { completion_tokens: 600, prompt_tokens_details: { cached_tokens: 50, cache_write_tokens: 2 } }
    hear('openai_chatcompletions', heard, JSON.stringify({ error: { message: 'x', usage: more } }))
    const details = { cached_tokens: 50, cache_write_tokens: 2 }
    expect(heard.usage).toEqual({ prompt_tokens: 100, completion_tokens: 600, prompt_tokens_details: details })
  })

  it.each<[string, ModelApi, Json, Json]>([
    [
      "Anthropic's opening",
      'anthropic',
      { type: 'message_delta', delta: {}, usage: { input_tokens: 100, output_tokens: 500 } },
      { type: 'error', error: { message: 'x' }, usage: { input_tokens: 100, output_tokens: 1 } },
    ],
    [
      'a responses error',
      'openai_responses',
      { type: 'response.in_progress', response: { usage: { input_tokens: 100, output_tokens: 500 } } },
      { type: 'error', message: 'x', usage: { input_tokens: 100, output_tokens: 1 } },
    ],
    [
      'a failed response',
      'openai_responses',
      { type: 'response.in_progress', response: { usage: { input_tokens: 100, output_tokens: 500 } } },
      { type: 'response.failed', response: { error: { message: 'x' }, usage: { input_tokens: 1, output_tokens: 1 } } },
    ],
    [
      'Gemini',
      'google',
      { usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 500 } },
      { error: { message: 'x' }, usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 1 } },
    ],
  ])('%s', (_, api, before, error) => {
    const heard = newHeard()
    for (const event of [before, error]) hear(api, heard, JSON.stringify(event))
    expect(bookUsage(api, heard, 99, false).usage).toEqual(tokens(100, 500))
  })

  it('an exception of Bedrock', () => {
    const heard = newHeard()
    hearBedrock(heard, 'event', 'metadata', { usage: { inputTokens: 100, outputTokens: 500 } })
    hearBedrock(heard, 'exception', 'x', { message: 'x', usage: { inputTokens: 100, outputTokens: 1 } })
    expect(bookUsage('amazon_bedrock', heard, 99, false).usage).toEqual(tokens(100, 500))
  })

  it('in a refusal, whichever stands first', () => {
    const [more, less] = [
      { prompt_tokens: 100, completion_tokens: 500 },
      { prompt_tokens: 100, completion_tokens: 3 },
    ]
    for (const [usage, inner] of [[more, less] as const, [less, more] as const]) {
      const heard = newHeard()
      hearRefusal(heard, JSON.stringify({ usage, error: { message: 'x', usage: inner } }))
      expect(bookRefused('openai_chatcompletions', heard).usage).toEqual(tokens(100, 500))
    }
  })
})

describe('a refusal', () => {
  const refused = (api: ModelApi, usage: Json) => bookRefused(api, { usage, usageFinal: false, outputBytes: 0 })

  it.each<[ModelApi, Json]>([
    ['openai_chatcompletions', { total_tokens: 5_000_000, limit: 5_000_000 }],
    ['openai_chatcompletions', { total_tokens: 5_000_000, completion_tokens: 0 }],
    ['openai_chatcompletions', { total_tokens: 5_000_000, prompt_tokens: 9 }],
    ['amazon_bedrock', { totalTokens: 5_000_000 }],
    ['google', { totalTokenCount: 5_000_000 }],
    ['google', { totalTokenCount: 5_000_000, candidatesTokenCount: 3 }],
    ['anthropic', { input_tokens: 9 }],
  ])('that does not say both input and output is free: %s %j', (api, usage) => {
    expect(refused(api, usage)).toEqual({ usage: tokens(0, 0), usageSource: 'reported' })
  })

  it.each<[ModelApi, Json, number, number]>([
    ['openai_chatcompletions', { prompt_tokens: 9, completion_tokens: 3 }, 9, 3],
    ['anthropic', { input_tokens: 9, output_tokens: 0 }, 9, 0],
    ['amazon_bedrock', { inputTokens: 9, outputTokens: 3, totalTokens: 12 }, 9, 3],
    ['google', { promptTokenCount: 9, totalTokenCount: 12 }, 9, 3],
    ['google', { promptTokenCount: 9, candidatesTokenCount: 3 }, 9, 3],
  ])('that says both is booked: %s %j', (api, usage, input, output) => {
    expect(refused(api, usage)).toMatchObject({ usage: tokens(input, output), usageSource: 'partial' })
  })
})

it('a usage object of unreasonable size is not kept', () => {
  const heard = {
    usage: { prompt_tokens: 1, completion_tokens: 1, note: 'x'.repeat(5000) },
    usageFinal: true,
    outputBytes: 0,
  }
  expect(bookUsage('openai_chatcompletions', heard, 99, true).rawUsage).toBeUndefined()
})

it('the estimate of an input counts bytes of all that is sent', () => {
  const empty = { system: '', messages: [], tools: [] }
  expect(estimateInput(empty)).toBe(0)
  expect(estimateInput({ ...empty, system: 'äöü' })).toBe(2) // 6 bytes
  const call = { id: 'x', name: 'abcd', arguments: '{"a":1}' } // 4 + 7 bytes
  const message = { role: 'assistant', content: 'four', reasoning: [{ text: 'mind' }], toolCalls: [call] } as const
  expect(estimateInput({ ...empty, messages: [message] })).toBe(5) // 19 bytes
})
