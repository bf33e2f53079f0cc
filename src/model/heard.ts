import { isObject } from '../domain/objects.ts'
import { byteLength, cutBytes } from '../domain/text.ts'
import { count } from './count.ts'

export { isObject }

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
  /** keys of tool calls that were said, at the least: how often one is named differs */
  toolCalls: Set<string>
  /** ids of tool calls, where the package makes up those that are missing or repeated; undefined: it makes up none */
  callIds?: Set<string>
  /** text of the answer came, not only reasoning and calls */
  text: boolean
  /** arguments of tool calls that came as objects, as text with the numbers as they were, in order */
  calls: string[]
  /** the answer as one JSON document, where no stream came */
  document?: string
  /** what has come of such a document, until its end comes */
  begun?: string
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
  toolCalls: new Set(),
  text: false,
  calls: [],
})

/** The objects of a list; nothing where it is none. */
export const objects = (v: unknown): readonly Json[] => (Array.isArray(v) ? v.filter(isObject) : [])

export function name(heard: Heard, id: unknown, model: unknown): void {
  if (typeof id === 'string' && id) heard.responseId = cutBytes(id, 200)
  if (typeof model === 'string' && model) heard.answeredBy = cutBytes(model, 200)
}

export function received(heard: Heard, ...texts: readonly unknown[]): void {
  for (const t of texts) if (typeof t === 'string') heard.outputBytes += byteLength(t)
}

/** A tool call was said. @param key tells it from the others of the answer; none: it may be any of them */
export function calling(heard: Heard, key: unknown): void {
  if (typeof key === 'string' || typeof key === 'number') {
    heard.toolCalls.delete('')
    heard.toolCalls.add(String(key))
  } else if (heard.toolCalls.size === 0) heard.toolCalls.add('')
}

export function callId(heard: Heard, id: unknown): void {
  heard.callIds ??= new Set()
  if (typeof id === 'string') heard.callIds.add(id)
}

/** Arguments that came as an object. */
export function receivedCall(heard: Heard, args: unknown): void {
  const text = typeof args === 'string' ? args : JSON.stringify(args ?? {})
  heard.calls.push(text)
  calling(heard, heard.calls.length)
  received(heard, text)
}

/**
 * Counts of one answer are running totals, also where a stream repeats its opening: the last word holds, nothing is
 * added up. Null and 0 take back nothing that was said before.
 */
export const addUsage = (heard: Heard, usage: unknown, final: boolean): void =>
  takeUsage(heard, usage, final, (now, before) => Boolean(now) || before === undefined)

/**
 * The usage of an error or a refusal: it may leave out or begin anew what came before, or be written by a gateway that
 * knows less. So it takes nothing back: a count holds only where it is larger than the one that was said.
 */
export const addErrorUsage = (heard: Heard, usage: unknown, final = false): void =>
  takeUsage(
    heard,
    usage,
    final,
    (now, before) =>
      before === undefined || before === null || (!isObject(before) && (count(now) ?? -1) > (count(before) ?? -1)),
  )

type Holds = (now: unknown, before: unknown) => boolean

function takeUsage(heard: Heard, usage: unknown, final: boolean, holds: Holds): void {
  if (!isObject(usage)) return
  heard.usage = heard.usage ? merged(heard.usage, usage, holds) : usage
  if (final) heard.usageFinal = true
}

/** What stands in both as an object is merged in its turn; of anything else what came now holds, where it does. */
function merged(before: Json, now: Json, holds: Holds): Json {
  const all = new Map(Object.entries(before))
  for (const [key, value] of Object.entries(now)) {
    const old = all.get(key)
    if (isObject(value) && isObject(old)) all.set(key, merged(old, value, holds))
    else if (holds(value, old)) all.set(key, value)
  }
  return Object.fromEntries(all)
}

/** Takes down an error: an object with `code`, `type` or `status` and `message`, or a text. The first one counts. */
export function hearError(heard: Heard, error: unknown): void {
  const e: Json = isObject(error) ? error : { message: error }
  addErrorUsage(heard, e.usage ?? e.usageMetadata)
  const word = [e.code, e.type, e.status].find((v) => (typeof v === 'string' && v !== '') || typeof v === 'number')
  heard.error ??= {
    type: String(word ?? ''),
    message: typeof e.message === 'string' && e.message ? e.message : 'The provider gave no reason.',
  }
  heard.ended = true
}
