const encoder = new TextEncoder()

/** Length in bytes of UTF-8, the unit in which DynamoDB counts sizes. */
export const byteLength = (text: string): number => Buffer.byteLength(text, 'utf8')

/** Cuts to at most `max` bytes of UTF-8, at a whole character: no half of a surrogate pair is left. */
export function cutBytes(text: string, max: number): string {
  if (text.length * 3 <= max || byteLength(text) <= max) return text.toWellFormed()
  const { read } = encoder.encodeInto(text, new Uint8Array(max))
  return text.slice(0, read).toWellFormed()
}

/**
 * `JSON.stringify` for logs and terminals: control characters, line separators and characters that turn the direction of
 * text are escaped, which JSON itself leaves as they are above U+001F.
 */
export const plainJson = (
  value: unknown,
  replacer?: (key: string, value: unknown) => unknown,
  indent?: number,
): string =>
  JSON.stringify(value, replacer, indent).replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)

const UNSEEN = /[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** Bytes that are no UTF-8. */
export class NotUtf8 extends Error {
  override readonly name = 'NotUtf8'

  /** @param offset where they begin to be none, in bytes from 0 */
  constructor(offset: number) {
    super(`is not UTF-8 text: see byte ${offset}`)
  }
}

/**
 * The text of a file; a byte order mark is none of it.
 * @throws NotUtf8
 */
export function readUtf8(bytes: Uint8Array): string {
  const decoded = (end: number, stream: boolean): string | undefined => {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, end), { stream })
    } catch {
      return undefined
    }
  }
  const text = decoded(bytes.length, false)
  if (text !== undefined) return text
  // the longest beginning that may go on, and in it the longest one that is whole: a character has four bytes at most
  let [good, bad] = [0, bytes.length + 1]
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2)
    if (decoded(middle, true) === undefined) bad = middle
    else good = middle
  }
  while (decoded(good, false) === undefined) good--
  throw new NotUtf8(good)
}
