import type { AssistantMessage, LogSlots, Message, ResponseSlot } from '../../domain/turn.ts'
import type { Answer, message } from '../shapes.ts'
import { time } from './figures.ts'

/** A message of a transcript. Only accepted answers are part of it. */
export type MessageView = Answer<typeof message>

/** What turn 0 opens with. */
export interface Opening {
  readonly system: string
  /** the task, where the first intent rode on the claim and no request slot holds it */
  readonly task: string | undefined
  /** epoch ms */
  readonly at: number
}

export function openingMessages(opening: Opening): MessageView[] {
  const at = time(opening.at)
  return [
    { turn: 0, role: 'system', content: opening.system, createdAt: at },
    ...(opening.task === undefined ? [] : [{ turn: 0, role: 'user' as const, content: opening.task, createdAt: at }]),
  ]
}

/**
 * The messages that call n brought: what was new in its request, its answer if it was accepted, and the results of the
 * answer's tool calls as far as no later request holds them yet. A tool result belongs to the turn of the answer that
 * asked for it.
 * @param answered number of the last accepted answer before call n, -1: none
 */
export function turnMessages(
  slots: LogSlots,
  n: number,
  answered: number,
): { messages: MessageView[]; answered: number } {
  const messages: MessageView[] = []
  const request = slots.requests.get(n)
  for (const m of request?.messages ?? []) {
    const turn = m.role === 'tool' && answered >= 0 ? answered : n
    messages.push(messageView(m, turn, resultTime(slots, answered, m) ?? request!.at))
  }
  const response = slots.responses.get(n)
  if (response?.outcome !== 'accepted' || !response.message) return { messages, answered }
  const at = response.startedAt + response.durationMs
  messages.push(messageView(response.message, n, at))
  if (response.results) messages.push(...response.results.map((m) => messageView(m, n, at)))
  else if (!slots.requests.has(n + 1)) messages.push(...slotResults(slots, n, response))
  return { messages, answered: n }
}

function messageView(m: Message, turn: number, at: number): MessageView {
  const createdAt = time(at)
  if (m.role === 'user') return { turn, role: 'user', content: m.content, createdAt }
  if (m.role === 'assistant') return { turn, role: 'assistant', ...assistantParts(m), createdAt }
  return {
    turn,
    role: 'tool',
    content: m.content,
    toolCallId: m.toolCallId,
    toolName: m.toolName,
    ...(m.isError && { isError: true as const }),
    createdAt,
  }
}

function assistantParts(m: AssistantMessage): Pick<MessageView, 'content' | 'toolCalls'> {
  const reasoning = (m.reasoning ?? [])
    .filter((r) => r.text !== '')
    .map((r) => ({ type: 'reasoning' as const, text: r.text }))
  return {
    content: reasoning.length === 0 ? m.content : [...reasoning, { type: 'text', text: m.content }],
    ...(m.toolCalls.length > 0 && {
      toolCalls: m.toolCalls.map((c) => ({ id: c.id, name: c.name, arguments: c.arguments })),
    }),
  }
}

/** Results that are durable while others are still being waited for. */
function slotResults(slots: LogSlots, n: number, response: ResponseSlot): MessageView[] {
  return response.message!.toolCalls.flatMap((call, index) => {
    const slot = slots.results.get(`${n}#${index}`)
    if (!slot) return []
    const { content, isError } = slot
    const message = {
      role: 'tool' as const,
      toolCallId: call.id,
      toolName: call.name,
      content,
      ...(isError && { isError }),
    }
    return [messageView(message, n, slot.at)]
  })
}

/** When the result of a tool call became durable, where it has a slot of its own. */
function resultTime(slots: LogSlots, n: number, m: Message): number | undefined {
  if (m.role !== 'tool') return undefined
  const calls = slots.responses.get(n)?.message?.toolCalls ?? []
  return slots.results.get(`${n}#${calls.findIndex((c) => c.id === m.toolCallId)}`)?.at
}
