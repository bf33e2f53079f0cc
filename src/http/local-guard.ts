import { SubledgerError } from '../domain/errors.ts'

/**
 * Local mode has no passwords, so it must tell the user's own programs from web pages that the user happens to look at:
 * only names of this machine as Host (a page may point its own name at 127.0.0.1), and no Origin but our own.
 * That bodies must be `application/json`, which no form can send, is checked where they are read.
 * @throws SubledgerError forbidden
 */
export function guardLocal(request: Request): void {
  // a request that never was on a network has no Host, but it has an address
  const host = request.headers.get('host') ?? new URL(request.url).host
  if (!isLocalHost(host)) {
    throw new SubledgerError('forbidden', 'This API answers to 127.0.0.1 and localhost only: the Host is another one.')
  }
  const origin = request.headers.get('origin')
  if (origin !== null && origin !== `http://${host}`) {
    throw new SubledgerError('forbidden', 'A page of another origin may not use this API.')
  }
  const site = request.headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none') {
    throw new SubledgerError('forbidden', 'A page of another site may not use this API.')
  }
}

const isLocalHost = (host: string): boolean => /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/i.test(host)
