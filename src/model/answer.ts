import type { LanguageModelV4Content, LanguageModelV4GenerateResult, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { byteLength } from '../domain/text.ts'
import type { AssistantMessage, FinishReason, Message, TextMark, ToolCall } from '../domain/turn.ts'
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
  readonly kind: 'text' | 'reasoning'
  text: string
  metadata: Json | undefined
}
interface Call {
  readonly kind: 'call'
  readonly call: ToolCall
}
type Piece = Block | Call

/**
 * Reads a stream to its end.
 * @throws what the stream throws
 */
export async function readAnswer(stream: ReadableStream<LanguageModelV4StreamPart>): Promise<Answer> {
  const pieces: Piece[] = []
  const open = new Map<string, Block>()
  let unreadable: unknown
  const blockOf = (kind: Block['kind'], id: string, begins: boolean): Block => {
    const key = `${kind} ${id}`
    const known = begins ? undefined : open.get(key)
    if (known) return known
    const block: Block = { kind, text: '', metadata: undefined }
    open.set(key, block)
    pieces.push(block)
    return block
  }

  for await (const part of stream) {
    switch (part.type) {
      case 'text-start':
      case 'text-delta':
      case 'text-end': {
        const block = blockOf('text', part.id, part.type === 'text-start')
        if (part.type === 'text-delta') block.text += part.delta
        block.metadata = merged(block.metadata, part.providerMetadata)
        break
      }
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end': {
        const block = blockOf('reasoning', part.id, false)
        if (part.type === 'reasoning-delta') block.text += part.delta
        block.metadata = merged(block.metadata, part.providerMetadata)
        break
      }
      case 'tool-call':
        pieces.push(callOf(part))
        break
      case 'error':
        unreadable ??= part.error
        break
    }
  }
  return answerOf(pieces, unreadable)
}

/** The answer of a call that did not stream. */
export function wholeAnswer({ content }: Pick<LanguageModelV4GenerateResult, 'content'>): Answer {
  const pieces = content.flatMap((part): Piece[] => {
    if (part.type === 'tool-call') return [callOf(part)]
    if (part.type !== 'text' && part.type !== 'reasoning') return []
    return [{ kind: part.type, text: part.text, metadata: merged(undefined, part.providerMetadata) }]
  })
  return answerOf(pieces, undefined)
}

const callOf = (part: Extract<LanguageModelV4Content, { type: 'tool-call' }>): Call => ({
  kind: 'call',
  call: {
    id: part.toolCallId,
    name: part.toolName,
    arguments: part.input,
    ...(part.providerMetadata && { providerMetadata: kept(part.providerMetadata) }),
  },
})

function answerOf(pieces: readonly Piece[], unreadable: unknown): Answer {
  const { content, marks } = joined(pieces)
  const thoughts = pieces.filter((p): p is Block => p.kind === 'reasoning' && Boolean(p.text || p.metadata))
  const toolCalls = pieces.filter((p): p is Call => p.kind === 'call').map((p) => p.call)
  const texts = [content, ...thoughts.map((b) => b.text), ...toolCalls.map((c) => c.arguments)]
  return {
    message: {
      role: 'assistant',
      content,
      ...(marks.length && { marks }),
      ...(thoughts.length && {
        reasoning: thoughts.map((b) => ({ text: b.text, ...(b.metadata && { providerMetadata: kept(b.metadata) }) })),
      }),
      toolCalls,
    },
    bytes: texts.reduce((sum, t) => sum + byteLength(t), 0),
    ...(unreadable !== undefined && { unreadable }),
  }
}

/**
 * All texts as one. Text that goes on after reasoning or a call, or of which the provider says something else, is a
 * paragraph of its own.
 */
function joined(pieces: readonly Piece[]): { content: string; marks: TextMark[] } {
  let content = ''
  const marks: TextMark[] = []
  let before: Piece | undefined
  let said = ''
  for (const piece of pieces) {
    if (piece.kind === 'text') {
      const mark = wantedBack(piece.metadata)
      const saying = JSON.stringify(mark ?? null)
      const apart = before?.kind !== 'text' || saying !== said
      if (content && piece.text && apart) content += '\n\n'
      const from = content.length
      content += piece.text.toWellFormed()
      if (mark) marks.push({ from, to: content.length, providerMetadata: mark })
      said = saying
    }
    before = piece
  }
  return { content, marks }
}

/** Of what is said about a text, what changes the next request: OpenAI's phase, Gemini's signature. */
function wantedBack(metadata: Json | undefined): Json | undefined {
  const { openai, google } = (metadata ?? {}) as { readonly [provider: string]: Json | undefined }
  if (openai?.phase) return { openai: { phase: openai.phase } }
  if (google?.thoughtSignature) return { google: { thoughtSignature: google.thoughtSignature } }
  return undefined
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

/** Only what JSON holds: it is stored and sent back. Bedrock's package says everything twice, under an older name. */
function kept(metadata: object): unknown {
  const { bedrock, ...rest } = metadata as Json
  return JSON.parse(JSON.stringify('amazonBedrock' in rest || bedrock === undefined ? rest : metadata))
}

/** The message with its arguments as they came on the wire, where the package has parsed them and rounded the numbers. */
export function withExactCalls(message: AssistantMessage, calls: readonly string[]): AssistantMessage {
  if (calls.length === 0 || calls.length !== message.toolCalls.length) return message
  return { ...message, toolCalls: message.toolCalls.map((c, i) => ({ ...c, arguments: calls[i]! })) }
}

/** What every API takes as the id of a call. */
const ID = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * The message with calls that can be told apart: an id that is missing, that no API would take back, or that an earlier
 * call of the conversation has (Claude wants them unique throughout) gives way to one that follows from the place.
 * @param said ids that the provider gave, where the package makes up others at random
 */
export function withOwnIds(
  message: AssistantMessage,
  before: readonly Message[],
  said: ReadonlySet<string> | undefined,
): AssistantMessage {
  const answers = before.filter((m) => m.role === 'assistant')
  const taken = new Set(answers.flatMap((m) => m.toolCalls.map((c) => c.id)))
  const wanted = new Set(message.toolCalls.map((c) => c.id))
  let changed = false
  const toolCalls = message.toolCalls.map((call, i) => {
    let { id } = call
    if (!ID.test(id) || taken.has(id) || said?.has(id) === false) {
      const base = `call_${answers.length}_${i}`
      id = base
      for (let n = 2; taken.has(id) || wanted.has(id); n++) id = `${base}_${n}`
      changed = true
    }
    taken.add(id)
    return id === call.id ? call : { ...call, id }
  })
  return changed ? { ...message, toolCalls } : message
}

/** Whether the word for the end promises more than a text: calls, or a rest that another request would bring. */
export const promisesMore = (finish: string): boolean => finish === 'pause_turn' || FINISH.get(finish) === 'tool_calls'

/** Whether the answer was cut where its cap was reached, which may be in the middle of a call. */
export const isCapped = (finish: string): boolean => FINISH.get(finish) === 'length'

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
