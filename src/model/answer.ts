import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { byteLength } from '../domain/text.ts'
import type { AssistantMessage, FinishReason, ToolCall } from '../domain/turn.ts'
import { type Heard, isObject, type Json } from './heard.ts'

/** What came through the provider's package. */
export interface Answer {
  readonly message: AssistantMessage
  /** bytes of text, reasoning and arguments that it kept */
  readonly bytes: number
  /** an event that the package could not read */
  readonly unreadable?: unknown
}

interface Block {
  text: string
  metadata: Json | undefined
}

/**
 * Reads a stream to its end.
 * @throws what the stream throws
 */
export async function readAnswer(stream: ReadableStream<LanguageModelV4StreamPart>): Promise<Answer> {
  let content = ''
  let before = ''
  let unreadable: unknown
  const reasoning = new Map<string, Block>()
  const toolCalls: ToolCall[] = []

  for await (const part of stream) {
    switch (part.type) {
      case 'text-start':
        // text that goes on after reasoning or a call is a paragraph of its own
        if (content && before !== 'text-end') content += '\n\n'
        break
      case 'text-delta':
        content += part.delta
        break
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end': {
        const block = reasoning.get(part.id) ?? { text: '', metadata: undefined }
        if (part.type === 'reasoning-delta') block.text += part.delta
        block.metadata = merged(block.metadata, part.providerMetadata)
        reasoning.set(part.id, block)
        break
      }
      case 'tool-call':
        toolCalls.push({
          id: part.toolCallId,
          name: part.toolName,
          arguments: part.input,
          ...(part.providerMetadata && { providerMetadata: plain(part.providerMetadata) }),
        })
        break
      case 'error':
        unreadable ??= part.error
        break
    }
    before = part.type
  }

  const thoughts = [...reasoning.values()].filter((b) => b.text || b.metadata)
  const texts = [content, ...thoughts.map((b) => b.text), ...toolCalls.map((c) => c.arguments)]
  return {
    message: {
      role: 'assistant',
      content: content.toWellFormed(),
      ...(thoughts.length && {
        reasoning: thoughts.map((b) => ({ text: b.text, ...(b.metadata && { providerMetadata: plain(b.metadata) }) })),
      }),
      toolCalls,
    },
    bytes: texts.reduce((sum, t) => sum + byteLength(t), 0),
    ...(unreadable !== undefined && { unreadable }),
  }
}

/** Metadata of one block comes in pieces, by provider; null says nothing. */
function merged(before: Json | undefined, more: unknown): Json | undefined {
  if (!isObject(more)) return before
  const all: { [provider: string]: Json } = { ...(before as { [provider: string]: Json } | undefined) }
  for (const [provider, said] of Object.entries(more)) {
    if (!isObject(said)) continue
    const known = Object.fromEntries(Object.entries(said).filter(([, v]) => v !== null && v !== undefined))
    all[provider] = { ...all[provider], ...known }
  }
  return all
}

/** Only what JSON holds: it is stored and sent back. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** The provider's word for the end as ours; tools that were called are what counts, whatever the word. */
export function finishReason(heard: Heard, toolCalls: number): FinishReason {
  const reason = FINISH.get(heard.finish ?? '') ?? 'other'
  if (reason === 'stop' || reason === 'tool_calls' || reason === 'other') {
    if (toolCalls > 0) return 'tool_calls'
    if (heard.refused) return 'refusal'
    return reason === 'tool_calls' ? 'stop' : reason
  }
  return reason
}

const FINISH: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ['stop', 'stop'],
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['completed', 'stop'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['max_output_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['refusal', 'refusal'],
  ['error', 'error'],
])
