/** The port by which the engine calls models. */
import type { ModelDefinition } from '../domain/team.ts'
import type { AssistantMessage, FinishReason, Message } from '../domain/turn.ts'
import type { TokenUsage, UsageSource } from '../domain/usage.ts'

/** What a tool looks like to a model. */
export interface ToolSpec {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments */
  readonly parameters: object
}

export interface ModelRequest {
  readonly definition: ModelDefinition
  readonly system: string
  /** the whole conversation so far; every tool call has exactly one result */
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
  /** the most that the answer may have, sent to the provider; left out: what output-caps.ts says for the model */
  readonly maxOutputTokens?: number
  /** aborts the stream; what the provider had said is still returned */
  readonly signal: AbortSignal
  /** names this call for providers that keep a bill of their own (the scripted model): session, call number, driver */
  readonly call: { readonly sessionId: string; readonly n: number; readonly driver: string }
}

/** Classes of failure, by what may be done about them. */
export type ModelErrorClass =
  | 'rate_limit' // 429: try again, not before retryAfterMs
  | 'overloaded' // 529, or said inside the stream: try again
  | 'server' // 5xx: try again
  | 'network' // no or a broken connection: try again
  | 'timeout' // we gave up waiting
  | 'aborted' // we stopped it (cancel, lost lease)
  | 'auth' // 401, 403, or no key: no use in trying again
  | 'invalid_request' // 4xx: no use in trying again
  | 'incomplete' // the stream ended without a terminator: try again

export interface ModelFailure {
  readonly class: ModelErrorClass
  readonly message: string
  readonly retryAfterMs?: number
}

/**
 * What came of one call. Never thrown: a failed call may have been paid for, so it carries usage as an accepted one does.
 * `usage` is the provider's own where it said anything; otherwise it is an estimate, and `usageSource` says so. A call
 * that certainly cost nothing (refused before any work: auth, 4xx, 429, connection refused) has zero usage, `reported`.
 */
export interface ModelResult {
  /** the answer; absent when the call failed */
  readonly message?: AssistantMessage
  readonly finishReason: FinishReason
  readonly usage: TokenUsage
  readonly usageSource: UsageSource
  /** the provider's usage object, JSON text */
  readonly rawUsage?: string
  readonly responseId?: string
  readonly answeredBy?: string
  readonly failure?: ModelFailure
}

export interface Model {
  /** Makes exactly one call: no retries, no tool execution. */
  call(request: ModelRequest): Promise<ModelResult>
}
