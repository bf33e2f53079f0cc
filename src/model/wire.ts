import type { ModelApi } from '../domain/team.ts'
import { type Heard, hear, hearError, isObject } from './heard.ts'

/** An answer longer than this is no answer; reading it on would only fill the memory. */
const MAX_ANSWER_BYTES = 64_000_000
/** How long the rest of a stream that has said all may take, so that its connection can be used again. */
const DRAIN_MS = 250

/**
 * A fetch that takes down what the provider says, while the provider's package reads the same bytes. The body is read
 * as fast as it comes, so what had arrived when a connection broke is known, whoever had read it by then.
 * @param key without one no authentication header leaves, whatever the package puts there
 */
export function listeningFetch(api: ModelApi, heard: Heard, fetch: typeof globalThis.fetch, key: string | undefined) {
  const listening: typeof globalThis.fetch = async (input, init) => {
    const headers = new Headers(init?.headers)
    if (key === undefined) for (const name of ['authorization', 'x-api-key']) headers.delete(name)
    heard.sent = true
    // a redirect would take the key along to another host
    const response = await fetch(input, { ...init, headers, redirect: 'error' })
    heard.status = response.status
    heard.headers = response.headers
    if (!response.ok || !response.body) return response
    const json = response.headers.get('content-type')?.includes('application/json') === true
    const to = json ? new WholeJson(heard) : new Events(api, heard)
    const body = listen(response.body, to, heard, init?.signal ?? undefined)
    return new Response(body, { status: response.status, headers: response.headers })
  }
  return listening
}

interface Reader {
  read(text: string): void
  end(): void
}

function listen(
  body: ReadableStream<Uint8Array>,
  to: Reader,
  heard: Heard,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let gone = false
  // a body that does not mind the signal itself is let go all the same
  signal?.addEventListener('abort', () => void reader.cancel().catch(() => {}), { once: true })
  return new ReadableStream<Uint8Array>({
    async start(controller) {
      const decoder = new TextDecoder()
      let bytes = 0
      try {
        while (!heard.ended) {
          const { done, value } = await reader.read()
          if (done || gone) break
          bytes += value.byteLength
          if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`)
          to.read(decoder.decode(value, { stream: true }))
          controller.enqueue(value)
        }
        to.end()
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

/** Server-sent events: `data:` lines up to an empty line are one event. */
class Events implements Reader {
  #rest = ''
  #data: string[] = []
  readonly #api: ModelApi
  readonly #heard: Heard

  constructor(api: ModelApi, heard: Heard) {
    this.#api = api
    this.#heard = heard
  }

  read(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop()!
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5))
      else if (line === '' && this.#data.length) hear(this.#api, this.#heard, this.#data.splice(0).join('\n'))
    }
  }

  /** An event without its closing line is cut off and does not count. */
  end(): void {}
}

/** A server that answers a streaming request with one JSON document: no answer for us, but it may say what it cost. */
class WholeJson implements Reader {
  #text = ''
  readonly #heard: Heard

  constructor(heard: Heard) {
    this.#heard = heard
  }

  read(text: string): void {
    this.#text += text
  }

  end(): void {
    const heard = this.#heard
    try {
      const document: unknown = JSON.parse(this.#text)
      if (!isObject(document)) return
      if (isObject(document.usage)) {
        heard.usage = document.usage
        heard.usageFinal = true
      }
      if (document.error) hearError(heard, document.error)
    } catch {
      // says nothing
    }
  }
}
