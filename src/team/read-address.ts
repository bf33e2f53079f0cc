import { dotted } from './problems.ts'
import { cut, type Reader } from './reader.ts'
import type { Entry } from './yaml-tree.ts'

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** A `base_url`: https, or http on the loopback interface; nothing in it that is a secret. */
export function readBaseUrl(reader: Reader, entry: Entry | undefined): string | undefined {
  const text = reader.text(entry?.value)
  if (text === undefined || !entry) return undefined
  const wrong = (why: string) => {
    reader.problems.error(entry.value, `"${dotted(entry.value.path)}" ${why}`)
    return undefined
  }
  if (text.includes('${')) return wrong('holds a placeholder; they are not supported by this version')
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    return wrong(`must be an address that begins with https://, not "${cut(text)}"`)
  if (url.username || url.password) return wrong('must not hold a user or password; use "token_key"')
  if (url.search || url.hash) return wrong('must end with its path; it has a "?" or "#"')
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    return wrong('must begin with https://; http is for addresses on the loopback interface only')
  return text
}

/**
 * A `token_key`: the name of an environment variable. The credentials of the function itself and Subledger's own
 * settings are never sent to a provider.
 * @param usual the variable that the provider's key is in anyway: to name it says nothing new
 */
export function readTokenKey(reader: Reader, entry: Entry | undefined, usual?: string): string | undefined {
  const text = reader.text(entry?.value)
  if (text === undefined || !entry || text === usual) return undefined
  const what = `"${dotted(entry.value.path)}"`
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(text)) {
    // the text is not repeated: it may be the key itself
    reader.problems.error(entry.value, `${what} must be the name of an environment variable, never the key itself`)
    return undefined
  }
  if (/^(aws_|subledger_)/i.test(text)) {
    reader.problems.error(entry.value, `${what} must not be ${text}: that is no key of a model provider`)
    return undefined
  }
  return text
}

/** Whether the address is on this machine. */
export const isLoopback = (baseUrl: string): boolean => LOOPBACK.test(new URL(baseUrl).hostname)
