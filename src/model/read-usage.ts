import type { ModelApi } from '../domain/team.ts'
import { count } from './count.ts'
import { isObject, type Json, objects } from './heard.ts'

/** What a usage object says. A count that it does not say is left out, never 0. */
export interface SaidUsage {
  readonly input?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  readonly cacheWrite1h?: number
  readonly output?: number
  readonly reasoning?: number
}

/**
 * Reads a provider's usage object. What is inside what is decided here, at the edge, and nowhere else: from here on input
 * is all input and output all output.
 */
export function readUsage(api: ModelApi, raw: Json): SaidUsage {
  if (api === 'anthropic') return readAnthropic(raw)
  if (api === 'google') return readGoogle(raw)
  if (api === 'amazon_bedrock') return readBedrock(raw)
  return readOpenai(raw)
}

/**
 * Whether a usage object says input and output itself, not only a total that they could be read out of. Gemini's total
 * beside its prompt says the output.
 */
export function saysBoth(api: ModelApi, raw: Json): boolean {
  const prompt = api === 'google' && count(raw.promptTokenCount) !== undefined
  const { total_tokens: _, totalTokens: __, totalTokenCount, ...itemised } = raw
  const { input, output } = readUsage(api, prompt ? { ...itemised, totalTokenCount } : itemised)
  return input !== undefined && output !== undefined
}

/**
 * Anthropic counts fresh input, cache reads and cache writes apart; thinking is inside the output.
 *
 * `iterations` lists what one request ran: the counts at the top leave out compactions (they are billed at the same
 * rates) and, where another model served the answer, the attempts that were declined. A declined attempt is billed where
 * it had begun to write, and free otherwise. An advisor's tokens are billed at the rates of a model that is not known here;
 * no advisor is ever asked for.
 */
function readAnthropic(raw: Json): SaidUsage {
  const top = anthropicCounts(raw)
  const iterations = objects(raw.iterations)
  const served = iterations.findLast((i) => i.type === 'fallback_message')
  const attempts = iterations.filter((i) => i.type !== 'compaction' && i.type !== 'advisor_message' && i !== served)
  const also = served ? attempts.filter((i) => (count(i.output_tokens) ?? 0) > 0) : attempts
  const compactions = iterations.filter((i) => i.type === 'compaction')
  const listed = [...compactions, ...also].map(anthropicCounts).reduce(sum, {})
  const all = served ? sum(top, listed) : most(top, listed)
  const { fresh, ...counts } = all
  const parts = (all.cacheRead ?? 0) + (all.cacheWrite ?? 0)
  const thinking = count(isObject(raw.output_tokens_details) ? raw.output_tokens_details.thinking_tokens : undefined)
  return said({
    ...counts,
    input: (fresh ?? 0) + parts,
    output: wholeOutput(all.output, thinking),
    reasoning: thinking,
  })
}

type AnthropicCounts = Omit<SaidUsage, 'input' | 'reasoning'> & { readonly fresh?: number }
const ANTHROPIC_COUNTS = ['fresh', 'cacheRead', 'cacheWrite', 'cacheWrite1h', 'output'] as const

function anthropicCounts(raw: Json): AnthropicCounts {
  const written = count(raw.cache_creation_input_tokens)
  const lifetimes = isObject(raw.cache_creation) ? raw.cache_creation : undefined
  const hour = count(lifetimes?.ephemeral_1h_input_tokens)
  const short = count(lifetimes?.ephemeral_5m_input_tokens)
  const split = hour === undefined && short === undefined ? undefined : (hour ?? 0) + (short ?? 0)
  return defined({
    fresh: count(raw.input_tokens),
    cacheRead: count(raw.cache_read_input_tokens),
    cacheWrite: larger(written, split),
    cacheWrite1h: hour,
    output: count(raw.output_tokens),
  })
}

const combine = (a: AnthropicCounts, b: AnthropicCounts, how: (x: number, y: number) => number): AnthropicCounts =>
  defined(
    Object.fromEntries(
      ANTHROPIC_COUNTS.map((k) => [k, a[k] === undefined ? b[k] : b[k] === undefined ? a[k] : how(a[k], b[k])]),
    ),
  )
const sum = (a: AnthropicCounts, b: AnthropicCounts): AnthropicCounts => combine(a, b, (x, y) => x + y)
/** A list that is shorter than the whole takes nothing back. */
const most = (a: AnthropicCounts, b: AnthropicCounts): AnthropicCounts => combine(a, b, Math.max)

/**
 * Gemini: cached tokens are inside the prompt, what its own tools read is beside it, and thoughts are beside the
 * candidates, unless the total of the same response says that they are inside.
 */
function readGoogle(raw: Json): SaidUsage {
  const tools = count(raw.toolUsePromptTokenCount) ?? 0
  const candidates = count(raw.candidatesTokenCount)
  const thoughts = count(raw.thoughtsTokenCount)
  const total = count(raw.totalTokenCount)
  const cacheRead = count(raw.cachedContentTokenCount)
  const output = candidates === undefined && thoughts === undefined ? undefined : (candidates ?? 0) + (thoughts ?? 0)
  const prompt = count(raw.promptTokenCount) ?? remainder(total, (output ?? 0) + tools)
  const cached = cacheRead !== undefined && prompt !== undefined && cacheRead > prompt ? cacheRead : 0
  const input = prompt === undefined ? undefined : prompt + tools + cached
  // more in total than is itemised is billed as output; a total of nothing but input says that there was none
  const rest = total === undefined || input === undefined ? undefined : Math.max(total - input, 0)
  // a total may leave thoughts out altogether: they are inside only where there is room for them
  const inside = (candidates ?? 0) >= (thoughts ?? 0) && rest === (candidates ?? 0)
  return said({
    input,
    cacheRead,
    output: inside ? rest : larger(output, rest),
    reasoning: thoughts,
  })
}

/** Bedrock's Converse: input, cache reads and cache writes apart, the lifetimes of the writes in `cacheDetails`. */
function readBedrock(raw: Json): SaidUsage {
  const fresh = count(raw.inputTokens)
  const cacheRead = count(raw.cacheReadInputTokens)
  const details = objects(raw.cacheDetails)
  const written = (ttl?: string) =>
    details.filter((d) => ttl === undefined || d.ttl === ttl).reduce((n, d) => n + (count(d.inputTokens) ?? 0), 0)
  const cacheWrite = larger(count(raw.cacheWriteInputTokens), details.length ? written() : undefined)
  const total = count(raw.totalTokens)
  const itemised = count(raw.outputTokens)
  const cached = (cacheRead ?? 0) + (cacheWrite ?? 0)
  // a total may leave the cached tokens out: then there is nothing more to read out of it
  const uncached = fresh ?? remainder(total, (itemised ?? 0) + cached)
  const input = uncached === undefined ? undefined : uncached + cached
  return said({
    input,
    cacheRead,
    cacheWrite,
    cacheWrite1h: details.length ? written('1h') : undefined,
    output: larger(itemised, input === undefined ? undefined : remainder(total, input)),
  })
}

/**
 * OpenAI's two shapes, and those that call themselves compatible: cached tokens are inside the input, reasoning inside
 * the output. Some leave reasoning out of the output (xAI, by either rule), gateways to other providers leave cached
 * tokens out of the input: the total of the same response tells.
 */
function readOpenai(raw: Json): SaidUsage {
  const itemised = count(raw.completion_tokens) ?? count(raw.output_tokens)
  const total = count(raw.total_tokens)
  const inputDetails = either(raw.prompt_tokens_details, raw.input_tokens_details)
  const outputDetails = either(raw.completion_tokens_details, raw.output_tokens_details)
  const cacheRead = first(
    inputDetails?.cached_tokens,
    raw.prompt_cache_hit_tokens,
    raw.cached_tokens,
    raw.cache_read_input_tokens,
  )
  const cacheWrite = first(
    inputDetails?.cache_write_tokens,
    inputDetails?.cache_creation_tokens,
    raw.cache_creation_input_tokens,
  )
  const reasoning = count(outputDetails?.reasoning_tokens)
  const cached = (cacheRead ?? 0) + (cacheWrite ?? 0)
  const prompt = count(raw.prompt_tokens) ?? count(raw.input_tokens)
  const input = prompt ? prompt : (remainder(total, wholeOutput(itemised, reasoning) ?? 0) ?? prompt)
  const output = itemised ?? (input === undefined ? undefined : remainder(total, input))
  const more = total === undefined || input === undefined || output === undefined ? undefined : total - input - output
  // cached input beside the input: it could not be inside, or the total says so
  const outside = input !== undefined && cached > 0 && (cached > input || (more === cached && more !== reasoning))
  const counted = outside && more !== undefined && more >= cached ? cached : 0
  return said({
    input: outside ? input + cached : input,
    cacheRead,
    cacheWrite,
    output: wholeOutput(output, reasoning, more === undefined ? undefined : more - counted),
    reasoning,
  })
}

/**
 * Output with its reasoning, whether the provider counts that inside `output` or beside it.
 * @param more what the total has beyond input and output: output that is not itemised, or itemised as reasoning
 */
function wholeOutput(output: number | undefined, reasoning = 0, more = 0): number | undefined {
  if (output === undefined) return undefined
  const counted = output + Math.max(more, 0)
  return reasoning > counted ? output + reasoning : counted
}

/** What a total has beyond the counts that are known; undefined: nothing. */
const remainder = (total: number | undefined, known: number): number | undefined =>
  total !== undefined && total > known ? total - known : undefined

const first = (...values: readonly unknown[]): number | undefined => values.map(count).find((n) => n !== undefined)

const either = (a: unknown, b: unknown): Json | undefined => (isObject(a) ? a : isObject(b) ? b : undefined)

const larger = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b)

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
const defined = <T extends object>(o: T): Defined<T> =>
  Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined)) as Defined<T>

/** A request has input always: 0 says that the provider did not count. */
const said = (u: { readonly [K in keyof SaidUsage]: number | undefined }): SaidUsage => {
  const { input, ...rest } = defined(u)
  return { ...rest, ...(input !== undefined && input > 0 && { input }) }
}
