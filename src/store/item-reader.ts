import { saturated } from '../domain/usage.ts'
import type { Attribute, Item } from './table-client.ts'

/** An item that does not say what its reader must know: written by something else, or damaged. */
export class BadItemError extends Error {
  override readonly name = 'BadItemError'
}

/** Long names and what they are called in an item. */
export interface NameMap {
  readonly [long: string]: string
}

/**
 * Reads an item attribute by attribute and checks each. What is missing or of another type is an error that names key and
 * attribute, never a default. Attributes that nobody asks for are left alone: later versions may have written them.
 */
export class ItemReader<M extends NameMap> {
  readonly #item: Item
  readonly #names: M
  readonly #where: string

  /** @param where names the item in errors */
  constructor(item: Item, names: M, where: string) {
    this.#item = item
    this.#names = names
    this.#where = where
  }

  raw(name: keyof M & string): Attribute | undefined {
    const short = this.#names[name]!
    return Object.hasOwn(this.#item, short) ? this.#item[short] : undefined
  }

  has(name: keyof M & string): boolean {
    return this.raw(name) !== undefined
  }

  bad(name: keyof M & string, what: string): never {
    throw new BadItemError(`${this.#where}: attribute ${this.#names[name]} (${name}) ${what}`)
  }

  /** What is there, whatever it is. */
  required(name: keyof M & string): Attribute {
    const value = this.raw(name)
    return value === undefined ? this.bad(name, 'is missing') : value
  }

  text(name: keyof M & string): string {
    const value = this.required(name)
    return typeof value === 'string' ? value : this.bad(name, 'is not a string')
  }

  /** A word of a closed set. */
  word<W extends string>(name: keyof M & string, words: readonly W[]): W {
    const value = this.text(name)
    const word = words.find((w) => w === value)
    return word ?? this.bad(name, `is ${JSON.stringify(value)}, which is none of ${words.join(', ')}`)
  }

  /** A whole number that is a safe integer. */
  whole(name: keyof M & string): number {
    const value = this.required(name)
    return typeof value === 'number' && Number.isSafeInteger(value) ? value : this.bad(name, 'is not a whole number')
  }

  /** A whole number; beyond the safe integers the outermost of them, as counts of totals saturate. */
  count(name: keyof M & string): number {
    const value = this.required(name)
    return typeof value === 'bigint' ? saturated(Number(value)) : this.whole(name)
  }

  /** A whole number of any size. */
  big(name: keyof M & string): bigint {
    const value = this.required(name)
    if (typeof value === 'bigint') return value
    return typeof value === 'number' && Number.isSafeInteger(value)
      ? BigInt(value)
      : this.bad(name, 'is not a whole number')
  }

  flag(name: keyof M & string): boolean {
    const value = this.raw(name)
    return value === undefined || value === 1 ? value === 1 : this.bad(name, 'is neither 1 nor absent')
  }

  list(name: keyof M & string): readonly Attribute[] {
    const value = this.required(name)
    return Array.isArray(value) ? value : this.bad(name, 'is not a list')
  }

  /** A map, whatever its keys. */
  map(name: keyof M & string): Item {
    const value = this.required(name)
    return isMap(value) ? value : this.bad(name, 'is not a map')
  }

  /** A map with known keys. */
  fields<F extends NameMap>(name: keyof M & string, names: F): ItemReader<F> {
    return new ItemReader(this.map(name), names, `${this.#where}, ${name}`)
  }

  /** An absent set is an empty one. */
  numbers(name: keyof M & string): ReadonlySet<number> {
    const value = this.raw(name)
    if (value === undefined) return new Set()
    if (value instanceof Set && [...value].every((element) => Number.isSafeInteger(element)))
      return value as ReadonlySet<number>
    return this.bad(name, 'is not a set of whole numbers')
  }

  /** An absent set is an empty one. */
  texts(name: keyof M & string): ReadonlySet<string> {
    const value = this.raw(name)
    if (value === undefined) return new Set()
    if (value instanceof Set && [...value].every((element) => typeof element === 'string'))
      return value as ReadonlySet<string>
    return this.bad(name, 'is not a set of strings')
  }

  /** What `read` makes of it, or null where the attribute is absent. */
  optional<T>(name: keyof M & string, read: (name: keyof M & string) => T): T | null {
    return this.has(name) ? read(name) : null
  }

  textOrNull = (name: keyof M & string): string | null => this.optional(name, (n) => this.text(n))
  wholeOrNull = (name: keyof M & string): number | null => this.optional(name, (n) => this.whole(n))
}

export const isMap = (value: Attribute | undefined): value is Item =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Set) &&
  !(value instanceof Uint8Array)

/** What a reader takes for a text: anything else stops before it is stored, since nobody could read it. @throws RangeError */
export function textOf<T extends string | null>(name: string, value: T): T {
  if (value === null || typeof value === 'string') return value
  throw new RangeError(`${name} is ${typeof value}: it must be a text`)
}

/** Attributes without those that are null or undefined: what is not there is not stored. */
export function present(attributes: { readonly [name: string]: Attribute | undefined }): { [name: string]: Attribute } {
  const kept: { [name: string]: Attribute } = {}
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) kept[name] = value
  return kept
}
