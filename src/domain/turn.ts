import type { Amount } from './money.ts'
import type { Price } from './pricing.ts'
import type { CallOutcome, TokenUsage, UsageSource } from './usage.ts'

/** A tool call of an answer. `arguments` is the JSON text as the model wrote it, kept to the last byte. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
  /** what the provider wants back with the call (signatures and the like), as its SDK gave it */
  readonly providerMetadata?: unknown
}

export interface UserMessage {
  readonly role: 'user'
  readonly content: string
}

export interface AssistantMessage {
  readonly role: 'assistant'
  readonly content: string
  /** parts of `content`, by their place in it, of which the provider wants back what it said about them, in order */
  readonly marks?: readonly TextMark[]
  /** reasoning that the provider wants back before the tool calls of the same answer */
  readonly reasoning?: readonly { readonly text: string; readonly providerMetadata?: unknown }[]
  readonly toolCalls: readonly ToolCall[]
}

export interface TextMark {
  /** from here to before there, in UTF-16 units */
  readonly from: number
  readonly to: number
  readonly providerMetadata: unknown
}

export interface ToolMessage {
  readonly role: 'tool'
  readonly toolCallId: string
  readonly toolName: string
  readonly content: string
  readonly isError?: boolean
}

export type Message = UserMessage | AssistantMessage | ToolMessage

/** The write-ahead record of a model call: put before it, so that no call is invisible. */
export interface Intent {
  /** the most that the call may cost, set aside until its outcome is known */
  readonly hold: Amount
  /** nonce of the invocation that may call, and nobody else */
  readonly driver: string
  readonly attempt: number
  readonly agent: string
  /** key of the team's models */
  readonly model: string
  /** upper bound of the input in tokens */
  readonly estimate: number
  /** output cap in tokens */
  readonly cap: number
  /** epoch ms */
  readonly at: number
}

export type StopReason =
  | 'end_turn'
  | 'max_iterations'
  | 'max_tokens'
  | 'budget'
  | 'content_filter'
  | 'refusal'
  | 'error'
  | 'timeout'
  | 'cancelled'
  | 'parent_ended'
  | 'max_attempts'
  | 'max_continuations'
  | 'approval'
  | 'children'

export interface ErrorInfo {
  readonly code: string
  readonly message: string
}

/** Closes a log: the session ends with this, and no call can begin after it. */
export interface End {
  readonly status: 'completed' | 'failed' | 'cancelled'
  readonly reason: StopReason
  readonly error?: ErrorInfo
}

/** Slot n#0: what is new in call n, and the intent; or the end of the log. */
export interface RequestSlot {
  readonly n: number
  /** round of the session's conversation that this request belongs to (1 is the first) */
  readonly round: number
  readonly messages: readonly Message[]
  readonly intent?: Intent
  readonly end?: End
  readonly at: number
}

/** Slot n#1: the outcome of call n. It says all that a row of the books needs, without its request. */
export interface ResponseSlot {
  readonly n: number
  /** `none`: the intent was given up before the call, which was never made; no row of the books */
  readonly outcome: CallOutcome | 'none'
  /** nonce of the driver whose call this is */
  readonly of: string
  readonly attempt: number
  readonly agent: string
  /** key of the team's models */
  readonly model: string
  /** why it failed, was lost or is waste */
  readonly cause?: string
  readonly usage: TokenUsage
  readonly usageSource: UsageSource
  /** pico-USD; null: the model has no known price */
  readonly cost: bigint | null
  /** the price used, in pico-USD per token */
  readonly price: Price | null
  /** what was set aside for it; kept when an unknown outcome is replaced */
  readonly bound?: { readonly hold: Amount; readonly estimate: number; readonly cap: number }
  /** by how much it cost or used more than was set aside for it; left out: it kept within */
  readonly over?: Amount
  readonly message?: AssistantMessage
  readonly finishReason?: FinishReason
  /** the provider's id of the response */
  readonly responseId?: string
  /** the model that answered, where the provider names another than the one asked for */
  readonly answeredBy?: string
  /** the provider's usage object as JSON text, so that the call can be booked again */
  readonly rawUsage?: string
  /** epoch ms of the call's start, and how long it took */
  readonly startedAt: number
  readonly durationMs: number
  /** results of the tools, where all are instantaneous; then `next` is the intent of call n+1 */
  readonly results?: readonly ToolMessage[]
  readonly next?: Intent
  readonly end?: End
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'refusal' | 'error' | 'other'

/** Slot n#2#i: the durable result of tool call i of answer n. */
export interface ToolResultSlot {
  readonly n: number
  readonly index: number
  readonly content: string
  readonly isError?: boolean
  readonly at: number
}

/** All slots of one session, in order. Slots may be missing at the end only. */
export interface LogSlots {
  readonly requests: ReadonlyMap<number, RequestSlot>
  readonly responses: ReadonlyMap<number, ResponseSlot>
  /** by `${n}#${index}` */
  readonly results: ReadonlyMap<string, ToolResultSlot>
}
