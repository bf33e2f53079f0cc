/**
 * Bodies: one JSON text for each slot. A body is stored as text, deflated where that saves a write unit, and in parts of
 * their own where its item could not hold it. Reading gives back the same text to the last byte: JSON text is well-formed
 * Unicode, so UTF-8 loses nothing.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { BadItemError, ItemReader } from './item-reader.ts'
import { itemSize, writeUnits } from './item-size.ts'
import type { Key } from './keys.ts'
import { A, ITEM_VERSION, PARTS } from './table.ts'
import type { Item } from './table-client.ts'

/** Above this an item's body goes into parts: below DynamoDB's 400 KB, with room for what updates may add. */
const INLINE_BYTES = 390_000
/** Bytes of text in a part; an incompressible part is stored as it is and must fit. */
const PART_BYTES = 380_000

/** A body as attributes of its item, and the parts that must be put before it. */
export interface PackedBody {
  readonly attributes: Item
  readonly parts: readonly Item[]
}

export interface PartsAddress {
  readonly driver: string
  readonly slot: string
  readonly key: (part: number) => Key
}

/** @param base bytes of the item without its body */
export function packBody(base: number, text: string, address: PartsAddress): PackedBody {
  const inline = smallest(base, text, { [A.body]: text })
  if (base + itemSize(inline) <= INLINE_BYTES) return { attributes: inline, parts: [] }
  const bytes = Buffer.from(text)
  const parts = splitBody(bytes).map((piece, part) => ({ ...address.key(part), ...piece }))
  const reference = {
    [PARTS.driver]: address.driver,
    [PARTS.slot]: address.slot,
    [PARTS.count]: parts.length,
    [PARTS.bytes]: bytes.byteLength,
  }
  return { attributes: { [A.parts]: reference }, parts }
}

/**
 * Cuts a text into attributes of part items. Each part is packed by itself, so two writers of one text agree on what its
 * parts say whatever compressor they have.
 */
export function splitBody(bytes: Uint8Array): Item[] {
  const pieces: Item[] = []
  for (let at = 0; at === 0 || at < bytes.byteLength; at += PART_BYTES) {
    const piece = bytes.subarray(at, at + PART_BYTES)
    pieces.push({ [A.version]: ITEM_VERSION, ...smallest(0, piece, { [A.raw]: piece }) })
  }
  return pieces
}

/** As it is, unless deflating saves a write unit. */
function smallest(base: number, data: string | Uint8Array, plain: Item): Item {
  const size = base + itemSize(plain)
  if (writeUnits(size) === 1) return plain
  const deflated = { [A.body]: new Uint8Array(deflateRawSync(data)) }
  return writeUnits(base + itemSize(deflated)) < writeUnits(size) ? deflated : plain
}

/** The bytes of a part. */
export function partBytes(item: Item, where: string): Uint8Array {
  const [deflated, raw] = [item[A.body], item[A.raw]]
  if (raw instanceof Uint8Array) return raw
  if (deflated instanceof Uint8Array) return inflate(deflated, where)
  throw new BadItemError(`${where}: a part has neither ${A.body} (body) nor ${A.raw} (raw) as binary`)
}

/** The parts that an item names, or null where its body stands in it or it has none. */
export function partsOf(
  item: Item,
  where: string,
): { driver: string; slot: string; count: number; bytes: number } | null {
  if (item[A.parts] === undefined) return null
  const r = new ItemReader(item, A, where).fields('parts', PARTS)
  return { driver: r.text('driver'), slot: r.text('slot'), count: r.whole('count'), bytes: r.whole('bytes') }
}

/** The body that stands in an item; undefined: it has none there. */
export function inlineBody(item: Item, where: string): string | undefined {
  const body = item[A.body]
  if (body === undefined || typeof body === 'string') return body
  if (body instanceof Uint8Array) return Buffer.from(inflate(body, where)).toString('utf8')
  throw new BadItemError(`${where}: attribute ${A.body} (body) is neither text nor binary`)
}

/** @throws BadItemError when the parts do not make up what the slot says */
export function joinParts(parts: readonly Uint8Array[], bytes: number, where: string): string {
  const whole = Buffer.concat(parts)
  if (whole.byteLength !== bytes)
    throw new BadItemError(`${where}: its parts have ${whole.byteLength} bytes, they should have ${bytes}`)
  return whole.toString('utf8')
}

function inflate(data: Uint8Array, where: string): Uint8Array {
  try {
    return inflateRawSync(data)
  } catch (cause) {
    throw new BadItemError(`${where}: its deflated body is damaged`, { cause })
  }
}
