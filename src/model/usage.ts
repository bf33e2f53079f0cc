import type { ModelApi } from '../domain/team.ts'
import { byteLength } from '../domain/text.ts'
import { NO_USAGE, type TokenUsage, type UsageSource } from '../domain/usage.ts'
import type { ModelRequest } from '../ports.ts'
import type { Json } from './heard.ts'

/** The provider's usage object is kept as text up to this size; it comes from outside and goes into an item. */
const RAW_USAGE_BYTES = 4_000

/** What a usage object says. A count that it does not say is left out, never 0. */
export interface SaidUsage {
  readonly input?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  readonly cacheWrite1h?: number
  readonly output?: number
  readonly reasoning?: number
}

/** What is booked for a call. */
export interface BookedUsage {
  readonly usage: TokenUsage
  readonly usageSource: UsageSource
  readonly rawUsage?: string
}

/**
 * The usage of a call that reached its provider. What the provider said goes before an estimate, count by count; output
 * that was received but not counted by the provider yet is estimated, so a broken stream is never booked lower than what
 * the provider had said, nor lower than what had come.
 * @param complete whether the answer came whole
 */
export function bookUsage(
  api: ModelApi,
  heard: { readonly usage?: Json | undefined; readonly usageFinal: boolean; readonly outputBytes: number },
  inputEstimate: number,
  complete: boolean,
): BookedUsage {
  const said = heard.usage ? readUsage(api, heard.usage) : {}
  const received = tokensOf(heard.outputBytes)
  // an opening count (Anthropic's `1`) or a 0 beside text that came is no statement about the whole output
  const whole = heard.usageFinal && said.output !== undefined && (said.output > 0 || received === 0)
  const usage = toUsage({
    ...said,
    input: said.input ?? inputEstimate,
    output: whole ? said.output! : Math.max(said.output ?? 0, received),
  })
  if (said.input === undefined && said.output === undefined) return { usage, usageSource: 'estimated' }
  const rawUsage = JSON.stringify(heard.usage)
  return {
    usage,
    usageSource: complete && whole && said.input !== undefined ? 'reported' : 'partial',
    ...(byteLength(rawUsage) <= RAW_USAGE_BYTES && { rawUsage }),
  }
}

/** A call that certainly cost nothing. */
export const FREE: BookedUsage = { usage: NO_USAGE, usageSource: 'reported' }

/** Reads a provider's usage object. Sums are made here and nowhere else. */
export function readUsage(api: ModelApi, raw: Json): SaidUsage {
  return api === 'anthropic' ? readAnthropic(raw) : readOpenai(raw)
}

/** Anthropic counts fresh input, cache reads and cache writes apart; thinking is inside the output. */
function readAnthropic(raw: Json): SaidUsage {
  const fresh = count(raw.input_tokens)
  const read = count(raw.cache_read_input_tokens)
  const written = count(raw.cache_creation_input_tokens)
  const lifetimes = object(raw.cache_creation)
  const hour = count(lifetimes?.ephemeral_1h_input_tokens) ?? 0
  const cacheWrite = Math.max(written ?? 0, (count(lifetimes?.ephemeral_5m_input_tokens) ?? 0) + hour)
  return said({
    input: (fresh ?? 0) + (read ?? 0) + cacheWrite,
    cacheRead: read,
    cacheWrite,
    cacheWrite1h: hour,
    output: count(raw.output_tokens),
    reasoning: count(object(raw.output_tokens_details)?.thinking_tokens),
  })
}

/**
 * OpenAI's two shapes, and those that call themselves compatible: cached tokens are inside the input, reasoning inside
 * the output. Some (xAI, Gemini) leave reasoning out of the output; `total_tokens` of the same response tells.
 */
function readOpenai(raw: Json): SaidUsage {
  const input = count(raw.prompt_tokens) ?? count(raw.input_tokens)
  const output = count(raw.completion_tokens) ?? count(raw.output_tokens)
  const total = count(raw.total_tokens)
  const inputDetails = object(raw.prompt_tokens_details) ?? object(raw.input_tokens_details)
  const outputDetails = object(raw.completion_tokens_details) ?? object(raw.output_tokens_details)
  const cacheRead = count(inputDetails?.cached_tokens) ?? count(raw.prompt_cache_hit_tokens) ?? count(raw.cached_tokens)
  const reasoning = count(outputDetails?.reasoning_tokens)
  return said({
    input,
    cacheRead,
    cacheWrite: count(inputDetails?.cache_write_tokens),
    output: wholeOutput(input, output, reasoning ?? 0, total),
    reasoning,
  })
}

/** Output with its reasoning, whether the provider counts that inside `output` or beside it. */
function wholeOutput(
  input: number | undefined,
  output: number | undefined,
  reasoning: number,
  total: number | undefined,
): number | undefined {
  if (output === undefined) return undefined
  if (input === undefined || total === undefined) return reasoning > output ? output + reasoning : output
  // more in total than input and output: output that is billed and not itemised, or itemised as reasoning
  const beside = total - input - output
  if (beside > 0) return output + beside
  return reasoning > output ? output + reasoning : output
}

/** A request has input always: 0 says that the provider did not count. */
const said = (u: { readonly [K in keyof SaidUsage]: number | undefined }): SaidUsage =>
  Object.fromEntries(
    Object.entries(u).filter(([name, value]) => value !== undefined && !(name === 'input' && value === 0)),
  )

/** Parts never exceed their whole, whatever was said. */
function toUsage(s: SaidUsage & { readonly input: number; readonly output: number }): TokenUsage {
  const { cacheRead = 0, cacheWrite = 0, cacheWrite1h = 0, reasoning = 0 } = s
  return {
    inputTokens: Math.max(s.input, cacheRead + cacheWrite),
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    cacheWrite1hTokens: Math.min(cacheWrite1h, cacheWrite),
    outputTokens: s.output,
    reasoningTokens: Math.min(reasoning, s.output),
  }
}

/** A whole number from 0 on, or nothing: NaN, negative numbers, null and text are no counts. */
const count = (v: unknown): number | undefined =>
  typeof v === 'number' && v >= 0 && Number.isSafeInteger(Math.ceil(v)) ? Math.ceil(v) : undefined

const object = (v: unknown): Json | undefined => (typeof v === 'object' && v !== null ? (v as Json) : undefined)

/** Tokens of so many bytes of UTF-8, by the rule of thumb of four bytes a token, rounded up. */
export const tokensOf = (bytes: number): number => Math.ceil(bytes / 4)

/**
 * The likely input of a request in tokens: bytes of system message, conversation and tool declarations, divided by four
 * and rounded up. A likely value for calls whose provider said nothing, not the bound that a hold is computed with: text
 * in dense scripts takes more tokens than this.
 */
export function estimateInput(request: Pick<ModelRequest, 'system' | 'messages' | 'tools'>): number {
  let bytes = byteLength(request.system)
  if (request.tools.length) bytes += byteLength(JSON.stringify(request.tools))
  for (const m of request.messages) {
    bytes += byteLength(m.content)
    if (m.role !== 'assistant') continue
    for (const r of m.reasoning ?? []) bytes += byteLength(r.text)
    for (const c of m.toolCalls) bytes += byteLength(c.name) + byteLength(c.arguments)
  }
  return tokensOf(bytes)
}
