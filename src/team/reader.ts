import { homesOf, KEYS, keyPath, refusal, type Section } from './keys.ts'
import { dotted, type Place, type Problems } from './problems.ts'
import { didYouMean } from './suggest.ts'
import { type Entry, type MapTree, type ScalarTree, type Tree, toPlain } from './yaml-tree.ts'

/** The usable keys of one mapping. */
export type Fields = ReadonlyMap<string, Entry>

/** Names of agents and providers: they stand in prompts, tool arguments and stored items. */
export const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/
export const MAX_NAME_BYTES = 64

const NUMBER = /^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/
const nameOf = (at: Place) => `"${dotted(at.path)}"`

/** Reads values of the kinds that a team file has. What is wrong is reported and then missing. Null is missing, too. */
export class Reader {
  readonly problems: Problems

  constructor(problems: Problems) {
    this.problems = problems
  }

  /** Whether a key stands there without a value. */
  isEmpty(tree: Tree): boolean {
    return tree.kind === 'scalar' && tree.value === null
  }

  /** The keys of a mapping that are supported; the others are reported. */
  fields(map: MapTree, section: Section): Fields {
    const known = KEYS.get(section)!
    const usable = new Map<string, Entry>()
    for (const [key, entry] of map.entries) {
      const k = known.get(key)
      if (!k) this.problems.error(entry.at, this.#unknown(key, entry, section, known.keys()))
      else if (k.fate === 'supported' || k.fate === 'no effect') usable.set(key, entry)
      else this.problems.unsupported(entry.at, refusal(key, k))
    }
    return usable
  }

  /** The same of an entry that must be a mapping; without a value it has no keys. Undefined: it is something else. */
  section(entry: Entry, section: Section): Fields | undefined {
    if (this.isEmpty(entry.value)) return new Map()
    const map = this.map(entry)
    return map && this.fields(map, section)
  }

  #unknown(key: string, entry: Entry, section: Section, known: Iterable<string>): string {
    const where = dotted(entry.at.path.slice(0, entry.at.path.lastIndexOf('/'))) || 'a team file'
    const homes = homesOf(key, section).map((s) => keyPath(s, key))
    const hint = homes.length > 0 ? ` (it belongs at "${homes.join('" or "')}")` : didYouMean(key, known)
    return `"${key}" is not a key of ${where}${hint}`
  }

  map(entry: Entry | undefined): MapTree | undefined {
    if (!entry || this.isEmpty(entry.value)) return undefined
    if (entry.value.kind === 'map') return entry.value
    return this.#wrong(entry.value, 'must be a mapping of keys to values')
  }

  list(entry: Entry | undefined): readonly Tree[] {
    if (!entry || this.isEmpty(entry.value)) return []
    if (entry.value.kind === 'list') return entry.value.items
    return this.#wrong(entry.value, 'must be a list') ?? []
  }

  /** Text; a number or a truth value is taken as it stands in the file. */
  text(tree: Tree | undefined): string | undefined {
    if (!tree || this.isEmpty(tree)) return undefined
    if (tree.kind === 'scalar') return tree.text
    return this.#wrong(tree, 'must be text')
  }

  boolean(entry: Entry | undefined): boolean | undefined {
    if (!entry || this.isEmpty(entry.value)) return undefined
    const { value } = entry
    if (value.kind === 'scalar' && typeof value.value === 'boolean') return value.value
    return this.#wrong(value, `must be true or false${this.#found(value)}`)
  }

  /** A whole number of at least `least`, at most `most`. */
  integer(entry: Entry | undefined, least: number, most: number): number | undefined {
    if (!entry || this.isEmpty(entry.value)) return undefined
    const { value } = entry
    if (value.kind === 'scalar' && /^[-+]?\d+$/.test(value.text)) {
      const n = Number(value.text)
      if (n >= least && n <= most) return n
    }
    const bound = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
    return this.#wrong(value, `must be a whole number ${bound}${this.#found(value)}`)
  }

  number(entry: Entry | undefined, least: number, most: number): number | undefined {
    if (!entry || this.isEmpty(entry.value)) return undefined
    const { value } = entry
    if (value.kind === 'scalar' && NUMBER.test(value.text)) {
      const n = Number(value.text)
      if (n >= least && n <= most) return n
    }
    return this.#wrong(value, `must be a number from ${least} to ${most}${this.#found(value)}`)
  }

  oneOf<T extends string>(entry: Entry | undefined, words: readonly T[]): T | undefined {
    const word = this.text(entry?.value)
    if (word === undefined || !entry) return undefined
    const found = words.find((w) => w === word)
    if (found !== undefined) return found
    return this.#wrong(
      entry.value,
      `must be ${words.join(' or ')}${this.#found(entry.value)}${didYouMean(word, words)}`,
    )
  }

  plain(tree: Tree): unknown {
    return toPlain(tree, this.problems)
  }

  /** Whether a key may be the name of an agent or a provider. */
  name(entry: Entry, what: string): boolean {
    const { key } = entry
    if (NAME.test(key) && Buffer.byteLength(key) <= MAX_NAME_BYTES) return true
    this.problems.error(
      entry.at,
      `"${cut(key)}" cannot name ${what}: names are letters, digits, "_", "-" and ".", begin with a letter or digit, and have at most ${MAX_NAME_BYTES} characters`,
    )
    return false
  }

  #wrong(tree: Tree, must: string): undefined {
    this.problems.error(tree, `${nameOf(tree)} ${must}`)
    return undefined
  }

  #found(tree: Tree): string {
    return tree.kind === 'scalar'
      ? `, not "${cut((tree as ScalarTree).text)}"`
      : `, not a ${tree.kind === 'map' ? 'mapping' : 'list'}`
  }
}

/** A part of what was found, short enough for a message. */
export const cut = (text: string): string => (text.length > 60 ? `${text.slice(0, 60).toWellFormed()}…` : text)
