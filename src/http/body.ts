import { SubledgerError } from '../domain/errors.ts'
import { MAX_BODY_BYTES } from '../domain/limits.ts'
import { parseJson } from './json.ts'

/**
 * Reads a JSON body: bounded before it is parsed, whatever content-length says.
 * @throws SubledgerError unsupported_media_type, too_large, bad_json
 */
export async function readJson(request: Request, most = MAX_BODY_BYTES): Promise<unknown> {
  checkMediaType(request.headers)
  return parseBytes(await readBytes(request, most))
}

/** For routes that take no body: nothing at all, or an empty object. */
export async function readNothing(request: Request): Promise<void> {
  // read as it is: who reads a clone of a body and gives up waits for ever for the other half
  const bytes = await readBytes(request, MAX_BODY_BYTES)
  if (bytes.length === 0) return
  checkMediaType(request.headers)
  const value = parseBytes(bytes)
  if (value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length === 0) return
  throw new SubledgerError('bad_request', 'This route takes no body: leave it out, or send {}.')
}

/** For routes whose body may be left out: nothing at all is an empty object. */
export async function readOptionalJson(request: Request, most = MAX_BODY_BYTES): Promise<unknown> {
  const bytes = await readBytes(request, most)
  if (bytes.length === 0) return {}
  checkMediaType(request.headers)
  return parseBytes(bytes)
}

function parseBytes(bytes: Uint8Array): unknown {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new SubledgerError('bad_json', 'The body is not valid UTF-8.')
  }
  if (text.trim() === '') throw new SubledgerError('bad_json', 'The body is empty: a JSON object is expected.')
  return parseJson(text)
}

function checkMediaType(headers: Headers): void {
  const [type = '', ...parameters] = (headers.get('content-type') ?? '').split(';').map((s) => s.trim().toLowerCase())
  if (type !== 'application/json') {
    const found = type === '' ? 'there is no Content-Type' : `the Content-Type is ${type}`
    throw new SubledgerError('unsupported_media_type', `Send the body as application/json: ${found}.`)
  }
  const charset = parameters.find((p) => p.startsWith('charset='))?.slice('charset='.length)
  if (charset !== undefined && charset !== 'utf-8' && charset !== '"utf-8"') {
    throw new SubledgerError('unsupported_media_type', 'JSON is read as UTF-8: leave the charset out.')
  }
  const encoding = headers.get('content-encoding')
  if (encoding !== null && encoding.toLowerCase() !== 'identity') {
    throw new SubledgerError('unsupported_media_type', 'Send the body without a Content-Encoding.')
  }
}

/** Its sender has gone away in the middle of it: there is nobody whom an answer would reach. */
export class BrokenBody extends SubledgerError {
  constructor(cause: unknown) {
    super('bad_request', 'The body broke off before its end: send the request again.', { cause })
  }
}

async function* chunksOf(body: Request['body']): AsyncGenerator<Uint8Array> {
  try {
    yield* body ?? []
  } catch (fault) {
    throw new BrokenBody(fault)
  }
}

async function readBytes(request: Request, most: number): Promise<Uint8Array> {
  const tooLarge = () =>
    new SubledgerError('too_large', `The body is larger than ${most} bytes, the most that is accepted.`)
  if (Number(request.headers.get('content-length') ?? 0) > most) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunksOf(request.body)) {
    size += chunk.length
    if (size > most) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
