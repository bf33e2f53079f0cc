import type { ModelApi } from '../domain/team.ts'
import { parseExact } from './exact-json.ts'
import { isObject, type Json, objects } from './heard.ts'

/**
 * Servers that speak like OpenAI differ in small things that the provider packages do not read, and drop: arguments as an
 * object, an index as text, the older `function_call`, items without an id. What is meant is plain, so the packages get
 * it in the form that they know.
 */

/** APIs that have one maker, whose package reads what it says. */
export const isPlain = (api: ModelApi): boolean =>
  api === 'anthropic' || api === 'google' || api === 'amazon_bedrock' || api === 'scripted'

/** The data of an event, or a document, as the package reads it; the same text where there is nothing to change. */
export function plain(api: ModelApi, data: string): string {
  if (isPlain(api)) return data
  const responses = api === 'openai_responses'
  if (!(responses ? RESPONSES : CHAT).test(data)) return data
  try {
    const said = parseExact(data)
    if (!isObject(said)) return data
    const text = JSON.stringify(responses ? plainResponses(said) : plainChat(said))
    return text === JSON.stringify(said) ? data : text
  } catch {
    return data // no JSON: it is heard as what it is
  }
}

/** What only events and documents with something to look at have. */
const CHAT = /"(?:tool_calls|function_call)"/
const RESPONSES = /"(?:output|item|delta)"/

function plainChat(e: Json): Json {
  if (!Array.isArray(e.choices)) return e
  const choices = e.choices.map((choice: unknown) => {
    if (!isObject(choice)) return choice
    if (isObject(choice.delta)) return { ...choice, delta: plainMessage(choice.delta, false) }
    return isObject(choice.message) ? { ...choice, message: plainMessage(choice.message, true) } : choice
  })
  return { ...e, choices }
}

function plainMessage(message: Json, whole: boolean): Json {
  const { function_call: older, ...rest } = message
  if (Array.isArray(message.tool_calls) && message.tool_calls.length > 0)
    return { ...message, tool_calls: message.tool_calls.map((c) => (isObject(c) ? plainCall(c, whole) : c)) }
  if (!isObject(older)) return message
  const call = { index: 0, ...(older.name ? { id: 'call_0' } : {}), type: 'function', function: older }
  return { ...rest, tool_calls: [plainCall(call, whole)] }
}

function plainCall(call: Json, whole: boolean): Json {
  const { index, function: called } = call
  return {
    ...call,
    ...(typeof index === 'string' && /^\d{1,9}$/.test(index) && { index: Number(index) }),
    ...(whole && { type: 'function' }),
    ...(isObject(called) && { function: { ...called, ...plainArguments(called, whole) } }),
  }
}

/** Arguments as text; those of a whole call are there, if empty. */
function plainArguments({ arguments: args }: Json, whole: boolean): { readonly arguments?: string } {
  if (typeof args === 'object' && args !== null) return { arguments: JSON.stringify(args) }
  return whole && (args === undefined || args === null) ? { arguments: '' } : {}
}

function plainResponses(e: Json): Json {
  const place = typeof e.output_index === 'number' ? e.output_index : 0
  if (isObject(e.item)) return { ...e, item: plainItem(e.item, place) }
  if (isObject(e.response)) return { ...e, response: plainOutput(e.response) }
  if (typeof e.type === 'string' && e.type.endsWith('.delta') && typeof e.item_id !== 'string')
    return { ...e, item_id: itemId(place) }
  return plainOutput(e)
}

const plainOutput = (response: Json): Json =>
  Array.isArray(response.output)
    ? { ...response, output: response.output.map((item, i) => (isObject(item) ? plainItem(item, i) : item)) }
    : response

const itemId = (place: number): string => `item_${place}`

function plainItem(item: Json, place: number): Json {
  const named = typeof item.id === 'string' ? item : { ...item, id: itemId(place) }
  if (item.type === 'message' && Array.isArray(item.content)) {
    const parts = objects(item.content)
    const content = parts.map((p) => (p.type === 'output_text' && !p.annotations ? { ...p, annotations: [] } : p))
    return { ...named, role: 'assistant', content }
  }
  if (item.type !== 'function_call') return named
  return {
    ...named,
    call_id: typeof item.call_id === 'string' ? item.call_id : '',
    ...(typeof item.status !== 'string' && { status: 'completed' }),
    ...plainArguments(item, true),
  }
}
