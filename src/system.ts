import { randomBytes } from 'node:crypto'
import { ulid } from 'ulid'
import type { Clock, Ids } from './ports.ts'

/** The longest that a timer of Node waits; more would be no wait at all. */
const LONGEST_MS = 2 ** 31 - 1

/** The machine's own time. */
export const systemClock: Clock = {
  now: Date.now,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, Math.min(ms, LONGEST_MS))
      signal?.addEventListener('abort', done)
    }),
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** Random ids: 80 bits in a run's id beside its time, 80 bits in a nonce. */
export const systemIds: Ids = {
  runId: (now) => ulid(now),
  nonce: () => Array.from(randomBytes(16), (byte) => ALPHABET[byte & 31]).join(''),
}

/** Makes a thing at its first use, and once for each container; when that fails, the next use tries again. */
export function once<T>(make: () => T): () => T {
  let made: { readonly thing: T } | undefined
  return () => {
    made ??= { thing: make() }
    return made.thing
  }
}
