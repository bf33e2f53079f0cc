import { createHash } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
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

/** A gateway takes 10,240 bytes of headers, or of query, in all. */
const MAX_PACKED_LENGTH = 8_000
/** What a packed place may be unpacked to: anybody may send one. */
const MAX_UNPACKED = 200_000

/** A cursor of a long place, deflated. Undefined: it would be too long to be sent back. */
export function packCursor(scope: string, place: string): string | undefined {
  const packed = deflateRawSync(place)
  const cursor = Buffer.concat([Buffer.from(check(scope, packed)), packed]).toString('base64url')
  return cursor.length > MAX_PACKED_LENGTH || place.length > MAX_UNPACKED ? undefined : cursor
}

/** @returns undefined: it is broken, or was given for something else */
export function unpackCursor(scope: string, cursor: string): string | undefined {
  if (cursor.length > MAX_PACKED_LENGTH || !/^[A-Za-z0-9_-]+$/.test(cursor)) return undefined
  const bytes = Buffer.from(cursor, 'base64url')
  const packed = bytes.subarray(CHECK_LENGTH)
  if (bytes.toString('latin1', 0, CHECK_LENGTH) !== check(scope, packed)) return undefined
  try {
    return inflateRawSync(packed, { maxOutputLength: MAX_UNPACKED }).toString('latin1')
  } catch {
    return undefined
  }
}

const check = (scope: string, place: string | Uint8Array): string =>
  createHash('sha256').update(`${scope}\n`).update(place).digest('base64url').slice(0, CHECK_LENGTH)
