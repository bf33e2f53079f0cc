import type { ModelApi } from '../domain/team.ts'
import { byteLength } from '../domain/text.ts'
import { NO_USAGE, type TokenUsage, type UsageSource } from '../domain/usage.ts'
import type { ModelRequest } from '../ports.ts'
import { MAX_COUNT } from './count.ts'
import { isObject, type Json } from './heard.ts'
import { readUsage, type SaidUsage, saysBoth } from './read-usage.ts'

/** The provider's usage object is kept as text up to this size; it comes from outside and goes into an item. */
const RAW_USAGE_BYTES = 4_000

/** The most tokens of a kind that one call is booked with: counts may be summed up from lists of any length. */
const MAX_BOOKED = 10 * MAX_COUNT

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

/**
 * The usage of a call that was refused before any work: nothing, unless its provider counts input and output all the same.
 * A lone total may be the state of a quota.
 */
export function bookRefused(api: ModelApi, heard: Parameters<typeof bookUsage>[1]): BookedUsage {
  if (!heard.usage || !saysBoth(api, heard.usage)) return FREE
  const booked = bookUsage(api, heard, 0, false)
  return booked.usage.inputTokens + booked.usage.outputTokens > 0 ? booked : FREE
}

/**
 * Books a call again from the usage object that was kept of it: what `bookUsage` made of it where the answer came whole.
 * @returns undefined where the text says nothing of input or output
 */
export function bookAgain(api: ModelApi, rawUsage: string): TokenUsage | undefined {
  const raw: unknown = JSON.parse(rawUsage)
  const { input, output, ...said } = isObject(raw) ? readUsage(api, raw) : {}
  return input === undefined || output === undefined ? undefined : toUsage({ ...said, input, output })
}

/** A whole is never less than its parts, and nothing exceeds MAX_BOOKED, whatever was said. */
function toUsage(s: SaidUsage & { readonly input: number; readonly output: number }): TokenUsage {
  const { cacheWrite1h = 0 } = s
  const reasoning = Math.min(s.reasoning ?? 0, MAX_BOOKED)
  const cacheRead = Math.min(s.cacheRead ?? 0, MAX_BOOKED)
  const cacheWrite = Math.min(s.cacheWrite ?? 0, MAX_BOOKED - cacheRead)
  return {
    inputTokens: Math.min(Math.max(s.input, cacheRead + cacheWrite), MAX_BOOKED),
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    cacheWrite1hTokens: Math.min(cacheWrite1h, cacheWrite),
    outputTokens: Math.min(Math.max(s.output, reasoning), MAX_BOOKED),
    reasoningTokens: reasoning,
  }
}

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
