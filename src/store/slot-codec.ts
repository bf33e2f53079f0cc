import type {
  AssistantMessage,
  FinishReason,
  Message,
  RequestSlot,
  ResponseSlot,
  ToolMessage,
  ToolResultSlot,
} from '../domain/turn.ts'
import type { UsageSource } from '../domain/usage.ts'
import { BadItemError, ItemReader, present } from './item-reader.ts'
import { A, AMOUNT, BOUND, END, INTENT, ITEM_VERSION, PRICE, TOTALS } from './table.ts'
import type { Item } from './table-client.ts'
import {
  decodeAmount,
  decodeEnd,
  decodeIntent,
  decodePrice,
  decodeUsage,
  encodeAmount,
  encodeEnd,
  encodeIntent,
  encodePrice,
  encodeUsage,
} from './value-codecs.ts'

const OUTCOMES = ['accepted', 'failed', 'duplicate', 'unknown', 'none'] as const
const SOURCES: readonly UsageSource[] = ['reported', 'partial', 'estimated']
const FINISH_REASONS: readonly FinishReason[] = [
  'stop',
  'length',
  'tool_calls',
  'content_filter',
  'refusal',
  'error',
  'other',
]

/** Attributes of a request without its key and body. */
export const encodeRequest = (slot: RequestSlot): Item =>
  present({
    [A.version]: ITEM_VERSION,
    [A.round]: slot.round,
    [A.intent]: slot.intent && encodeIntent(slot.intent),
    [A.end]: slot.end && encodeEnd(slot.end),
    [A.at]: slot.at,
  })

export const requestBody = (slot: RequestSlot): string => JSON.stringify(slot.messages)

export function decodeRequest(item: Item, n: number, body: string | undefined, where: string): RequestSlot {
  const r = new ItemReader(item, A, where)
  const messages = parse(body, where)
  if (!Array.isArray(messages)) throw new BadItemError(`${where}: its body is no list of messages`)
  return {
    n,
    round: r.whole('round'),
    messages: messages as Message[],
    ...(r.has('intent') && { intent: decodeIntent(r.fields('intent', INTENT)) }),
    ...(r.has('end') && { end: decodeEnd(r.fields('end', END)) }),
    at: r.whole('at'),
  }
}

/** What an outcome says of its call: the attributes that a late answer replaces. Those that are null are not there. */
export const outcomeAttributes = (slot: ResponseSlot): { [name: string]: Item[string] | undefined } => ({
  [A.outcome]: slot.outcome,
  [A.cause]: slot.cause,
  [A.usage]: encodeUsage(slot.usage),
  [A.usageSource]: slot.usageSource,
  [A.finishReason]: slot.finishReason,
  [A.responseId]: slot.responseId,
  [A.answeredBy]: slot.answeredBy,
  [A.over]: slot.over && encodeAmount(slot.over),
  [A.startedAt]: slot.startedAt,
  [A.durationMs]: slot.durationMs,
})

/** Money of a call. Null is stored as such: that nothing is known about a price is something that is known. */
export const moneyAttributes = (slot: ResponseSlot): Item => ({
  [A.cost]: slot.cost,
  [A.price]: slot.price && encodePrice(slot.price),
})

/** Attributes of an outcome without its key and body. */
export const encodeResponse = (slot: ResponseSlot): Item => ({
  ...present({
    [A.version]: ITEM_VERSION,
    ...outcomeAttributes(slot),
    [A.of]: slot.of,
    [A.attempt]: slot.attempt,
    [A.agent]: slot.agent,
    [A.model]: slot.model,
    [A.bound]: slot.bound && {
      [BOUND.holdUsd]: slot.bound.hold.usd,
      [BOUND.holdTok]: slot.bound.hold.tok,
      [BOUND.estimate]: slot.bound.estimate,
      [BOUND.cap]: slot.bound.cap,
    },
    [A.nextIntent]: slot.next && encodeIntent(slot.next),
    [A.end]: slot.end && encodeEnd(slot.end),
  }),
  ...moneyAttributes(slot),
})

/** undefined: the call left nothing to keep */
export function responseBody(slot: ResponseSlot): string | undefined {
  const { message, results, rawUsage } = slot
  return message || results || rawUsage !== undefined ? JSON.stringify({ message, results, rawUsage }) : undefined
}

/** @param body undefined also where only the row of the books is wanted */
export function decodeResponse(item: Item, n: number, body: string | undefined, where: string): ResponseSlot {
  const r = new ItemReader(item, A, where)
  return {
    n,
    outcome: r.word('outcome', OUTCOMES),
    of: r.text('of'),
    attempt: r.whole('attempt'),
    agent: r.text('agent'),
    model: r.text('model'),
    ...(r.has('cause') && { cause: r.text('cause') }),
    usage: decodeUsage(r.fields('usage', TOTALS)),
    usageSource: r.word('usageSource', SOURCES),
    cost: r.raw('cost') === null ? null : r.big('cost'),
    price: r.raw('price') === null ? null : decodePrice(r.fields('price', PRICE)),
    ...(r.has('over') && { over: decodeAmount(r.fields('over', AMOUNT)) }),
    ...(r.has('bound') && { bound: decodeBound(r.fields('bound', BOUND)) }),
    ...(body !== undefined && decodeResponseBody(body, where)),
    ...(r.has('finishReason') && { finishReason: r.word('finishReason', FINISH_REASONS) }),
    ...(r.has('responseId') && { responseId: r.text('responseId') }),
    ...(r.has('answeredBy') && { answeredBy: r.text('answeredBy') }),
    startedAt: r.whole('startedAt'),
    durationMs: r.whole('durationMs'),
    ...(r.has('nextIntent') && { next: decodeIntent(r.fields('nextIntent', INTENT)) }),
    ...(r.has('end') && { end: decodeEnd(r.fields('end', END)) }),
  }
}

const decodeBound = (r: ItemReader<typeof BOUND>): NonNullable<ResponseSlot['bound']> => ({
  hold: { usd: r.big('holdUsd'), tok: r.big('holdTok') },
  estimate: r.whole('estimate'),
  cap: r.whole('cap'),
})

function decodeResponseBody(
  body: string,
  where: string,
): { message?: AssistantMessage; results?: ToolMessage[]; rawUsage?: string } {
  const value = parse(body, where)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadItemError(`${where}: its body is no object`)
  const { message, results, rawUsage } = value as { message?: unknown; results?: unknown; rawUsage?: unknown }
  if (message !== undefined && (typeof message !== 'object' || message === null))
    throw new BadItemError(`${where}: the message in its body is no object`)
  if (results !== undefined && !Array.isArray(results))
    throw new BadItemError(`${where}: the results in its body are no list`)
  if (rawUsage !== undefined && typeof rawUsage !== 'string')
    throw new BadItemError(`${where}: the provider's usage in its body is no text`)
  return {
    ...(message !== undefined && { message: message as AssistantMessage }),
    ...(results !== undefined && { results: results as ToolMessage[] }),
    ...(rawUsage !== undefined && { rawUsage }),
  }
}

/** Attributes of a tool result without its key and body. */
export const encodeToolResult = (slot: ToolResultSlot): Item =>
  present({ [A.version]: ITEM_VERSION, [A.isError]: slot.isError ? 1 : null, [A.at]: slot.at })

/** As JSON, which keeps also what is not well-formed Unicode. */
export const toolResultBody = (slot: ToolResultSlot): string => JSON.stringify(slot.content)

export function decodeToolResult(
  item: Item,
  place: { n: number; index: number },
  body: string | undefined,
  where: string,
): ToolResultSlot {
  const r = new ItemReader(item, A, where)
  const content = parse(body, where)
  if (typeof content !== 'string') throw new BadItemError(`${where}: its body is no text`)
  return { n: place.n, index: place.index, content, ...(r.flag('isError') && { isError: true }), at: r.whole('at') }
}

function parse(body: string | undefined, where: string): unknown {
  if (body === undefined) throw new BadItemError(`${where}: attribute ${A.body} (body) is missing`)
  try {
    return JSON.parse(body)
  } catch (cause) {
    throw new BadItemError(`${where}: its body is not JSON`, { cause })
  }
}
