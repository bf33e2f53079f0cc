import { describe, expect, it } from 'vitest'
import { finishReason } from '../../src/model/answer.ts'
import { brokenOff, classify, cleanText, retryAfterMs } from '../../src/model/failure.ts'
import { newHeard } from '../../src/model/heard.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const caused = (code: string) => new Error('no', { cause: Object.assign(new Error('deep'), { code }) })
const kind = (error: unknown, heard: object) => {
  const { failure, free } = classify(error, { ...newHeard(), sent: true, ...heard }, NOW, [])
  return [failure.class, free]
}

describe('a failure', () => {
  it.each<[string, string]>([
    ['overloaded_error', 'overloaded'],
    ['rate_limit_error', 'rate_limit'],
    ['rate_limit_exceeded', 'rate_limit'],
    ['insufficient_quota', 'auth'],
    ['authentication_error', 'auth'],
    ['permission_error', 'auth'],
    ['invalid_request_error', 'invalid_request'],
    ['context_length_exceeded', 'invalid_request'],
    ['not_found_error', 'invalid_request'],
    ['api_error', 'server'],
    ['server_error', 'server'],
    ['502', 'server'],
    ['throttlingException', 'rate_limit'],
    ['RESOURCE_EXHAUSTED', 'rate_limit'],
    ['serviceUnavailableException', 'overloaded'],
    ['UNAVAILABLE', 'overloaded'],
    ['validationException', 'invalid_request'],
    ['accessDeniedException', 'auth'],
    ['modelStreamErrorException', 'server'],
    ['INTERNAL', 'server'],
    ['429', 'rate_limit'],
    ['', 'server'],
  ])('told inside a stream as "%s" is %s, and may have been paid for', (type, expected) => {
    expect(kind(undefined, { status: 200, error: { type, message: 'm' } })).toEqual([expected, false])
  })

  it.each<[number, string, boolean]>([
    [401, 'auth', true],
    [402, 'auth', true],
    [408, 'server', false],
    [424, 'server', false],
    [413, 'invalid_request', true],
    [422, 'invalid_request', true],
    [429, 'rate_limit', true],
    [503, 'overloaded', true],
    [529, 'overloaded', true],
    [500, 'server', false],
    [502, 'server', false],
    [504, 'server', false],
  ])('of status %i is %s; free: %s', (status, expected, free) => {
    expect(kind(new Error('no'), { status })).toEqual([expected, free])
  })

  it.each<[string, string, boolean]>([
    ['ECONNREFUSED', 'network', true],
    ['ENOTFOUND', 'network', true],
    ['UND_ERR_CONNECT_TIMEOUT', 'network', true],
    ['ECONNRESET', 'network', false],
    ['UND_ERR_SOCKET', 'network', false],
    ['UND_ERR_HEADERS_TIMEOUT', 'timeout', false],
  ])('to connect with %s is %s; free: %s', (code, expected, free) => {
    expect(kind(caused(code), {})).toEqual([expected, free])
  })

  it('before a request was made is free, and no use in trying again', () => {
    expect(kind(new Error('no'), { sent: false })).toEqual(['invalid_request', true])
  })

  it('of a silent or a broken stream is told apart', () => {
    expect(kind(undefined, { status: 200, cut: caused('UND_ERR_BODY_TIMEOUT') })).toEqual(['timeout', false])
    expect(kind(undefined, { status: 200, cut: new Error('terminated') })).toEqual(['network', false])
    expect(kind(undefined, { status: 200, finish: 'error' })).toEqual(['server', false])
    expect(kind(undefined, { status: 200 })).toEqual(['incomplete', false])
  })
})

it('the time to wait is read from its headers, bounded by a day', () => {
  const after = (headers: Record<string, string>) => retryAfterMs(new Headers(headers), NOW)
  expect(after({ 'retry-after': '2.5' })).toBe(2500)
  expect(after({ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' })).toBe(30_000)
  expect(after({ 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' })).toBe(0)
  expect(after({ 'retry-after-ms': '12.2', 'retry-after': '9' })).toBe(13)
  expect(after({ 'retry-after': '99999999' })).toBe(86_400_000)
  expect(after({ 'retry-after': 'soon' })).toBeUndefined()
  expect(after({})).toBeUndefined()
  expect(retryAfterMs(undefined, NOW)).toBeUndefined()
})

it("the time to wait is read from Gemini's error where no header tells it", () => {
  const waiting = (error: object) => classify(error, { ...newHeard(), sent: true, status: 429 }, NOW, []).failure
  const details = [{ '@type': 'type.googleapis.com/google.rpc.Help' }, { retryDelay: '13.5s' }]
  expect(waiting({ data: { error: { details } } }).retryAfterMs).toBe(13_500)
  expect(waiting({ data: { error: { details: [{ retryDelay: 'soon' }] } } })).not.toHaveProperty('retryAfterMs')
})

it('the text of a failure is one line without keys, also those that a provider echoes with stars', () => {
  expect(cleanText('bad key: my-secret\n see sk-proj-ab**********cd or gsk_x', ['my-secret'])).toBe(
    'bad key: [key] see [key] or gsk_x',
  )
  expect(cleanText('AIzaSyB-1234567890 and ASIAABCDEFGHIJKLMNOP', [])).toBe('[key] and [key]')
  expect(Buffer.byteLength(cleanText('é'.repeat(400), []))).toBe(300)
})

it('a call that took too long is told from one that was stopped', () => {
  const of = (reason?: unknown) => brokenOff(AbortSignal.abort(reason)).class
  expect([of('timeout'), of(new DOMException('late', 'TimeoutError'))]).toEqual(['timeout', 'timeout'])
  expect([of('stopped'), of(), of(new Error('x'))]).toEqual(['aborted', 'aborted', 'aborted'])
})

it.each<[string, number, boolean, string]>([
  ['stop', 0, false, 'stop'],
  ['stop', 1, false, 'tool_calls'],
  ['stop', 0, true, 'refusal'],
  ['completed', 2, true, 'tool_calls'],
  ['tool_use', 0, false, 'stop'],
  ['max_tokens', 1, false, 'length'],
  ['max_output_tokens', 0, false, 'length'],
  ['model_context_window_exceeded', 0, false, 'length'],
  ['content_filter', 0, false, 'content_filter'],
  ['refusal', 0, false, 'refusal'],
  ['new_word', 0, false, 'other'],
])('an end told as %s with %i calls (refused: %s) is %s', (finish, calls, refused, expected) => {
  expect(finishReason({ ...newHeard(), finish, refused }, calls)).toBe(expected)
})
