import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { crc32 } from 'node:zlib'
import { exactly } from './provider-documents.ts'

/** What the server does with one request, in the order of the replies given. */
export interface Reply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** written one after the other */
  readonly chunks: readonly (string | Uint8Array)[]
  /** `end` closes properly, `cut` destroys the connection, `hang` leaves it open */
  readonly ending?: 'end' | 'cut' | 'hang'
  /** what the provider charges for it; left out: nothing */
  readonly charged?: Charge
}

export interface Charge {
  readonly input: number
  readonly output: number
}

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
  readonly body: any
  /** the body as it came: parsing rounds numbers */
  readonly text: string
  /** resolves when its answer has ended or the caller has let go of it */
  readonly closed: Promise<unknown>
}

export interface ProviderServer {
  /** `http://127.0.0.1:PORT`, without the version */
  readonly url: string
  readonly requests: readonly ReceivedRequest[]
  /** one entry for every request that was answered, as the provider charges it */
  readonly bill: readonly Charge[]
  /** appends replies; a request that finds none is answered with 599 */
  reply(...replies: readonly Reply[]): void
  /** takes back the replies that nobody has asked for */
  clear(): void
  close(): Promise<void>
}

/** A provider on loopback that plays scripted replies, whatever is asked. */
export async function startProviderServer(): Promise<ProviderServer> {
  const requests: ReceivedRequest[] = []
  const bill: Charge[] = []
  const replies: Reply[] = []
  const server = createServer(async (req, res) => {
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part as Buffer)
    const text = Buffer.concat(parts).toString('utf8')
    const { method = '', url = '', headers } = req
    const closed = once(res, 'close')
    requests.push({ method, path: url, headers, body: text ? JSON.parse(text) : undefined, text, closed })
    const reply = replies.shift() ?? { status: 599, chunks: ['no reply was left'] }
    bill.push(reply.charged ?? { input: 0, output: 0 })
    await play(reply, res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    bill,
    reply: (...more) => void replies.push(...more),
    clear: () => void replies.splice(0),
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function play(reply: Reply, res: ServerResponse): Promise<void> {
  res.on('error', () => {})
  res.writeHead(reply.status ?? 200, { 'content-type': 'text/event-stream', ...reply.headers })
  res.flushHeaders()
  for (const chunk of reply.chunks) {
    const written = new Promise((resolve) => res.write(chunk, resolve))
    await written
  }
  if (reply.ending === 'cut') res.socket?.destroy()
  else if (reply.ending !== 'hang') res.end()
}

/** Server-sent events of any API; a text stands for itself (`[DONE]`). */
export const events = (list: readonly (object | string)[]): string[] =>
  list.map((e) => {
    const type = typeof e === 'object' && 'type' in e ? `event: ${e.type}\n` : ''
    return `${type}data: ${typeof e === 'string' ? e : JSON.stringify(e)}\n\n`
  })

/** An error response with the body that OpenAI and Anthropic send. */
export const refusal = (status: number, message: string, headers: Record<string, string> = {}): Reply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  chunks: [JSON.stringify({ type: 'error', error: { type: 'some_error', message } })],
})

/** Pieces of an answer that every API can say. */
export interface Said {
  readonly id?: string
  readonly model?: string
  readonly reasoning?: string
  readonly text?: readonly string[]
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly args: readonly string[] }[]
}

/** Chat completions: chunks up to the finish reason, then the usage, then `[DONE]`. */
export function chatEvents(said: Said, usage?: unknown): (object | string)[] {
  const chunk = (delta: object, finish: string | null = null) => ({
    id: said.id ?? 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: said.model ?? 'test-model',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })
  const list: (object | string)[] = [chunk({ role: 'assistant', content: '' })]
  if (said.reasoning) list.push(chunk({ reasoning_content: said.reasoning }))
  for (const content of said.text ?? []) list.push(chunk({ content }))
  for (const [index, c] of (said.calls ?? []).entries()) {
    const call = { index, id: c.id, type: 'function', function: { name: c.name, arguments: '' } }
    list.push(chunk({ tool_calls: [call] }))
    for (const args of c.args) list.push(chunk({ tool_calls: [{ index, function: { arguments: args } }] }))
  }
  list.push(chunk({}, said.calls?.length ? 'tool_calls' : 'stop'))
  if (usage !== undefined) list.push({ ...chunk({}), choices: [], usage })
  list.push('[DONE]')
  return list
}

/** The responses API, up to `response.completed`, which carries the usage. */
export function responsesEvents(said: Said, usage?: unknown): object[] {
  let sequence = 0
  const event = (type: string, more: object) => ({ type, sequence_number: sequence++, ...more })
  const response = { id: said.id ?? 'resp_1', created_at: 1_700_000_000, model: said.model ?? 'test-model' }
  const list = [event('response.created', { response }), event('response.in_progress', { response })]
  let index = 0
  if (said.reasoning !== undefined) {
    const item = { type: 'reasoning', id: 'rs_1', summary: [] }
    list.push(
      event('response.output_item.added', { output_index: index, item }),
      event('response.output_item.done', {
        output_index: index++,
        item: { ...item, encrypted_content: said.reasoning },
      }),
    )
  }
  if (said.text) {
    const item = { type: 'message', id: 'msg_1', role: 'assistant', content: [] }
    list.push(event('response.output_item.added', { output_index: index, item }))
    for (const delta of said.text)
      list.push(event('response.output_text.delta', { item_id: 'msg_1', output_index: index, content_index: 0, delta }))
    list.push(event('response.output_item.done', { output_index: index++, item }))
  }
  for (const c of said.calls ?? []) {
    const item = { type: 'function_call', id: `fc_${index}`, call_id: c.id, name: c.name, arguments: '' }
    list.push(event('response.output_item.added', { output_index: index, item }))
    for (const delta of c.args)
      list.push(event('response.function_call_arguments.delta', { item_id: item.id, output_index: index, delta }))
    const done = { ...item, arguments: c.args.join(''), status: 'completed' }
    list.push(event('response.output_item.done', { output_index: index++, item: done }))
  }
  list.push(event('response.completed', { response: { ...response, ...(usage !== undefined && { usage }) } }))
  return list
}

/** Anthropic's messages: an opening usage, blocks, a closing usage, `message_stop`. */
export function anthropicEvents(said: Said, opening: unknown, closing: unknown): object[] {
  const message = {
    id: said.id ?? 'msg_1',
    type: 'message',
    role: 'assistant',
    model: said.model ?? 'test-model',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: opening,
  }
  const list: object[] = [{ type: 'message_start', message }, { type: 'ping' }]
  let index = 0
  const block = (content_block: object, deltas: readonly object[]) => {
    list.push({ type: 'content_block_start', index, content_block })
    for (const delta of deltas) list.push({ type: 'content_block_delta', index, delta })
    list.push({ type: 'content_block_stop', index: index++ })
  }
  if (said.reasoning)
    block({ type: 'thinking', thinking: '', signature: '' }, [
      { type: 'thinking_delta', thinking: said.reasoning },
      { type: 'signature_delta', signature: 'signed' },
    ])
  if (said.text)
    block(
      { type: 'text', text: '' },
      said.text.map((text) => ({ type: 'text_delta', text })),
    )
  for (const c of said.calls ?? [])
    block(
      { type: 'tool_use', id: c.id, name: c.name, input: {} },
      c.args.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    )
  const stop_reason = said.calls?.length ? 'tool_use' : 'end_turn'
  list.push({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: closing })
  list.push({ type: 'message_stop' })
  return list
}

/** Gemini: chunks of parts, each with the counts so far; the last one says why it ended, and what it cost. */
export function googleEvents(said: Said, usage?: unknown, opening?: unknown): object[] {
  const chunk = (parts: readonly object[], counts: unknown, more: object = {}) => ({
    responseId: said.id ?? 'google-1',
    modelVersion: said.model ?? 'test-model',
    candidates: [{ index: 0, content: { role: 'model', parts }, ...more }],
    ...(counts !== undefined && { usageMetadata: counts }),
  })
  return [
    ...(said.reasoning ? [chunk([{ text: said.reasoning, thought: true }], opening)] : []),
    ...(said.text ?? []).map((text) => chunk([{ text }], opening)),
    ...(said.calls ?? []).map((c) =>
      chunk([{ functionCall: { id: c.id, name: c.name, args: exactly(c.args) }, thoughtSignature: 'signed' }], opening),
    ),
    chunk([{ text: '' }], usage, { finishReason: 'STOP' }),
  ]
}

/** An event of AWS's event stream: its name, or that of the exception, and its body. */
export interface AwsEvent {
  readonly kind: 'event' | 'exception'
  readonly name: string
  readonly body: object
}

/** Bedrock's Converse stream: blocks, why it ended, and at the very end the usage. */
export function converseEvents(said: Said, usage?: unknown): AwsEvent[] {
  const event = (name: string, body: object): AwsEvent => ({ kind: 'event', name, body })
  const list = [event('messageStart', { role: 'assistant' })]
  let index = 0
  const block = (deltas: readonly object[], start?: object) => {
    const contentBlockIndex = index++
    if (start) list.push(event('contentBlockStart', { contentBlockIndex, start }))
    for (const delta of deltas) list.push(event('contentBlockDelta', { contentBlockIndex, delta }))
    list.push(event('contentBlockStop', { contentBlockIndex }))
  }
  if (said.reasoning)
    block([{ reasoningContent: { text: said.reasoning } }, { reasoningContent: { signature: 'signed' } }])
  if (said.text) block(said.text.map((text) => ({ text })))
  for (const c of said.calls ?? [])
    block(
      c.args.map((input) => ({ toolUse: { input } })),
      { toolUse: { toolUseId: c.id, name: c.name } },
    )
  list.push(event('messageStop', { stopReason: said.calls?.length ? 'tool_use' : 'end_turn' }))
  list.push(event('metadata', { metrics: { latencyMs: 1 }, ...(usage !== undefined && { usage }) }))
  return list
}

/** Frames of `application/vnd.amazon.eventstream`. */
export const awsFrames = (list: readonly AwsEvent[]): Buffer[] =>
  list.map(({ kind, name, body }) => {
    const headers = Buffer.concat(
      Object.entries({
        [`:${kind}-type`]: name,
        ':content-type': 'application/json',
        ':message-type': kind,
      }).map(([key, value]) => awsHeader(key, value)),
    )
    const payload = Buffer.from(JSON.stringify(body))
    const frame = Buffer.alloc(12 + headers.length + payload.length + 4)
    frame.writeUInt32BE(frame.length, 0)
    frame.writeUInt32BE(headers.length, 4)
    frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8)
    headers.copy(frame, 12)
    payload.copy(frame, 12 + headers.length)
    frame.writeUInt32BE(crc32(frame.subarray(0, frame.length - 4)), frame.length - 4)
    return frame
  })

/** A header of type 7: text with its length in two bytes. */
function awsHeader(key: string, value: string): Buffer {
  const text = Buffer.from(value)
  const head = Buffer.from([key.length, ...Buffer.from(key), 7, text.length >> 8, text.length & 255])
  return Buffer.concat([head, text])
}
