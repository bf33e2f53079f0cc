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
