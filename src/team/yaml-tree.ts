import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
} from 'yaml'
import type { Place, Problems } from './problems.ts'
import { step } from './problems.ts'

/**
 * A YAML text as a tree of plain values that know their places. Aliases and merge keys are resolved, every key is text
 * and stands once. The size of what comes out is bounded, whatever aliases ask for.
 */
export type Tree = MapTree | ListTree | ScalarTree

export interface ScalarTree extends Place {
  readonly kind: 'scalar'
  readonly value: string | number | boolean | null
  /** as it stands in the text, quotes taken off: `1.50` stays `1.50` */
  readonly text: string
}
export interface ListTree extends Place {
  readonly kind: 'list'
  readonly items: readonly Tree[]
}
export interface MapTree extends Place {
  readonly kind: 'map'
  readonly entries: ReadonlyMap<string, Entry>
}
export interface Entry {
  readonly key: string
  /** where the key stands */
  readonly at: Place
  readonly value: Tree
}

/** Uses of aliases in one file, those inside aliased parts included. */
export const MAX_ALIASES = 1_000
/** Values of one file after aliases are resolved. */
export const MAX_VALUES = 100_000
/** Levels of nesting. */
export const MAX_DEPTH = 64
/** After that many mistakes of syntax the rest are consequences. */
const MAX_SYNTAX_PROBLEMS = 10

/** Reads a text. Nothing is returned when anything is wrong with it; `problems` then says why. */
export function readTree(text: string, lines: LineCounter, problems: Problems): Tree | undefined {
  // Duplicate keys are found here and not by the library, which compares every key with every other one.
  const doc = parseDocument(text, { lineCounter: lines, schema: 'core', uniqueKeys: false, prettyErrors: false })
  const wrong = [...doc.errors, ...doc.warnings].slice(0, MAX_SYNTAX_PROBLEMS)
  for (const e of wrong) problems.error({ path: '', offset: e.pos[0] }, syntaxMessage(e.code, e.message))
  if (wrong.length > 0) return undefined
  if (doc.directives?.yaml.explicit && doc.directives.yaml.version !== '1.2') {
    problems.error({ path: '', offset: 0 }, `YAML ${doc.directives.yaml.version} is asked for; team files are YAML 1.2`)
    return undefined
  }
  return new Builder(doc, problems).build()
}

function syntaxMessage(code: string, message: string): string {
  if (code === 'MULTIPLE_DOCS') return 'a team file holds one YAML document; take out what follows the second "---"'
  if (code === 'RESOURCE_EXHAUSTION') return `nested more than ${MAX_DEPTH} levels deep`
  if (code === 'TAG_RESOLVE_FAILED') return `tags have no meaning here: ${message}`
  return `YAML: ${message}`
}

/** Stops the building; its reason is in the problems. */
class Stop extends Error {}

class Builder {
  readonly #doc: Document
  readonly #problems: Problems
  readonly #anchors = new Map<string, Node>()
  /** anchored nodes that are being built: an alias to one of them would never end */
  readonly #open = new Set<Node>()
  #aliases = 0
  #values = 0
  /** above 0 while an alias is being expanded: anchors inside it are known already */
  #expanding = 0

  constructor(doc: Document, problems: Problems) {
    this.#doc = doc
    this.#problems = problems
  }

  build(): Tree | undefined {
    try {
      const root = this.#doc.contents
      if (root) {
        const tree = this.#node(root, { path: '', offset: 0 }, 0)
        // what a broken mapping seems to say is not worth a problem
        return this.#problems.failed ? undefined : tree
      }
      this.#problems.error({ path: '', offset: 0 }, 'the file is empty; a team needs at least "agents"')
      return undefined
    } catch (e) {
      if (e instanceof Stop) return undefined
      throw e
    }
  }

  #node(node: unknown, fallback: Place, depth: number): Tree {
    const offset = (node as Node | null)?.range?.[0] ?? fallback.offset
    const at = { path: fallback.path, offset }
    if (depth > MAX_DEPTH) this.#stop(at, `nested more than ${MAX_DEPTH} levels deep`)
    if (++this.#values > MAX_VALUES)
      this.#stop(at, `the file holds more than ${MAX_VALUES.toLocaleString('en')} values once its aliases are resolved`)
    if (isAlias(node)) return this.#alias(node, at, depth)
    if (isMap(node)) return this.#anchored(node, at, () => this.#map(node.items, at, depth))
    if (isSeq(node))
      return this.#anchored(node, at, () => ({
        ...at,
        kind: 'list',
        items: node.items.map((item, i) => this.#node(item, { path: step(at.path, i), offset: at.offset }, depth + 1)),
      }))
    if (isScalar(node)) return this.#anchored(node, at, () => this.#scalar(node, at))
    return { ...at, kind: 'scalar', value: null, text: '' }
  }

  #anchored(node: Node & { anchor?: string }, at: Place, build: () => Tree): Tree {
    if (!node.anchor) return build()
    if (this.#expanding === 0) {
      // which of two an alias means depends on where it stands; a file that needs that is better written out
      if (this.#anchors.has(node.anchor)) this.#problems.error(at, `the anchor "&${node.anchor}" is defined twice`)
      this.#anchors.set(node.anchor, node)
    }
    this.#open.add(node)
    const tree = build()
    this.#open.delete(node)
    return tree
  }

  #alias(alias: Alias, at: Place, depth: number): Tree {
    if (++this.#aliases > MAX_ALIASES)
      this.#stop(at, `more than ${MAX_ALIASES.toLocaleString('en')} uses of aliases in one file`)
    const target = this.#anchors.get(alias.source)
    if (!target) this.#stop(at, `"*${alias.source}" refers to an anchor that is not defined before it`)
    if (this.#open.has(target)) this.#stop(at, `"*${alias.source}" contains itself`)
    this.#expanding++
    const tree = this.#node(target, at, depth)
    this.#expanding--
    return tree
  }

  #scalar(node: Scalar, at: Place): ScalarTree {
    const { value } = node
    if (typeof value === 'string' && !value.isWellFormed())
      this.#problems.error(at, 'the text holds half of a character (a lone surrogate)')
    const plain = typeof value === 'number' || typeof value === 'boolean' || value === null ? value : String(value)
    return { ...at, kind: 'scalar', value: plain, text: typeof value === 'string' ? value : (node.source ?? '') }
  }

  #map(items: readonly unknown[], at: Place, depth: number): MapTree {
    const entries = new Map<string, Entry>()
    const merged: Tree[] = []
    for (const pair of items) {
      if (!isPair(pair)) continue
      const key = this.#key(pair, at)
      if (key === undefined) continue
      const keyAt = { path: step(at.path, key.text), offset: key.offset }
      if (key.merge) {
        merged.push(this.#node(pair.value, { path: at.path, offset: key.offset }, depth + 1))
      } else if (key.text === '__proto__') {
        this.#problems.error(keyAt, '"__proto__" cannot be a key')
      } else if (entries.has(key.text)) {
        this.#problems.error(keyAt, `the key "${key.text}" stands here twice`)
      } else {
        entries.set(key.text, { key: key.text, at: keyAt, value: this.#node(pair.value, keyAt, depth + 1) })
      }
    }
    for (const source of merged) this.#merge(entries, source, at)
    return { ...at, kind: 'map', entries }
  }

  /** What a merge key brings yields to what stands in the mapping itself, and a later source to an earlier one. */
  #merge(entries: Map<string, Entry>, source: Tree, at: Place): void {
    if (source.kind === 'list') for (const s of source.items) this.#merge(entries, s, at)
    else if (source.kind === 'map') {
      for (const [key, entry] of source.entries) if (!entries.has(key)) entries.set(key, entry)
    } else this.#problems.error(source, '"<<" takes a mapping or a list of mappings, as in "<<: *defaults"')
  }

  #key(pair: Pair, at: Place): { text: string; offset: number; merge: boolean } | undefined {
    const { key } = pair
    const offset = (key as Node | null)?.range?.[0] ?? at.offset
    if (!isScalar(key) || key.value === null || key.anchor) {
      this.#problems.error({ path: at.path, offset }, 'a key must be plain text')
      return undefined
    }
    const text = typeof key.value === 'string' ? key.value : (key.source ?? String(key.value))
    return { text, offset, merge: text === '<<' && key.type === 'PLAIN' }
  }

  #stop(at: Place, message: string): never {
    this.#problems.error(at, message)
    throw new Stop()
  }
}

/**
 * The tree as plain JSON values. Numbers are JavaScript's, so what must be exact is read from `text` instead.
 * Infinity and NaN have no JSON and are reported.
 */
export function toPlain(tree: Tree, problems: Problems): unknown {
  if (tree.kind === 'list') return tree.items.map((item) => toPlain(item, problems))
  // fromEntries defines properties instead of assigning them, so no key can reach a prototype
  if (tree.kind === 'map')
    return Object.fromEntries([...tree.entries].map(([key, entry]) => [key, toPlain(entry.value, problems)]))
  if (typeof tree.value === 'number' && !Number.isFinite(tree.value))
    problems.error(tree, `"${tree.text}" is not a number that JSON can hold`)
  return tree.value
}

/** The deepest part of the tree that a JSON pointer leads to, for problems that others found in the plain values. */
export function findPlace(tree: Tree, pointer: string): Place {
  let here = tree
  for (const raw of pointer.split('/').slice(1)) {
    const part = raw.replaceAll('~1', '/').replaceAll('~0', '~')
    const next =
      here.kind === 'map' ? here.entries.get(part)?.value : here.kind === 'list' ? here.items[Number(part)] : undefined
    if (!next) break
    here = next
  }
  return here
}
