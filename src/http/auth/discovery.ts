import type { FetchImplementation } from 'jose'

const TIMEOUT_MS = 5_000
/** Of a discovery document or a key set. */
const MAX_BYTES = 262_144
/** A discovery document's path below the issuer. */
const PATH = '.well-known/openid-configuration'

/** A request to the issuer: no redirects, and no more than a key set can be. */
export const issuerFetch: FetchImplementation = async (url, options) => {
  const response = await fetch(url, { ...options, redirect: 'error' })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > MAX_BYTES) throw new Error(`${url} answers with more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return new Response(Buffer.concat(chunks), { status: response.status, headers: response.headers })
}

/**
 * Where the issuer's keys are, by its discovery document.
 * @throws Error when there is none, it is another issuer's, or the keys' address is not safe
 */
export async function readDiscovery(issuer: string): Promise<URL> {
  const url = `${issuer}${issuer.endsWith('/') ? '' : '/'}${PATH}`
  const response = await issuerFetch(url, {
    method: 'GET',
    headers: new Headers({ accept: 'application/json' }),
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  if (response.status !== 200) throw new Error(`${url} answers with status ${response.status}`)
  const document = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown } | null
  if (document?.issuer !== issuer) throw new Error(`${url} is not the document of ${issuer}`)
  if (typeof document.jwks_uri !== 'string' || !URL.canParse(document.jwks_uri))
    throw new Error(`${url} names no address of keys`)
  const keys = new URL(document.jwks_uri)
  if (!isIssuerAddress(keys, isLoopback(new URL(issuer))))
    throw new Error(`${url} names keys at ${keys.origin}: they must be behind https`)
  return keys
}

/** Keys that come unencrypted could be anybody's. @param loopback whether this machine's own addresses may do without */
export const isIssuerAddress = (url: URL, loopback: boolean): boolean =>
  url.protocol === 'https:' || (loopback && url.protocol === 'http:' && isLoopback(url))

export const isLoopback = (url: URL): boolean => /^(127\.0\.0\.1|localhost|\[::1\])$/.test(url.hostname)
