import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { ModelApi, ModelDefinition } from '../domain/team.ts'
import type { AssistantMessage, ToolMessage } from '../domain/turn.ts'
import type { ModelRequest } from '../ports.ts'
import { parseExact } from './exact-json.ts'
import { isObject } from './heard.ts'

type AssistantParts = Extract<LanguageModelV4Message, { role: 'assistant' }>['content']
type ToolParts = Extract<LanguageModelV4Message, { role: 'tool' }>['content']

/**
 * The conversation as the provider packages take it. What a provider wants back (signatures, encrypted reasoning) goes
 * back as it came. Text is made well-formed: half a surrogate pair makes a request that providers refuse for ever.
 */
export function toPrompt(
  definition: ModelDefinition,
  request: Pick<ModelRequest, 'system' | 'messages' | 'tools'>,
): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = []
  if (request.system) prompt.push({ role: 'system', content: request.system.toWellFormed() })
  let results: ToolParts | undefined
  for (const m of request.messages) {
    if (m.role === 'tool') {
      if (!results) prompt.push({ role: 'tool', content: (results = []) })
      results.push(toResult(m, definition.api))
      continue
    }
    results = undefined
    if (m.role === 'user') {
      prompt.push({ role: 'user', content: [{ type: 'text', text: m.content.toWellFormed() }] })
    } else {
      const content = toParts(m, definition.api)
      // an answer without content is refused when it is sent back
      if (content.length) prompt.push({ role: 'assistant', content })
    }
  }
  if (request.tools.length) markCached(prompt, definition)
  return prompt
}

/** Claude on Bedrock, by its id; an id that does not tell is helped by the option `model_family`. */
export const isClaude = (d: Pick<ModelDefinition, 'model' | 'options'>): boolean =>
  d.model.includes('anthropic') || d.options?.model_family === 'anthropic'

/**
 * Reasoning before text before tool calls: the order in which providers want them back. Each package takes the reasoning
 * that its provider can read (signed, sealed) and leaves out the rest.
 */
function toParts(m: AssistantMessage, api: ModelApi): AssistantParts {
  const parts: AssistantParts = []
  for (const r of m.reasoning ?? []) {
    parts.push({ type: 'reasoning', text: r.text.toWellFormed(), ...options(r.providerMetadata) })
  }
  parts.push(...texts(m, api))
  for (const c of m.toolCalls) {
    parts.push({
      type: 'tool-call',
      toolCallId: c.id,
      toolName: fittingName(c.name, api),
      input: replayable(c.arguments, api),
      ...options(c.providerMetadata),
    })
  }
  return parts
}

/** APIs that want back what they said about a text. Any other gets it in one piece. */
const MARKED: ReadonlySet<ModelApi> = new Set<ModelApi>(['openai_responses', 'google'])

/** The text, in pieces where the provider wants back what it said about some of them. */
function texts({ content, marks: said = [] }: AssistantMessage, api: ModelApi): AssistantParts {
  const parts: AssistantParts = []
  const marks = MARKED.has(api) ? said : []
  const plain = (text: string) => {
    if (text.trim()) parts.push({ type: 'text', text: text.toWellFormed() })
  }
  let at = 0
  for (const { from, to, providerMetadata } of marks) {
    if (from > at) plain(content.slice(at, from))
    parts.push({ type: 'text', text: content.slice(from, to).toWellFormed(), ...options(providerMetadata) })
    at = to
  }
  if (at === 0 && content) parts.push({ type: 'text', text: content.toWellFormed() })
  else if (at < content.length) plain(content.slice(at))
  return parts
}

/** APIs that take arguments as objects: their packages would parse the text, and with it round the numbers. */
const OBJECTS: ReadonlySet<ModelApi> = new Set<ModelApi>(['anthropic', 'google', 'amazon_bedrock'])

/**
 * Arguments as they are sent back: the model's own text where it is a JSON object, or that object with its numbers as
 * they were. Anything else would make providers refuse the conversation for ever, so it goes back inside an object, where
 * the model can see it.
 */
function replayable(text: string, api: ModelApi): unknown {
  try {
    const value = parseExact(text)
    if (isObject(value)) return OBJECTS.has(api) ? value : text
  } catch {
    // no JSON
  }
  const wrapped = text.trim() === '' ? {} : { invalid_arguments: text.toWellFormed() }
  return OBJECTS.has(api) ? wrapped : JSON.stringify(wrapped)
}

/** What every API takes as the name of a function. */
const NAME = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * A name that the API takes back. The model may have called a tool that there is not, by a name that makes providers refuse
 * the conversation for ever. The call and its result get the same one.
 */
function fittingName(name: string, api: ModelApi): string {
  const fitting = NAME.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/gu, '_').slice(0, 64) || 'unnamed'
  // Gemini wants a letter or an underscore at the beginning
  return api === 'google' && /^[0-9-]/.test(fitting) ? `_${fitting}`.slice(0, 64) : fitting
}

const toResult = (m: ToolMessage, api: ModelApi): ToolParts[number] => ({
  type: 'tool-result',
  toolCallId: m.toolCallId,
  toolName: fittingName(m.toolName, api),
  output: { type: m.isError ? 'error-text' : 'text', value: m.content.toWellFormed() },
})

const options = (metadata: unknown) =>
  isObject(metadata) ? { providerOptions: metadata as SharedV4ProviderOptions } : {}

/**
 * Claude's cache keeps only what is marked. An agent with tools sends its conversation again with every turn: the mark on
 * the system message and on the last message makes the next call read it at a tenth of the price.
 */
function markCached(prompt: LanguageModelV4Prompt, definition: ModelDefinition): void {
  const mark = cacheMark(definition)
  if (!mark) return
  for (const i of new Set([0, prompt.length - 1])) {
    const message = prompt[i]
    if (message) prompt[i] = { ...message, providerOptions: mark }
  }
}

function cacheMark(d: ModelDefinition): SharedV4ProviderOptions | undefined {
  if (d.api === 'anthropic') return { anthropic: { cacheControl: { type: 'ephemeral' } } }
  if (d.api !== 'amazon_bedrock' || !isClaude(d) || d.options?.disable_prompt_caching === true) return undefined
  // Bedrock refuses the mark for models without a cache
  return CACHELESS.test(d.model) ? undefined : { amazonBedrock: { cachePoint: { type: 'default' } } }
}

const CACHELESS = /claude-(?:v2|instant|3-(?:opus|sonnet|haiku|5-sonnet-20240620))/
