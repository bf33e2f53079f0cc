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
  objects,
  received,
  receivedCall,
} from './heard.ts'

/** Words of Gemini for its end that the others have not; all others are theirs in capitals. */
const FINISH: ReadonlyMap<string, string> = new Map([
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['LANGUAGE', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['IMAGE_SAFETY', 'content_filter'],
  // the model wrote a call that is none: nothing can be done with the answer, another try may do
  ['MALFORMED_FUNCTION_CALL', 'error'],
  ['UNEXPECTED_TOOL_CALL', 'error'],
  ['MALFORMED_RESPONSE', 'error'],
  // one request may write no more; its continuation would be another call
  ['CONTINUATION', 'length'],
])

/** A chunk of `generateContent`, or a whole one: they have the same shape. */
export function hearGoogle(heard: Heard, e: Json, exact: () => Json): void {
  name(heard, e.responseId, typeof e.modelVersion === 'string' ? e.modelVersion.replace(/^models\//, '') : undefined)
  const candidate = objects(e.candidates)[0]
  const parts = partsOf(e)
  for (const part of parts) received(heard, part.text)
  if (parts.some((p) => isObject(p.functionCall)))
    for (const { functionCall: call } of partsOf(exact()))
      if (isObject(call)) {
        callId(heard, call.id)
        if (typeof call.name === 'string') receivedCall(heard, call.args)
        else calling(heard, undefined)
      }
  const blocked = isObject(e.promptFeedback) ? e.promptFeedback.blockReason : undefined
  if (typeof candidate?.finishReason === 'string')
    heard.finish = FINISH.get(candidate.finishReason) ?? candidate.finishReason.toLowerCase()
  else if (typeof blocked === 'string' && blocked && !blocked.endsWith('_UNSPECIFIED')) heard.finish = 'content_filter'
  // every chunk has counts; those that come before the end are running totals
  const add = e.error ? addErrorUsage : addUsage
  add(heard, e.usageMetadata, heard.finish !== undefined)
  if (e.error) hearError(heard, e.error)
}

function partsOf(e: Json): readonly Json[] {
  const content = objects(e.candidates)[0]?.content
  return isObject(content) ? objects(content.parts) : []
}
