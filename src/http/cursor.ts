import { createHash } from 'node:crypto'
import { SubledgerError } from '../domain/errors.ts'

/**
 * Cursors are opaque and bound to what they were given for: the route, its ids and its filters. They carry a place, no
 * rights: every read is made for the caller's own tenant and run, whatever a cursor says.
 */
const CHECK_LENGTH = 12
const MAX_LENGTH = 2_048

/** What a cursor belongs to, from the parts that name it. */
export const cursorScope = (...parts: readonly (string | undefined)[]): string =>
  JSON.stringify(parts.map((p) => p ?? null))

export const encodeCursor = (scope: string, place: string): string =>
  Buffer.from(check(scope, place) + place, 'utf8').toString('base64url')

/** @throws SubledgerError bad_cursor when it is broken, or was given for another list */
export function decodeCursor(scope: string, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined
  if (cursor.length <= MAX_LENGTH && /^[A-Za-z0-9_-]+$/.test(cursor)) {
    const text = Buffer.from(cursor, 'base64url').toString('utf8')
    const place = text.slice(CHECK_LENGTH)
    if (text.slice(0, CHECK_LENGTH) === check(scope, place)) return place
  }
  throw new SubledgerError(
    'bad_cursor',
    'The cursor does not belong to this list. Use "next" of an answer with the same path and filters, unchanged.',
    { issues: [{ path: '?cursor', message: 'does not belong to this list' }] },
  )
}

const check = (scope: string, place: string): string =>
  createHash('sha256').update(`${scope}\n${place}`).digest('base64url').slice(0, CHECK_LENGTH)
