import { addUsage, type Heard, hearError, isObject, type Json, name, objects, received } from './heard.ts'

/** A chunk of chat completions, or a whole one: that has its text in `message` instead of `delta`. */
export function hearChat(heard: Heard, e: Json): void {
  if (e.error) {
    hearError(heard, e.error)
    return
  }
  name(heard, e.id, e.model)
  const choice = objects(e.choices)[0]
  const said = isObject(choice?.delta) ? choice.delta : isObject(choice?.message) ? choice.message : undefined
  if (said) {
    received(heard, said.content, said.reasoning_content ?? said.reasoning, said.refusal)
    if (said.refusal && typeof said.refusal === 'string') heard.refused = true
    for (const call of objects(said.tool_calls)) if (isObject(call.function)) received(heard, call.function.arguments)
  }
  if (typeof choice?.finish_reason === 'string') heard.finish = choice.finish_reason
  // counts that come before the end are running totals
  addUsage(heard, e.usage, heard.finish !== undefined)
}

export function hearResponses(heard: Heard, e: Json): void {
  const type = typeof e.type === 'string' ? e.type : ''
  if (type.endsWith('.delta')) {
    received(heard, e.delta)
    if (type === 'response.refusal.delta') heard.refused = true
    return
  }
  if (type === 'error') hearError(heard, e.error ?? e)
  if (!isObject(e.response)) return
  const { response } = e
  name(heard, response.id, response.model)
  if (type === 'response.completed' || type === 'response.incomplete') finished(heard, response)
  else if (type === 'response.failed') {
    addUsage(heard, response.usage, true)
    hearError(heard, response.error)
  } else addUsage(heard, response.usage, false)
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
  for (const item of objects(response.output)) {
    received(heard, item.arguments)
    for (const part of objects(item.content)) {
      received(heard, part.text, part.refusal)
      if (part.type === 'refusal') heard.refused = true
    }
  }
  if (response.error) {
    addUsage(heard, response.usage, true)
    hearError(heard, response.error)
  } else if (response.status !== 'in_progress' && response.status !== 'queued') finished(heard, response)
}
