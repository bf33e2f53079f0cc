import type { ModelApi } from '../domain/team.ts'
import { type Frame, Frames } from './event-stream.ts'
import { hear, hearDocument, hearRefusal } from './hear.ts'
import { hearBedrock } from './hear-bedrock.ts'
import { type Heard, isObject } from './heard.ts'
import { isPlain, plain } from './plain.ts'

/** An answer longer than this is no answer; reading it on would only fill the memory. */
const MAX_ANSWER_BYTES = 64_000_000
/** How long the rest of a stream that has said all may take, so that its connection can be used again. */
const DRAIN_MS = 250
/**
 * How long a stream without a mark for its end may stay silent after it has told why it ended and what it cost. Older
 * Gemini models say `STOP` with every chunk, so that its streams are given more time.
 */
const lingerMs = (api: ModelApi): number => (api === 'google' ? 3_000 : 500)

/** Headers in which the packages send a key. */
const KEY_HEADERS = ['authorization', 'x-api-key', 'x-goog-api-key']

export interface Listening {
  readonly api: ModelApi
  readonly heard: Heard
  readonly fetch: typeof globalThis.fetch
  /** no authentication leaves, whatever the package puts there */
  readonly anonymous: boolean
}

/**
 * A fetch that takes down what the provider says, while the provider's package reads the same bytes. The body is read
 * as fast as it comes, so what had arrived when a connection broke is known, whoever had read it by then. It makes one
 * request: a call is one row of the books.
 */
export function listeningFetch({ api, heard, fetch, anonymous }: Listening): typeof globalThis.fetch {
  return async (input, init) => {
    if (heard.sent) {
      // read once more, as what it is: a document where a stream was asked for
      if (heard.document !== undefined) return document(heard.document)
      throw new Error('the package asked for a second request in one call')
    }
    const headers = new Headers(init?.headers)
    if (anonymous) for (const name of KEY_HEADERS) headers.delete(name)
    heard.sent = true
    // a redirect would take the key along to another host
    const response = await fetch(input, { ...init, headers, redirect: 'error' })
    heard.status = response.status
    heard.headers = response.headers
    if (!response.body) return response
    if (response.ok && api === 'amazon_bedrock')
      heard.responseId = response.headers.get('x-amzn-requestid') ?? undefined
    const body = { body: response.body, heard, signal: init?.signal ?? undefined, lingerMs: lingerMs(api) }
    if (!response.ok) {
      const { status, statusText, headers } = response
      return new Response(listen({ ...body, to: new Refusal(heard) }), { status, statusText, headers })
    }
    if (response.headers.get('content-type')?.includes('application/json')) {
      const text = plain(api, await wholeText(body))
      hearDocument(api, heard, text)
      if (heard.finish !== undefined && !heard.error) heard.document = readable(text)
      return document(heard.document ?? text, response.headers)
    }
    const stream = listen({ ...body, to: api === 'amazon_bedrock' ? new AwsEvents(heard) : new Events(api, heard) })
    return new Response(stream, { status: response.status, headers: response.headers })
  }
}

const document = (text: string, headers = new Headers({ 'content-type': 'application/json' })) =>
  new Response(text, { headers })

/** Gemini's package would ask for the rest of an answer that it cut itself, which is another call. */
const readable = (text: string): string => text.replace(/("finishReason"\s*:\s*)"CONTINUATION"/, '$1"MAX_TOKENS"')

interface Body {
  readonly body: ReadableStream<Uint8Array>
  readonly heard: Heard
  readonly signal: AbortSignal | undefined
  readonly lingerMs: number
}

/** @throws what breaks the connection; what had come by then stays in `begun` */
async function wholeText(from: Body): Promise<string> {
  const { heard } = from
  const decoder = new TextDecoder()
  heard.begun = ''
  const to: Reader = {
    read(bytes) {
      heard.begun += decoder.decode(bytes, { stream: true })
      return bytes
    },
  }
  const reader = listen({ ...from, to }).getReader()
  while (!(await reader.read()).done);
  const text = heard.begun
  delete heard.begun
  return text
}

interface Reader {
  /** @returns what the package is to read */
  read(bytes: Uint8Array): Uint8Array
  /** what is left for the package at the end */
  rest?(): Uint8Array
}

function listen(from: Body & { readonly to: Reader }): ReadableStream<Uint8Array> {
  const { body, heard, signal, to } = from
  const reader = body.getReader()
  let gone = false
  // a body that does not mind the signal itself is let go all the same
  signal?.addEventListener('abort', () => void reader.cancel().catch(() => {}), { once: true })
  return new ReadableStream<Uint8Array>({
    async start(controller) {
      let bytes = 0
      try {
        while (!heard.ended) {
          const { done, value } = await next(reader, from)
          if (done || gone) break
          bytes += value.byteLength
          if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`)
          const heardNow = to.read(value)
          if (heardNow.byteLength) controller.enqueue(heardNow)
        }
        const rest = to.rest?.()
        if (!gone && rest?.byteLength) controller.enqueue(rest)
        if (!gone) controller.close()
        void drain(reader)
      } catch (e) {
        reader.cancel().catch(() => {})
        if (gone) return
        heard.cut = e
        // an answer whose end was heard is whole, whatever becomes of the connection
        if (heard.finish !== undefined) controller.close()
        else controller.error(e)
      }
    },
    cancel(reason) {
      gone = true
      return reader.cancel(reason)
    },
  })
}

type Read = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>>

/** The next piece, or the end where a stream that has said all says nothing more. */
async function next(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { heard, lingerMs }: Pick<Body, 'heard' | 'lingerMs'>,
): Promise<Read> {
  const read = reader.read()
  if (heard.finish === undefined || !heard.usageFinal) return read
  const { promise, resolve } = Promise.withResolvers<Read>()
  const late = setTimeout(() => resolve({ done: true, value: undefined }), lingerMs)
  try {
    return await Promise.race([read, promise])
  } finally {
    clearTimeout(late)
    read.catch(() => {})
  }
}

async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const late = setTimeout(() => void reader.cancel().catch(() => {}), DRAIN_MS)
  late.unref()
  try {
    while (!(await reader.read()).done);
  } catch {
    // all had been said
  } finally {
    clearTimeout(late)
  }
}

/**
 * Server-sent events: `data:` lines up to an empty line are one event. One without its closing line does not count. The
 * package gets them event by event, in the form that it reads.
 */
class Events implements Reader {
  readonly #decoder = new TextDecoder()
  readonly #encoder = new TextEncoder()
  #rest = ''
  #lines: string[] = []
  #data: string[] = []
  readonly #api: ModelApi
  readonly #heard: Heard

  constructor(api: ModelApi, heard: Heard) {
    this.#api = api
    this.#heard = heard
  }

  read(bytes: Uint8Array): Uint8Array {
    let out = ''
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n')
    this.#rest = lines.pop()!
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5))
      this.#lines.push(raw)
      if (line === '') out += this.#event(this.#lines.splice(0), this.#data.splice(0).join('\n'))
    }
    return isPlain(this.#api) ? bytes : this.#encoder.encode(out)
  }

  rest(): Uint8Array {
    return this.#encoder.encode(isPlain(this.#api) ? '' : [...this.#lines, this.#rest].join('\n'))
  }

  #event(lines: readonly string[], data: string): string {
    const text = plain(this.#api, data)
    if (data) hear(this.#api, this.#heard, text)
    const others = text === data ? lines : [...lines.filter((l) => l && !l.startsWith('data:')), `data: ${text}`, '']
    return `${others.join('\n')}\n`
  }
}

/** The body of an answer that is no 2xx. */
class Refusal implements Reader {
  readonly #decoder = new TextDecoder()
  readonly #heard: Heard
  #text = ''

  constructor(heard: Heard) {
    this.#heard = heard
  }

  read(bytes: Uint8Array): Uint8Array {
    this.#text += this.#decoder.decode(bytes, { stream: true })
    return bytes
  }

  rest(): Uint8Array {
    hearRefusal(this.#heard, this.#text)
    return new Uint8Array()
  }
}

/** AWS's event stream, as Bedrock speaks it. Bytes that are none are left to the package, which says so. */
class AwsEvents implements Reader {
  #frames: Frames | undefined = new Frames()
  readonly #heard: Heard

  constructor(heard: Heard) {
    this.#heard = heard
  }

  read(bytes: Uint8Array): Uint8Array {
    const heard = this.#heard
    for (const { headers, payload } of this.#read(bytes)) {
      const kind = headers.get(':message-type') ?? ''
      const type = headers.get(':event-type') ?? headers.get(':exception-type') ?? headers.get(':error-code') ?? ''
      hearBedrock(heard, kind, type, bodyOf(heard, payload, headers.get(':error-message')))
    }
    return bytes
  }

  #read(bytes: Uint8Array): readonly Frame[] {
    try {
      return this.#frames?.read(bytes) ?? []
    } catch {
      this.#heard.unreadable++
      this.#frames = undefined
      return []
    }
  }
}

function bodyOf(heard: Heard, payload: string, message: string | undefined) {
  try {
    const body: unknown = payload === '' ? {} : JSON.parse(payload)
    return isObject(body) ? { ...(message !== undefined && { message }), ...body } : {}
  } catch {
    if (heard.finish === undefined) heard.unreadable++
    return {}
  }
}
