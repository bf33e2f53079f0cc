import {
  addErrorUsage,
  addUsage,
  calling,
  type Heard,
  hearError,
  isObject,
  type Json,
  name,
  objects,
  received,
  receivedCall,
} from './heard.ts'

export function hearAnthropic(heard: Heard, e: Json): void {
  switch (e.type) {
    case 'message_start':
      if (!isObject(e.message)) return
      name(heard, e.message.id, e.message.model)
      addUsage(heard, e.message.usage, false)
      return
    case 'content_block_start':
      if (isObject(e.content_block) && e.content_block.type === 'tool_use') calling(heard, e.index)
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
      addErrorUsage(heard, e.usage)
      hearError(heard, e.error ?? e)
  }
}

/** A message that came as one document. */
export function hearMessage(heard: Heard, message: Json, exact: () => Json): void {
  name(heard, message.id, message.model)
  addUsage(heard, message.usage, true)
  const blocks = objects(message.content)
  for (const block of blocks) received(heard, block.text, block.thinking)
  if (blocks.some((b) => b.type === 'tool_use'))
    for (const block of objects(exact().content)) if (block.type === 'tool_use') receivedCall(heard, block.input)
  if (typeof message.stop_reason === 'string') heard.finish = message.stop_reason
  if (message.type === 'error') hearError(heard, message.error ?? message)
}
