import { ERROR_BYTES } from '../domain/limits.ts'
import { cutBytes } from '../domain/text.ts'
import type { ModelErrorClass, ModelFailure } from '../ports.ts'
import { type Heard, isObject, objects } from './heard.ts'

const DAY_MS = 86_400_000

/** Failures to connect: no request has left, so nothing was paid for. */
const NEVER_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])
const TIMED_OUT = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'])

/** A failed call: what it is, and whether it certainly cost nothing. */
export interface Classified {
  readonly failure: ModelFailure
  readonly free: boolean
}

/**
 * Says what went wrong with a call, from what was heard on the wire; the error that a provider's package threw only adds
 * words. A call is free where it was refused before any work: no connection, 4xx, or a server that says it is too busy
 * (429, 503, 529). Any other 5xx may come from a gateway behind which the model had worked, and 408 and 424 are Bedrock's
 * words for a model that worked in vain.
 * @param secrets values that must not appear in the message
 */
export function classify(error: unknown, heard: Heard, now: number, secrets: readonly string[]): Classified {
  const failed = (kind: ModelErrorClass, text: string, free: boolean): Classified => {
    const waits = kind === 'rate_limit' || kind === 'overloaded'
    const retryAfter = waits ? (retryAfterMs(heard.headers, now) ?? retryDelayMs(error)) : undefined
    const message = cleanText(text, secrets)
    return { failure: { class: kind, message, ...(retryAfter !== undefined && { retryAfterMs: retryAfter }) }, free }
  }
  const { status } = heard
  if (status !== undefined && (status < 200 || status > 299)) {
    const kind = ofStatus(status, providerCode(error))
    const busy = kind === 'rate_limit' || kind === 'overloaded'
    const free = busy || (status < 500 && status !== 408 && status !== 424)
    return failed(kind, `HTTP ${status}: ${textOf(error)}`, free)
  }
  if (heard.error) {
    const { type, message } = heard.error
    return failed(ofEvent(type), type ? `${type}: ${message}` : message, false)
  }
  if (status === undefined) {
    if (!heard.sent) return failed('invalid_request', textOf(error), true)
    const codes = codesOf(error)
    const kind = codes.some((c) => TIMED_OUT.has(c)) ? 'timeout' : 'network'
    return failed(
      kind,
      textOf(error),
      codes.some((c) => NEVER_CONNECTED.has(c)),
    )
  }
  if (heard.cut !== undefined) {
    if (codesOf(heard.cut).some((c) => TIMED_OUT.has(c))) return failed('timeout', 'The provider fell silent.', false)
    return failed('network', `The connection broke while the answer was read (${textOf(heard.cut)}).`, false)
  }
  if (heard.finish === 'error') return failed('server', 'The provider ended the answer with an error.', false)
  if (error !== undefined) return failed('incomplete', `The answer could not be read: ${textOf(error)}`, false)
  if (heard.finish !== undefined) {
    const lacks = 'but lacks what was said or promised: a tool call, or any text'
    return failed('incomplete', `The answer ended (${heard.finish}), ${lacks}.`, false)
  }
  return failed('incomplete', 'The answer ended without the mark that ends it.', false)
}

/** The failure of a call that its caller broke off. */
export function brokenOff(signal: AbortSignal): ModelFailure {
  const { reason } = signal
  if (reason === 'timeout' || (reason instanceof Error && reason.name === 'TimeoutError'))
    return { class: 'timeout', message: 'The model had not answered in time.' }
  const why = typeof reason === 'string' ? ` (${cleanText(reason, [])})` : ''
  return { class: 'aborted', message: `The call was broken off${why}.` }
}

function ofStatus(status: number, code: string): ModelErrorClass {
  if (NO_MONEY.test(code)) return 'auth'
  if (status === 401 || status === 402 || status === 403) return 'auth'
  if (status === 429) return 'rate_limit'
  if (status === 503 || status === 529) return 'overloaded'
  // the server gave up on this request, another one may do
  if (status >= 500 || status === 408 || status === 409 || status === 424) return 'server'
  return status >= 400 ? 'invalid_request' : 'network'
}

/** Sent as 429, but waiting brings no money. */
const NO_MONEY = /insufficient_quota|billing/

/** The providers' words for what is wrong, as they stand in error events. */
function ofEvent(type: string): ModelErrorClass {
  if (/^[45]\d\d$/.test(type)) return ofStatus(Number(type), '')
  if (NO_MONEY.test(type) || /auth|permission|accessdenied/i.test(type)) return 'auth'
  if (/rate_limit|throttling|resource_exhausted/i.test(type)) return 'rate_limit'
  if (/overload|unavailable/i.test(type)) return 'overloaded'
  if (/invalid|validation|not_?found|too_large|context_length/i.test(type)) return 'invalid_request'
  return 'server'
}

/** What a `retry-after-ms` or `retry-after` header asks for, in ms; seconds or an HTTP date; a day at most. */
export function retryAfterMs(headers: Headers | undefined, now: number): number | undefined {
  const exact = Number(headers?.get('retry-after-ms') ?? Number.NaN)
  const text = headers?.get('retry-after')
  const asked = Number.isFinite(exact)
    ? exact
    : text
      ? /^[\d.]+$/.test(text)
        ? Number(text) * 1000
        : Date.parse(text) - now
      : Number.NaN
  return Number.isFinite(asked) ? Math.min(Math.max(Math.ceil(asked), 0), DAY_MS) : undefined
}

/** What Gemini asks for: `retryDelay` among the details of its error, in seconds. */
function retryDelayMs(error: unknown): number | undefined {
  const body = isObject(error) && isObject(error.data) && isObject(error.data.error) ? error.data.error : undefined
  const delay = objects(body?.details).map((d) => /^([\d.]+)s$/.exec(String(d.retryDelay))?.[1])
  const seconds = Number(delay.find((d) => d !== undefined) ?? Number.NaN)
  return Number.isFinite(seconds) ? Math.min(Math.ceil(seconds * 1000), DAY_MS) : undefined
}

/** Keys as providers echo them, whole or with stars. */
const KEY_LIKE =
  /\b(?:(?:sk|gsk|xai)-[\w*.-]{6,}|AIza[\w*-]{6,}|(?:AKIA|ASIA)[A-Z0-9*]{6,}|bedrock-api-key-[\w*=+/-]{6,})/g

/** One line of at most 300 bytes without the secrets, which go before the cut, so that no half of one is left. */
export function cleanText(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const s of secrets) if (s) clean = clean.replaceAll(s, '[key]')
  return cutBytes(clean.replace(KEY_LIKE, '[key]').replace(/\s+/g, ' ').trim(), ERROR_BYTES)
}

/** The provider's own code, where the error has the body that came with it. */
function providerCode(error: unknown): string {
  const data = isObject(error) && isObject(error.data) ? error.data : undefined
  const inner = isObject(data?.error) ? data.error : data
  return `${inner?.code ?? ''} ${inner?.type ?? ''}`
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause instanceof Error && error.cause.message !== error.message ? error.cause.message : ''
  const text = error.message || error.name
  return cause && !text.includes(cause) ? `${text} (${cause})` : text
}

/** Error codes along the chain of causes. */
function codesOf(error: unknown): string[] {
  const codes: string[] = []
  const queue = [error]
  for (const e of queue) {
    if (!(e instanceof Error) || queue.length > 20) continue
    if ('code' in e && typeof e.code === 'string') codes.push(e.code)
    if (e.cause !== undefined) queue.push(e.cause)
    if (e instanceof AggregateError) queue.push(...e.errors)
  }
  return codes
}
