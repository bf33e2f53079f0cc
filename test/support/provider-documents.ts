/** Answers of providers as one JSON document, for calls that do not stream. */
import type { Said } from './provider-server.ts'

const textOf = (said: Said): string | undefined => said.text?.join('')
const argsOf = (args: readonly string[]): string => args.join('')
/** In Node 24, and not yet in TypeScript's library. */
const json = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown
  rawJSON(text: string): unknown
}

/** Arguments inside a document or an event, with their numbers as they stand. */
export const exactly = (args: readonly string[]): unknown =>
  json.parse(argsOf(args), (_, value, { source }) => (typeof value === 'number' ? json.rawJSON(source!) : value))

export const chatDocument = (said: Said, usage?: unknown): object => ({
  id: said.id ?? 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: said.model ?? 'test-model',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        ...(said.reasoning !== undefined && { reasoning_content: said.reasoning }),
        content: textOf(said) ?? null,
        ...(said.calls && {
          tool_calls: said.calls.map((c) => ({
            id: c.id,
            type: 'function',
            function: { name: c.name, arguments: argsOf(c.args) },
          })),
        }),
      },
      finish_reason: said.calls?.length ? 'tool_calls' : 'stop',
    },
  ],
  ...(usage !== undefined && { usage }),
})

export const responsesDocument = (said: Said, usage?: unknown): object => ({
  id: said.id ?? 'resp_1',
  object: 'response',
  created_at: 1_700_000_000,
  status: 'completed',
  error: null,
  incomplete_details: null,
  model: said.model ?? 'test-model',
  output: [
    ...(said.reasoning === undefined
      ? []
      : [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: said.reasoning }]),
    ...(said.text === undefined
      ? []
      : [
          {
            type: 'message',
            id: 'msg_1',
            role: 'assistant',
            content: [{ type: 'output_text', text: textOf(said), annotations: [] }],
          },
        ]),
    ...(said.calls ?? []).map((c, i) => ({
      type: 'function_call',
      id: `fc_${i}`,
      call_id: c.id,
      name: c.name,
      arguments: argsOf(c.args),
      status: 'completed',
    })),
  ],
  ...(usage !== undefined && { usage }),
})

export const anthropicDocument = (said: Said, usage?: unknown): object => ({
  id: said.id ?? 'msg_1',
  type: 'message',
  role: 'assistant',
  model: said.model ?? 'test-model',
  content: [
    ...(said.reasoning === undefined ? [] : [{ type: 'thinking', thinking: said.reasoning, signature: 'signed' }]),
    ...(said.text === undefined ? [] : [{ type: 'text', text: textOf(said) }]),
    ...(said.calls ?? []).map((c) => ({ type: 'tool_use', id: c.id, name: c.name, input: exactly(c.args) })),
  ],
  stop_reason: said.calls?.length ? 'tool_use' : 'end_turn',
  stop_sequence: null,
  ...(usage !== undefined && { usage }),
})

export const googleDocument = (said: Said, usage?: unknown): object => ({
  responseId: said.id ?? 'google-1',
  modelVersion: said.model ?? 'test-model',
  candidates: [
    {
      index: 0,
      content: {
        role: 'model',
        parts: [
          ...(said.reasoning === undefined ? [] : [{ text: said.reasoning, thought: true }]),
          ...(said.text === undefined ? [] : [{ text: textOf(said) }]),
          ...(said.calls ?? []).map((c) => ({
            functionCall: { id: c.id, name: c.name, args: exactly(c.args) },
            thoughtSignature: 'signed',
          })),
        ],
      },
      finishReason: 'STOP',
    },
  ],
  ...(usage !== undefined && { usageMetadata: usage }),
})

export const converseDocument = (said: Said, usage?: unknown): object => ({
  output: {
    message: {
      role: 'assistant',
      content: [
        ...(said.reasoning === undefined
          ? []
          : [{ reasoningContent: { reasoningText: { text: said.reasoning, signature: 'signed' } } }]),
        ...(said.text === undefined ? [] : [{ text: textOf(said) }]),
        ...(said.calls ?? []).map((c) => ({ toolUse: { toolUseId: c.id, name: c.name, input: exactly(c.args) } })),
      ],
    },
  },
  stopReason: said.calls?.length ? 'tool_use' : 'end_turn',
  metrics: { latencyMs: 1 },
  ...(usage !== undefined && { usage }),
})
