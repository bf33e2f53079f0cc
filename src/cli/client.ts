import { UsageError } from './io.ts'

/** A client of the HTTP API. The API may be on the network or in this process: it is a function from Request to Response. */
export interface Client {
  get<T>(path: string): Promise<T>
  post<T>(path: string, body?: unknown): Promise<T>
  /** an answer that is no JSON, as it stands */
  text(path: string, accept: string): Promise<string>
  put<T>(path: string, body: unknown): Promise<T>
  /** answered with no content */
  delete(path: string): Promise<void>
  /**
   * server-sent events, until the answer ends or the signal aborts
   * @param lastId goes on behind the event with this id
   */
  events(path: string, lastId: string | undefined, signal: AbortSignal): AsyncGenerator<ServerSent>
  /** all pages of a list: `all('/v1/runs', 'runs')` */
  all<T>(path: string, key: string): Promise<T[]>
}

/** One block of a stream of events. */
export interface ServerSent {
  readonly id?: string
  readonly event?: string
  readonly data?: string
  /** ms after which the client should come back */
  readonly retry?: number
}

/** What the API refused, or that it could not be reached. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** 0: there was no answer */
  readonly status: number
  /** where the input is wrong, as far as the API told */
  readonly issues: readonly { readonly path: string; readonly message: string }[]
  /** the API's code of it; null: there is none */
  readonly code: string | null

  constructor(status: number, message: string, issues: ApiError['issues'] = [], code: string | null = null) {
    super(message)
    this.status = status
    this.issues = issues
    this.code = code
  }
}

export type Fetch = (request: Request) => Response | Promise<Response>

/** @param options.baseUrl may have a path, such as the stage of a gateway: the routes are below it */
export function createClient(fetch: Fetch, options: { baseUrl: string; token?: string }): Client {
  const { baseUrl, token } = options
  const root = baseUrl.replace(/\/+$/, '')

  async function ask(
    method: string,
    path: string,
    accept: string,
    body?: unknown,
  ): Promise<{ response: Response; text: string }> {
    const request = new Request(`${root}${path}`, {
      method,
      headers: {
        accept,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    try {
      const response = await fetch(request)
      return { response, text: await response.text() }
    } catch (e) {
      throw e instanceof UsageError ? e : unreachable(e)
    }
  }

  async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const { response, text } = await ask(method, path, 'application/json', body)
    const value = parse(text)
    if (response.ok && value !== undefined) return value as T
    throw refusal(response.status, value)
  }

  async function* events(path: string, lastId: string | undefined, signal: AbortSignal): AsyncGenerator<ServerSent> {
    const request = new Request(`${root}${path}`, {
      headers: {
        accept: 'text/event-stream',
        ...(lastId !== undefined && { 'last-event-id': lastId }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      signal,
    })
    const { promise: aborted, resolve } = Promise.withResolvers<void>()
    const onAbort = () => resolve()
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) return
    let reader: ReadableStreamDefaultReader<string> | undefined
    try {
      const response = await Promise.race([fetch(request), aborted])
      if (!response) return
      if (!response.ok) throw refusal(response.status, parse(await response.text()))
      reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
      for (let text = ''; ; ) {
        const piece = await Promise.race([reader.read(), aborted])
        if (!piece || piece.done) return
        const blocks = (text + piece.value).split('\n\n')
        text = blocks.pop()!
        yield* blocks.map(readBlock)
      }
    } catch (e) {
      if (signal.aborted) return
      throw e instanceof ApiError || e instanceof UsageError ? e : unreachable(e)
    } finally {
      signal.removeEventListener('abort', onAbort)
      reader?.cancel().catch(() => {})
    }
  }

  const unreachable = (e: unknown): ApiError =>
    new ApiError(0, `${baseUrl} does not answer (${reason(e)}). Is it running? "subledger dev" starts it.`)

  return {
    events,
    get: (path) => send('GET', path),
    post: (path, body) => send('POST', path, body),
    async text(path, accept) {
      const { response, text } = await ask('GET', path, accept)
      if (response.ok) return text
      throw refusal(response.status, parse(text))
    },
    put: (path, body) => send('PUT', path, body),
    async delete(path) {
      const { response, text } = await ask('DELETE', path, 'application/json')
      if (!response.ok) throw refusal(response.status, parse(text))
    },
    async all(path, key) {
      const items: never[] = []
      let cursor: string | null = null
      do {
        const query: string = `limit=100${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
        const page: { [key: string]: unknown } = await send('GET', `${path}${path.includes('?') ? '&' : '?'}${query}`)
        items.push(...(page[key] as never[]))
        cursor = page.next as string | null
      } while (cursor !== null)
      return items
    },
  }
}

function readBlock(text: string): ServerSent {
  const fields: { [name: string]: string } = {}
  for (const line of text.split('\n')) {
    const at = line.indexOf(': ')
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2)
  }
  const { id, event, data, retry } = fields
  return {
    ...(id !== undefined && { id }),
    ...(event !== undefined && { event }),
    ...(data !== undefined && { data }),
    ...(retry !== undefined && { retry: Number(retry) }),
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refusal(status: number, value: unknown): ApiError {
  const problem = (value ?? {}) as { detail?: unknown; message?: unknown; errors?: unknown; code?: unknown }
  const detail = [problem.detail, problem.message].find((d) => typeof d === 'string')
  const issues = Array.isArray(problem.errors) ? (problem.errors as ApiError['issues']) : []
  const text = detail === undefined ? `The API answered with status ${status}.` : String(detail)
  return new ApiError(status, text, issues, typeof problem.code === 'string' ? problem.code : null)
}

/** fetch hides the reason of a failed connection in the cause. */
function reason(e: unknown): string {
  const cause = e instanceof Error && e.cause instanceof Error ? e.cause : e
  const code = (cause as { code?: unknown }).code
  return typeof code === 'string' ? code : cause instanceof Error ? cause.message : String(cause)
}
