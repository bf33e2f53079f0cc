const encoder = new TextEncoder()

/** Length in bytes of UTF-8, the unit in which DynamoDB counts sizes. */
export const byteLength = (text: string): number => Buffer.byteLength(text, 'utf8')

/** Cuts to at most `max` bytes of UTF-8, at a whole character: no half of a surrogate pair is left. */
export function cutBytes(text: string, max: number): string {
  if (text.length * 3 <= max || byteLength(text) <= max) return text.toWellFormed()
  const { read } = encoder.encodeInto(text, new Uint8Array(max))
  return text.slice(0, read).toWellFormed()
}
