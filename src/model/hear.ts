import type { ModelApi } from '../domain/team.ts'
import { parseExact } from './exact-json.ts'
import { hearAnthropic, hearMessage } from './hear-anthropic.ts'
import { hearConverse } from './hear-bedrock.ts'
import { hearGoogle } from './hear-google.ts'
import { hearChat, hearResponse, hearResponses } from './hear-openai.ts'
import { addErrorUsage, type Heard, hearError, isObject, type Json, objects, received } from './heard.ts'

/** Takes down the data of one server-sent event. */
export function hear(api: ModelApi, heard: Heard, data: string): void {
  if (data === '[DONE]') {
    heard.ended = true
    return
  }
  const event = parse(data)
  if (event === undefined) {
    if (heard.finish === undefined) heard.unreadable++
    return
  }
  if (!isObject(event)) return
  if (api === 'anthropic') hearAnthropic(heard, event)
  else if (api === 'google') hearGoogle(heard, event, () => parseExact(data) as Json)
  else if (api === 'openai_responses') hearResponses(heard, event)
  else hearChat(heard, event)
}

/** Takes down an answer that came as one JSON document. */
export function hearDocument(api: ModelApi, heard: Heard, text: string): void {
  const document = parse(text)
  if (!isObject(document)) return hearBeginning(heard, text)
  const exact = () => parseExact(text) as Json
  if (api === 'anthropic') hearMessage(heard, document, exact)
  else if (api === 'google') hearGoogle(heard, document, exact)
  else if (api === 'amazon_bedrock') hearConverse(heard, document, exact)
  else if (api === 'openai_responses') hearResponse(heard, document)
  else hearChat(heard, document)
  if (document.error && !heard.error) hearError(heard, document.error)
  heard.ended = true
}

/** Takes down the usage of an answer that is no 2xx: a gateway may tell in it what the model behind it has worked. */
export function hearRefusal(heard: Heard, text: string): void {
  const document = parse(text)
  for (const d of objects(Array.isArray(document) ? document : [document]))
    for (const at of objects([d, d.response, d.error])) addErrorUsage(heard, at.usage ?? at.usageMetadata)
}

/** Takes down the texts in a document without its end. */
export function hearBeginning(heard: Heard, text: string): void {
  for (const [, piece] of text.matchAll(TEXTS)) received(heard, piece)
}

/** What stands under the keys that hold output, the last of them perhaps without its end. */
const TEXTS = /"(?:text|content|thinking|reasoning|reasoning_content|arguments)"\s*:\s*"((?:[^"\\]|\\.)*)/g

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
