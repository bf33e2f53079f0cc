import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { ModelApi } from '../domain/team.ts'
import type { AssistantMessage, ToolMessage } from '../domain/turn.ts'
import type { ModelRequest } from '../ports.ts'
import { isObject } from './heard.ts'

type AssistantParts = Extract<LanguageModelV4Message, { role: 'assistant' }>['content']
type ToolParts = Extract<LanguageModelV4Message, { role: 'tool' }>['content']

/**
 * The conversation as the provider packages take it. What a provider wants back (signatures, encrypted reasoning) goes
 * back as it came. Text is made well-formed: half a surrogate pair makes a request that providers refuse for ever.
 */
export function toPrompt(
  api: ModelApi,
  request: Pick<ModelRequest, 'system' | 'messages' | 'tools'>,
): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = []
  if (request.system) prompt.push({ role: 'system', content: request.system.toWellFormed() })
  let results: ToolParts | undefined
  for (const m of request.messages) {
    if (m.role === 'tool') {
      if (!results) prompt.push({ role: 'tool', content: (results = []) })
      results.push(toResult(m))
      continue
    }
    results = undefined
    if (m.role === 'user') {
      prompt.push({ role: 'user', content: [{ type: 'text', text: m.content.toWellFormed() }] })
    } else {
      const content = toParts(m)
      // an answer without content is refused when it is sent back
      if (content.length) prompt.push({ role: 'assistant', content })
    }
  }
  if (api === 'anthropic' && request.tools.length) markCached(prompt)
  return prompt
}

/**
 * Reasoning before text before tool calls: the order in which providers want them back. Each package takes the reasoning
 * that its provider can read (signed, sealed) and leaves out the rest.
 */
function toParts(m: AssistantMessage): AssistantParts {
  const parts: AssistantParts = []
  for (const r of m.reasoning ?? []) {
    parts.push({ type: 'reasoning', text: r.text.toWellFormed(), ...options(r.providerMetadata) })
  }
  if (m.content) parts.push({ type: 'text', text: m.content.toWellFormed() })
  for (const c of m.toolCalls) {
    parts.push({
      type: 'tool-call',
      toolCallId: c.id,
      toolName: c.name,
      input: replayable(c.arguments),
      ...options(c.providerMetadata),
    })
  }
  return parts
}

/**
 * Arguments as they are sent back: the model's own text where it is a JSON object, byte for byte. Anything else would
 * make providers refuse the conversation for ever, so it goes back inside an object, where the model can see it.
 */
function replayable(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return text
  } catch {
    // no JSON
  }
  return text.trim() === '' ? '{}' : JSON.stringify({ invalid_arguments: text.toWellFormed() })
}

const toResult = (m: ToolMessage): ToolParts[number] => ({
  type: 'tool-result',
  toolCallId: m.toolCallId,
  toolName: m.toolName,
  output: { type: m.isError ? 'error-text' : 'text', value: m.content.toWellFormed() },
})

const options = (metadata: unknown) =>
  isObject(metadata) ? { providerOptions: metadata as SharedV4ProviderOptions } : {}

/**
 * Anthropic caches only what is marked. An agent with tools sends its conversation again with every turn: the mark on
 * the system message and on the last message makes the next call read it at a tenth of the price.
 */
function markCached(prompt: LanguageModelV4Prompt): void {
  const cache = { anthropic: { cacheControl: { type: 'ephemeral' } } }
  for (const i of new Set([0, prompt.length - 1])) {
    const message = prompt[i]
    if (message) prompt[i] = { ...message, providerOptions: cache }
  }
}
