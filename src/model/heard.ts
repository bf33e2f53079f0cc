import type { ModelApi } from '../domain/team.ts'
import { byteLength, cutBytes } from '../domain/text.ts'

export type Json = { readonly [key: string]: unknown }

/**
 * What a provider has said on the wire so far, taken down event by event as it arrives. The provider packages do not tell
 * it all: they throw where an error comes before the first output, they drop an event whose shape they do not know, and
 * a stream that errors may lose what is queued in it.
 */
export interface Heard {
  /** whether a request was handed to fetch */
  sent: boolean
  /** HTTP status; undefined: no answer began */
  status?: number
  headers?: Headers
  /** all usage objects, later counts over earlier ones */
  usage?: Json
  /** usage came with the end of the answer, not as an opening or running count */
  usageFinal: boolean
  /** the provider's word for why the answer ended; undefined: it has not ended */
  finish?: string
  /** that word, where the provider gives it before the end */
  stopReason?: string
  /** the model refused, said by other means than `finish` */
  refused: boolean
  /** no further event is to come */
  ended: boolean
  /** an error event inside the stream */
  error?: { readonly type: string; readonly message: string }
  /** the connection broke while the answer was read */
  cut?: unknown
  /** bytes of UTF-8 of text, reasoning and tool arguments received */
  outputBytes: number
  /** events before the end of the answer that were no JSON */
  unreadable: number
  responseId?: string
  answeredBy?: string
}

export const newHeard = (): Heard => ({
  sent: false,
  usageFinal: false,
  refused: false,
  ended: false,
  outputBytes: 0,
  unreadable: 0,
})

/** Takes down the data of one server-sent event. */
export function hear(api: ModelApi, heard: Heard, data: string): void {
  if (data === '[DONE]') {
    heard.ended = true
    return
  }
  let event: unknown
  try {
    event = JSON.parse(data)
  } catch {
    if (heard.finish === undefined) heard.unreadable++
    return
  }
  if (!isObject(event)) return
  if (api === 'anthropic') hearAnthropic(heard, event)
  else if (api === 'openai_responses') hearResponses(heard, event)
  else hearChat(heard, event)
}

function hearChat(heard: Heard, e: Json): void {
  if (e.error) {
    hearError(heard, e.error)
    return
  }
  name(heard, e)
  const choice = Array.isArray(e.choices) && isObject(e.choices[0]) ? e.choices[0] : undefined
  const delta = isObject(choice?.delta) ? choice.delta : undefined
  if (delta) {
    received(heard, delta.content, delta.reasoning_content ?? delta.reasoning, delta.refusal)
    if (delta.refusal && typeof delta.refusal === 'string') heard.refused = true
    for (const call of Array.isArray(delta.tool_calls) ? delta.tool_calls : [])
      if (isObject(call) && isObject(call.function)) received(heard, call.function.arguments)
  }
  if (typeof choice?.finish_reason === 'string') heard.finish = choice.finish_reason
  // counts that come before the end are running totals
  addUsage(heard, e.usage, heard.finish !== undefined)
}

function hearResponses(heard: Heard, e: Json): void {
  const type = typeof e.type === 'string' ? e.type : ''
  if (type.endsWith('.delta')) {
    received(heard, e.delta)
    if (type === 'response.refusal.delta') heard.refused = true
    return
  }
  if (type === 'error') hearError(heard, e.error ?? e)
  if (!isObject(e.response)) return
  const { response } = e
  name(heard, response)
  if (type === 'response.completed' || type === 'response.incomplete') {
    addUsage(heard, response.usage, true)
    const why = isObject(response.incomplete_details) ? response.incomplete_details.reason : undefined
    heard.finish = typeof why === 'string' ? why : 'completed'
    heard.ended = true
  } else if (type === 'response.failed') {
    addUsage(heard, response.usage, true)
    hearError(heard, response.error)
  } else addUsage(heard, response.usage, false)
}

function hearAnthropic(heard: Heard, e: Json): void {
  switch (e.type) {
    case 'message_start':
      if (!isObject(e.message)) return
      name(heard, e.message)
      addUsage(heard, e.message.usage, false)
      return
    case 'content_block_delta':
      if (isObject(e.delta)) received(heard, e.delta.text, e.delta.thinking, e.delta.partial_json)
      return
    case 'message_delta':
      addUsage(heard, e.usage, true)
      if (isObject(e.delta) && typeof e.delta.stop_reason === 'string') heard.stopReason = e.delta.stop_reason
      return
    case 'message_stop':
      heard.finish = heard.stopReason ?? 'end_turn'
      heard.ended = true
      return
    case 'error':
      hearError(heard, e.error ?? e)
  }
}

function name(heard: Heard, said: Json): void {
  if (typeof said.id === 'string' && said.id) heard.responseId = cutBytes(said.id, 200)
  if (typeof said.model === 'string' && said.model) heard.answeredBy = cutBytes(said.model, 200)
}

function received(heard: Heard, ...texts: readonly unknown[]): void {
  for (const t of texts) if (typeof t === 'string') heard.outputBytes += byteLength(t)
}

/**
 * Counts of one answer are running totals, also where a stream repeats its opening: the last word holds, nothing is
 * added up. Null and 0 take back nothing that was said before.
 */
function addUsage(heard: Heard, usage: unknown, final: boolean): void {
  if (!isObject(usage)) return
  heard.usage = heard.usage ? over(heard.usage, usage) : usage
  if (final) heard.usageFinal = true
}

function over(before: Json, now: Json): Json {
  const merged = new Map(Object.entries(before))
  for (const [key, value] of Object.entries(now)) {
    const old = merged.get(key)
    if (isObject(value)) merged.set(key, isObject(old) ? over(old, value) : value)
    else if (value || old === undefined) merged.set(key, value)
  }
  return Object.fromEntries(merged)
}

/** Takes down an error: an object with `code` or `type` and `message`, or a text. The first one counts. */
export function hearError(heard: Heard, error: unknown): void {
  const e = isObject(error) ? error : { message: error }
  const word = [e.code, e.type].find((v) => (typeof v === 'string' && v !== '') || typeof v === 'number')
  heard.error ??= {
    type: String(word ?? ''),
    message: typeof e.message === 'string' && e.message ? e.message : 'The provider gave no reason.',
  }
  heard.ended = true
}

export const isObject = (v: unknown): v is Json => typeof v === 'object' && v !== null && !Array.isArray(v)
