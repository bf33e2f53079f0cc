/** Attribute values as the memory table keeps them: copied, checked and compared as DynamoDB does. */
import { ValidationException } from './expression-parser.ts'
import type { Attribute, Item } from './table-client.ts'

const MAX_DIGITS = 38

/** The one form of a number: safe integers as number, larger ones as bigint. @throws ValidationException */
export function canonicalNumber(value: number | bigint): number | bigint {
  if (typeof value === 'bigint') {
    if (value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value)
    if (value.toString().replace('-', '').replace(/0+$/, '').length > MAX_DIGITS)
      throw new ValidationException(`Attempting to store more than ${MAX_DIGITS} significant digits in a Number`)
    return value
  }
  if (!Number.isFinite(value)) throw new ValidationException(`${value} is no number that can be stored`)
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    throw new ValidationException(`${value} is beyond 2^53: write it as bigint, a number may have been rounded already`)
  return Object.is(value, -0) ? 0 : value
}

/** A deep copy in which every number has its one form. @throws ValidationException naming what cannot be stored */
export function copyAttribute(value: Attribute, where: string): Attribute {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' || typeof value === 'bigint') return canonicalNumber(value)
  if (value instanceof Uint8Array) return Uint8Array.from(value)
  if (value instanceof Set) return copySet(value, where)
  if (Array.isArray(value)) return value.map((element, i) => copyAttribute(element, `${where}[${i}]`))
  if (typeof value === 'object') return copyItem(value as Item, where)
  throw new ValidationException(`${where} is ${typeof value}, which cannot be stored`)
}

function copySet(set: ReadonlySet<unknown>, where: string): Attribute {
  if (set.size === 0) throw new ValidationException(`${where} is an empty set, which cannot be stored`)
  const elements = [...set]
  if (elements.every((e) => typeof e === 'string')) return new Set(elements)
  if (elements.every((e) => typeof e === 'number' || typeof e === 'bigint'))
    return new Set(elements.map(canonicalNumber))
  throw new ValidationException(`${where} is a set of mixed or unknown types`)
}

export function copyItem(item: Item, where = ''): { [name: string]: Attribute } {
  const copy: { [name: string]: Attribute } = {}
  refuseSpecial(item, where)
  for (const [name, value] of Object.entries(item)) copy[name] = copyAttribute(value, where ? `${where}.${name}` : name)
  return copy
}

/**
 * The real client takes a map for none where `constructor` is overridden, and loses what is called `__proto__`: this
 * table refuses both, so that tests on it hide neither.
 */
function refuseSpecial(map: Item, where: string): void {
  const { constructor: own } = map as { readonly constructor?: { readonly name?: unknown } }
  if (own && own.name !== 'Object')
    throw new ValidationException(`${where || 'the item'} has an attribute named constructor, which cannot be stored`)
  if (Object.hasOwn(map, '__proto__'))
    throw new ValidationException(`${where || 'the item'} has an attribute named __proto__, which cannot be stored`)
}

/** DynamoDB's name of a value's type: values of different types are never equal and have no order. */
export function typeOf(value: Attribute): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return 'S'
  if (typeof value === 'number' || typeof value === 'bigint') return 'N'
  if (typeof value === 'boolean') return 'BOOL'
  if (value instanceof Uint8Array) return 'B'
  if (value instanceof Set) return typeof value.values().next().value === 'string' ? 'SS' : 'NS'
  return Array.isArray(value) ? 'L' : 'M'
}

export function equal(a: Attribute | undefined, b: Attribute | undefined): boolean {
  if (a === undefined || b === undefined || typeOf(a) !== typeOf(b)) return false
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0
  if (a instanceof Set && b instanceof Set) return a.size === b.size && [...a].every((e) => b.has(e as never))
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((e, i) => equal(e, b[i]))
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    const [x, y] = [a as Item, b as Item]
    const names = Object.keys(x)
    return names.length === Object.keys(y).length && names.every((name) => equal(x[name], y[name]))
  }
  return a === b
}

/** Strings sort by their UTF-8 bytes, which is not the order of UTF-16 units. */
export function compareText(a: string, b: string): number {
  return a === b
    ? 0
    : ASCII.test(a) && ASCII.test(b)
      ? a < b
        ? -1
        : 1
      : Buffer.compare(Buffer.from(a), Buffer.from(b))
}
const ASCII = /^[ -~]*$/

/** Negative, zero or positive; undefined where the two have no order. */
export function order(a: Attribute | undefined, b: Attribute | undefined): number | undefined {
  if (a === undefined || b === undefined) return undefined
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b)
  if ((typeof a === 'number' || typeof a === 'bigint') && (typeof b === 'number' || typeof b === 'bigint'))
    return a < b ? -1 : a > b ? 1 : 0
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b)
  return undefined
}

export function sum(a: Attribute | undefined, b: Attribute | undefined, op: '+' | '-'): number | bigint {
  const isNumber = (x: unknown): x is number | bigint => typeof x === 'number' || typeof x === 'bigint'
  if (a === undefined || b === undefined)
    throw new ValidationException('The provided expression refers to an attribute that does not exist in the item')
  if (!isNumber(a) || !isNumber(b))
    throw new ValidationException('An operand in the update expression has an incorrect data type')
  if (!Number.isInteger(Number(a)) || !Number.isInteger(Number(b)))
    throw new ValidationException(`${a} ${op} ${b}: this table adds whole numbers only`)
  return canonicalNumber(op === '+' ? BigInt(a) + BigInt(b) : BigInt(a) - BigInt(b))
}
