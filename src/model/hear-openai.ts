import {
  addErrorUsage,
  addUsage,
  callId,
  calling,
  type Heard,
  hearError,
  isObject,
  type Json,
  name,
  newHeard,
  objects,
  received,
} from './heard.ts'

/** A chunk of chat completions, or a whole one: that has its text in `message` instead of `delta`. */
export function hearChat(heard: Heard, e: Json): void {
  name(heard, e.id, e.model)
  const choice = objects(e.choices)[0]
  const said = isObject(choice?.delta) ? choice.delta : isObject(choice?.message) ? choice.message : undefined
  if (said) {
    received(heard, said.content, said.reasoning_content ?? said.reasoning, said.refusal)
    if (said.refusal && typeof said.refusal === 'string') heard.refused = true
    for (const call of objects(said.tool_calls)) if (isObject(call.function)) received(heard, call.function.arguments)
    hearCalls(heard, said.tool_calls, said === choice?.message)
  }
  if (typeof choice?.finish_reason === 'string') heard.finish = choice.finish_reason
  // counts that come before the end are running totals
  const add = e.error ? addErrorUsage : addUsage
  add(heard, e.usage, heard.finish !== undefined)
  if (e.error) hearError(heard, e.error)
}

/** Calls of a document are as many as there are; pieces of them, in a stream, are told apart by their index. */
function hearCalls(heard: Heard, calls: unknown, whole: boolean): void {
  for (const call of objects(calls)) callId(heard, call.id)
  if (Array.isArray(calls)) for (const [i, call] of calls.entries()) calling(heard, whole ? i : call?.index)
  else if (calls) calling(heard, undefined)
}

export function hearResponses(heard: Heard, e: Json): void {
  const type = typeof e.type === 'string' ? e.type : ''
  if (type.endsWith('.delta')) {
    received(heard, e.delta)
    if (type === 'response.refusal.delta') heard.refused = true
    if (type === 'response.refusal.delta' || type === 'response.output_text.delta') heard.text = true
    return
  }
  if (type === 'response.output_item.done' && isObject(e.item) && e.item.type === 'function_call')
    calling(heard, e.output_index)
  if (type === 'error') {
    addErrorUsage(heard, e.usage)
    hearError(heard, e.error ?? e)
  }
  if (!isObject(e.response)) return
  const { response } = e
  name(heard, response.id, response.model)
  if (type === 'response.completed' || type === 'response.incomplete') {
    hearUntold(heard, response)
    finished(heard, response)
  } else if (type === 'response.failed') {
    addErrorUsage(heard, response.usage, true)
    hearError(heard, response.error)
  } else addUsage(heard, response.usage, false)
}

/** A server may tell at the end, in the response itself, what it sent no events of: then that is what is read. */
function hearUntold(heard: Heard, response: Json): void {
  const told = newHeard()
  hearOutput(told, response)
  if (told.toolCalls.size <= heard.toolCalls.size && (heard.text || !told.text)) return
  heard.document = JSON.stringify(response)
  heard.outputBytes = Math.max(told.outputBytes, heard.outputBytes)
  heard.toolCalls = told.toolCalls
  heard.text = told.text
  heard.refused ||= told.refused
}

function finished(heard: Heard, response: Json): void {
  addUsage(heard, response.usage, true)
  const why = isObject(response.incomplete_details) ? response.incomplete_details.reason : undefined
  heard.finish = typeof why === 'string' ? why : 'completed'
  heard.ended = true
}

/** A response that came as one document. */
export function hearResponse(heard: Heard, response: Json): void {
  name(heard, response.id, response.model)
  hearOutput(heard, response)
  if (response.error) {
    addUsage(heard, response.usage, true)
    hearError(heard, response.error)
  } else if (response.status !== 'in_progress' && response.status !== 'queued') finished(heard, response)
}

function hearOutput(heard: Heard, response: Json): void {
  for (const [i, item] of objects(response.output).entries()) {
    received(heard, item.arguments)
    if (item.type === 'function_call') calling(heard, i)
    for (const part of objects(item.content)) {
      received(heard, part.text, part.refusal)
      if (part.type === 'refusal') heard.refused = true
      if (item.type === 'message' && (part.text || part.refusal)) heard.text = true
    }
  }
}
