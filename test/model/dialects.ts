import type { ModelApi, ModelDefinition } from '../../src/domain/team.ts'
import type { TokenUsage } from '../../src/domain/usage.ts'
import {
  anthropicDocument,
  chatDocument,
  converseDocument,
  googleDocument,
  responsesDocument,
} from '../support/provider-documents.ts'
import {
  type AwsEvent,
  anthropicEvents,
  awsFrames,
  chatEvents,
  converseEvents,
  events,
  googleEvents,
  type Reply,
  responsesEvents,
  type Said,
} from '../support/provider-server.ts'
import { baseUrl, definition, tokens } from './call.ts'

export const TEXT = ['There ', 'are ', 'two.']
/** 'There are ' in tokens: 10 bytes. */
export const HALF = 3

type Event = object | string

/** How one provider speaks, and what must be booked of it. */
export interface Dialect {
  readonly name: string
  readonly api: ModelApi
  /** the package that knows OpenAI's own models is used for its own address only */
  readonly atOpenai?: true
  /** a whole answer as events, with the given usage object or none */
  whole(said: Said, usage: boolean): readonly Event[]
  /** a whole answer as one document */
  document(said: Said, usage: boolean): object
  /** usage of the whole answer as it must be booked */
  readonly booked: TokenUsage
  /** what the provider has said of the input by the middle of the answer; null: nothing */
  readonly opening: TokenUsage | null
  readonly errorEvent: Event
  readonly errorClass: string
  /** an error as a document, with HTTP 200 or not */
  errorBody(message: string): object
  /** so many tokens, as what an error may have of usage */
  counts(input: number, output: number): object
  /** its arguments are objects: of the text only the values are kept, not the blanks */
  readonly objects?: true
  /** what its package cannot read without any usage */
  readonly needsUsage?: 'all' | 'documents'
}

export const chatUsage = {
  prompt_tokens: 2000,
  completion_tokens: 300,
  total_tokens: 2300,
  prompt_tokens_details: { cached_tokens: 1920 },
  completion_tokens_details: { reasoning_tokens: 256 },
}
export const responsesUsage = {
  input_tokens: 2000,
  input_tokens_details: { cached_tokens: 1920 },
  output_tokens: 300,
  output_tokens_details: { reasoning_tokens: 256 },
  total_tokens: 2300,
}
export const anthropicUsage = {
  input_tokens: 21,
  cache_read_input_tokens: 30_000,
  cache_creation_input_tokens: 1500,
  cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 500 },
  output_tokens: 1,
}
const anthropicClosing = { output_tokens: 77, output_tokens_details: { thinking_tokens: 40 } }
const googleOpening = { promptTokenCount: 2000, cachedContentTokenCount: 1920, totalTokenCount: 2000 }
const googleUsage = { ...googleOpening, candidatesTokenCount: 44, thoughtsTokenCount: 256, totalTokenCount: 2300 }
const converseUsage = {
  inputTokens: 21,
  outputTokens: 77,
  totalTokens: 31_598,
  cacheReadInputTokens: 30_000,
  cacheWriteInputTokens: 1500,
  cacheDetails: [
    { ttl: '5m', inputTokens: 1000 },
    { ttl: '1h', inputTokens: 500 },
  ],
}
export const openaiBooked = tokens(2000, 300, { cacheReadTokens: 1920, reasoningTokens: 256 })
export const claudeInput = { cacheReadTokens: 30_000, cacheWriteTokens: 1500, cacheWrite1hTokens: 500 }

const chat = {
  whole: (said: Said, usage: boolean) => chatEvents(said, usage ? chatUsage : undefined),
  document: (said: Said, usage: boolean) => chatDocument(said, usage ? chatUsage : undefined),
  booked: openaiBooked,
  opening: null,
  errorEvent: { error: { message: 'The server had an error', type: 'server_error', code: null } },
  errorClass: 'server',
  errorBody: (message: string) => ({ error: { type: 'server_error', message } }),
  counts: (prompt_tokens: number, completion_tokens: number) => ({ usage: { prompt_tokens, completion_tokens } }),
}

export const DIALECTS: readonly Dialect[] = [
  { name: 'chat completions at OpenAI', api: 'openai_chatcompletions', atOpenai: true, ...chat },
  { name: 'chat completions elsewhere', api: 'openai_chatcompletions', ...chat },
  { name: 'openai_compatible', api: 'openai_compatible', ...chat },
  {
    name: 'responses',
    api: 'openai_responses',
    whole: (said, usage) => responsesEvents(said, usage ? responsesUsage : undefined),
    document: (said, usage) => responsesDocument(said, usage ? responsesUsage : undefined),
    booked: openaiBooked,
    opening: null,
    errorEvent: { type: 'error', sequence_number: 9, code: 'rate_limit_exceeded', message: 'Slow down', param: null },
    errorClass: 'rate_limit',
    errorBody: (message) => ({ error: { type: 'server_error', code: 'server_error', message } }),
    counts: (input_tokens, output_tokens) => ({ usage: { input_tokens, output_tokens } }),
  },
  {
    name: 'anthropic',
    api: 'anthropic',
    whole: (said, usage) =>
      anthropicEvents(said, usage ? anthropicUsage : undefined, usage ? anthropicClosing : undefined),
    document: (said, usage) => anthropicDocument(said, usage ? { ...anthropicUsage, ...anthropicClosing } : undefined),
    booked: tokens(31_521, 77, { ...claudeInput, reasoningTokens: 40 }),
    opening: tokens(31_521, 1, claudeInput),
    errorEvent: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    errorClass: 'overloaded',
    errorBody: (message) => ({ type: 'error', error: { type: 'api_error', message } }),
    counts: (input_tokens, output_tokens) => ({ usage: { input_tokens, output_tokens } }),
    needsUsage: 'all',
  },
  {
    name: 'google',
    api: 'google',
    whole: (said, usage) => googleEvents(said, usage ? googleUsage : undefined, usage ? googleOpening : undefined),
    document: (said, usage) => googleDocument(said, usage ? googleUsage : undefined),
    booked: openaiBooked,
    opening: tokens(2000, 0, { cacheReadTokens: 1920 }),
    errorEvent: { error: { code: 503, message: 'The model is overloaded', status: 'UNAVAILABLE' } },
    errorClass: 'overloaded',
    errorBody: (message) => ({ error: { code: 500, message, status: 'INTERNAL' } }),
    counts: (promptTokenCount, candidatesTokenCount) => ({ usageMetadata: { promptTokenCount, candidatesTokenCount } }),
    objects: true,
  },
  {
    name: 'bedrock',
    api: 'amazon_bedrock',
    whole: (said, usage) => converseEvents(said, usage ? converseUsage : undefined),
    document: (said, usage) => converseDocument(said, usage ? converseUsage : undefined),
    booked: tokens(31_521, 77, claudeInput),
    opening: null,
    errorEvent: { kind: 'exception', name: 'throttlingException', body: { message: 'Too many tokens' } },
    errorClass: 'rate_limit',
    errorBody: (message) => ({ message }),
    counts: (inputTokens, outputTokens) => ({ usage: { inputTokens, outputTokens } }),
    needsUsage: 'documents',
  },
]

/** The error event of a stream, with usage beside the error. */
export const errorWith = (d: Dialect, usage: object): Event => {
  const event = d.errorEvent as { readonly body?: object }
  return event.body ? { ...event, body: { ...event.body, ...usage } } : { ...event, ...usage }
}

export const dialect = (name: string): Dialect => DIALECTS.find((d) => d.name === name)!

/** The events up to the second piece of the text. */
export function half(d: Dialect): readonly Event[] {
  const list = d.whole({ text: TEXT }, true)
  return list.slice(0, list.findIndex((e) => JSON.stringify(e).includes('"are "')) + 1)
}

/** Events as they go over the wire. */
export const streamed = (d: Dialect, list: readonly Event[]): Pick<Reply, 'chunks' | 'headers'> =>
  d.api === 'amazon_bedrock'
    ? {
        chunks: awsFrames(list as readonly AwsEvent[]),
        headers: { 'content-type': 'application/vnd.amazon.eventstream' },
      }
    : { chunks: events(list) }

/** A document as it goes over the wire: in two pieces, of which the first ends in the middle of the text. */
export function whole(body: object): Pick<Reply, 'headers'> & { readonly chunks: readonly [string, string] } {
  const text = JSON.stringify(body)
  const at = text.indexOf('two.')
  return {
    headers: { 'content-type': 'application/json' },
    chunks: at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at)],
  }
}

/** A model that is reached at the server. */
export const target = (d: Dialect, server: { readonly url: string }, more: Partial<ModelDefinition> = {}) =>
  d.atOpenai
    ? { provider: 'openai', api: d.api, model: 'test-model', tokenKey: 'TEST_KEY', ...more }
    : definition(d.api, {
        baseUrl: baseUrl(server),
        ...more,
        ...(d.api === 'amazon_bedrock' && { options: { region: 'eu-central-1', ...more.options } }),
      })

/** OpenAI's own address, led to the server. */
export const rerouted =
  (server: { readonly url: string }): typeof fetch =>
  (url, init) =>
    fetch(String(url).replace('https://api.openai.com', server.url), init)

/** A fetch that tells when a text has come through it. */
export function watched(
  server: { readonly url: string },
  text: string,
  mindsSignal = true,
): { fetch: typeof fetch; seen: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>()
  let sofar = ''
  const via: typeof fetch = async (url, init) => {
    const response = await rerouted(server)(url, mindsSignal ? init : { ...init, signal: null })
    const look = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        controller.enqueue(bytes)
        sofar += new TextDecoder().decode(bytes)
        if (sofar.includes(text)) setImmediate(resolve)
      },
    })
    return new Response(response.body!.pipeThrough(look), { status: response.status, headers: response.headers })
  }
  return { fetch: via, seen: promise }
}
