import { createHash } from 'node:crypto'

/**
 * Ids have a fixed length and alphabet, so no id is a prefix of another and keys have a fixed shape.
 * Run ids are ULIDs (they sort by creation time); session ids are derived, so a pending ordinal always finds its header.
 */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz' // Crockford base 32, lower case

export const RUN_ID = /^[0-9A-HJKMNP-TV-Z]{26}$/
export const SESSION_ID = /^[0-9a-hjkmnp-tv-z]{20}$/
/** Of the API's own: 16 characters. Of a file: the name there. */
export const SCHEDULE_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/
/** Lower case, digits and `_.-`, up to 64 characters; the tenant is part of the partition key. */
export const TENANT = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

/** 100 bits of SHA-256 as 20 characters. */
function hash20(text: string): string {
  const bytes = createHash('sha256').update(text).digest()
  let out = ''
  let bits = 0n
  for (let i = 0; i < 13; i++) bits = (bits << 8n) | BigInt(bytes[i]!)
  bits >>= 4n // 104 bits read, 100 used
  for (let i = 0; i < 20; i++) {
    out = ALPHABET[Number(bits & 31n)]! + out
    bits >>= 5n
  }
  return out
}

/** The id of the root session of a run. */
export const rootSessionId = (runId: string): string => hash20(`root/${runId}`)
/** The id of child `ordinal` of a session: the same for whoever computes it. */
export const childSessionId = (parentId: string, ordinal: number): string => hash20(`${parentId}/${ordinal}`)
/** The hash by which a frozen team definition is stored (64 hex digits of SHA-256). */
export const definitionHash = (text: string): string => createHash('sha256').update(text).digest('hex')
