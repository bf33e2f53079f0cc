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

/** Bedrock's words that the others have not. */
const FINISH: ReadonlyMap<string, string> = new Map([
  ['content_filtered', 'content_filter'],
  ['guardrail_intervened', 'content_filter'],
  ['malformed_model_output', 'error'],
  ['malformed_tool_use', 'error'],
])

/** An event of a Converse stream. @param type the name of the event, or of the exception that ends the stream */
export function hearBedrock(heard: Heard, kind: string, type: string, e: Json): void {
  if (kind !== 'event') {
    addErrorUsage(heard, e.usage)
    hearError(heard, { type, message: e.message ?? e.Message ?? e.originalMessage })
    return
  }
  if (type === 'contentBlockStart' && isObject(e.start)) {
    if (isObject(e.start.toolUse)) calling(heard, e.contentBlockIndex)
  } else if (type === 'contentBlockDelta' && isObject(e.delta)) {
    const { text, toolUse, reasoningContent } = e.delta
    received(heard, text)
    if (isObject(toolUse)) received(heard, toolUse.input)
    if (isObject(reasoningContent)) received(heard, reasoningContent.text)
  } else if (type === 'messageStop') stopped(heard, e.stopReason)
  else if (type === 'metadata') {
    invoked(heard, e)
    addUsage(heard, e.usage, true)
    heard.ended = heard.finish !== undefined
  }
}

/** A Converse answer that came as one document. */
export function hearConverse(heard: Heard, e: Json, exact: () => Json): void {
  const parts = contentOf(e)
  for (const part of parts) {
    received(heard, part.text)
    if (isObject(part.reasoningContent) && isObject(part.reasoningContent.reasoningText))
      received(heard, part.reasoningContent.reasoningText.text)
  }
  if (parts.some((p) => isObject(p.toolUse)))
    for (const { toolUse } of contentOf(exact())) if (isObject(toolUse)) receivedCall(heard, toolUse.input)
  invoked(heard, e)
  addUsage(heard, e.usage, true)
  stopped(heard, e.stopReason)
}

function stopped(heard: Heard, reason: unknown): void {
  if (typeof reason === 'string') heard.finish = FINISH.get(reason) ?? reason
}

/** A prompt router tells in its trace which model answered. */
function invoked(heard: Heard, e: Json): void {
  const router = isObject(e.trace) && isObject(e.trace.promptRouter) ? e.trace.promptRouter : undefined
  name(heard, undefined, router?.invokedModelId)
}

function contentOf(e: Json): readonly Json[] {
  const message = isObject(e.output) && isObject(e.output.message) ? e.output.message : undefined
  return objects(message?.content)
}
