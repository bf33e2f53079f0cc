/**
 * Frames of `application/vnd.amazon.eventstream`: total length, length of the headers and a checksum of both (4 bytes
 * each), headers, payload, a checksum of all. Checksums are left to the package that reads the same bytes.
 */

const PRELUDE = 12
const CHECKSUM = 4
/** A length beyond this is no length: the bytes are something else. Bedrock's own limit is 16 MB. */
const MAX_FRAME = 16_777_216

export interface Frame {
  /** headers that hold text, such as `:message-type`, `:event-type` and `:exception-type` */
  readonly headers: ReadonlyMap<string, string>
  /** JSON text */
  readonly payload: string
}

/** Puts frames together from bytes that come in pieces. */
export class Frames {
  #rest = Buffer.alloc(0)

  /**
   * The frames that are whole now.
   * @throws Error where the bytes are no frames
   */
  read(bytes: Uint8Array): Frame[] {
    this.#rest = Buffer.concat([this.#rest, bytes])
    const frames: Frame[] = []
    while (this.#rest.length >= PRELUDE) {
      const total = this.#rest.readUInt32BE(0)
      const headers = this.#rest.readUInt32BE(4)
      if (total > MAX_FRAME || total < PRELUDE + headers + CHECKSUM)
        throw new Error('the answer is no event stream of AWS')
      if (this.#rest.length < total) break
      frames.push({
        headers: readHeaders(this.#rest.subarray(PRELUDE, PRELUDE + headers)),
        payload: this.#rest.toString('utf8', PRELUDE + headers, total - CHECKSUM),
      })
      this.#rest = this.#rest.subarray(total)
    }
    return frames
  }
}

/** Bytes of a value, by the type of its header; 6 and 7 say their length themselves. */
const SIZES: ReadonlyMap<number, number> = new Map([
  [0, 0],
  [1, 0],
  [2, 1],
  [3, 2],
  [4, 4],
  [5, 8],
  [8, 8],
  [9, 16],
])
const TEXT = 7

function readHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  while (at < bytes.length) {
    const nameEnd = at + 1 + bytes.readUInt8(at)
    const name = bytes.toString('utf8', at + 1, nameEnd)
    const type = bytes.readUInt8(nameEnd)
    const fixed = SIZES.get(type)
    const from = nameEnd + 1 + (fixed === undefined ? 2 : 0)
    const to = from + (fixed ?? bytes.readUInt16BE(nameEnd + 1))
    if (type === TEXT) headers.set(name, bytes.toString('utf8', from, to))
    at = to
  }
  return headers
}
