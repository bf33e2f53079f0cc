/** Sizes and capacity units by DynamoDB's rules: names and values in bytes, 1 KB a write unit, 4 KB a read unit. */
import { byteLength } from '../domain/text.ts'
import type { Attribute, Item } from './table-client.ts'

/** An item may be this large, names included. */
export const MAX_ITEM_BYTES = 400 * 1024
const WRITE_UNIT = 1024
const READ_UNIT = 4096

/** A number takes one byte and one for each two significant digits, aligned to whole pairs; one more below zero. */
function numberSize(value: number | bigint): number {
  const text = String(value)
  const negative = text.startsWith('-')
  const [mantissa, exponent = '0'] = text.replace('-', '').split('e')
  const [whole, fraction = ''] = mantissa!.split('.')
  const digits = (whole! + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return 1
  // position of the first significant digit: pairs are aligned at the decimal point, so an odd one may take one byte more
  const leading = whole!.length - ((whole! + fraction).length - digits.length) - 1 + Number(exponent)
  const unaligned = significant.length % 2 === 0 && leading % 2 === 0
  return 1 + Math.ceil(significant.length / 2) + (unaligned ? 1 : 0) + (negative ? 1 : 0)
}

export function attributeSize(value: Attribute): number {
  if (value === null || typeof value === 'boolean') return 1
  if (typeof value === 'string') return byteLength(value)
  if (typeof value === 'number' || typeof value === 'bigint') return numberSize(value)
  if (value instanceof Uint8Array) return value.byteLength
  let size = 0
  if (value instanceof Set) {
    for (const element of value as ReadonlySet<string | number | bigint>) size += attributeSize(element)
    return size
  }
  if (Array.isArray(value)) {
    for (const element of value as readonly Attribute[]) size += 1 + attributeSize(element)
    return 3 + size
  }
  for (const [name, element] of Object.entries(value as Item)) size += 1 + byteLength(name) + attributeSize(element)
  return 3 + size
}

/** Bytes of an item as DynamoDB counts them. */
export function itemSize(item: Item): number {
  let size = 0
  for (const [name, value] of Object.entries(item)) size += byteLength(name) + attributeSize(value)
  return size
}

export const writeUnits = (bytes: number): number => Math.max(1, Math.ceil(bytes / WRITE_UNIT))
export const readUnits = (bytes: number, consistent: boolean): number =>
  Math.max(1, Math.ceil(bytes / READ_UNIT)) / (consistent ? 1 : 2)
