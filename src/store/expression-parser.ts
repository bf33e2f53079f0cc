/**
 * Reads DynamoDB's condition and update expressions, as far as this project writes them, so that the very text that
 * is sent to DynamoDB can be evaluated in memory. Attribute names are accepted behind `#` only: a bare word may be one
 * of some 570 reserved ones, and DynamoDB adds to them.
 */

/** A path into an item: each part is a `#name`. */
export type Path = readonly string[]

export type Operand =
  | { readonly kind: 'path'; readonly path: Path }
  | { readonly kind: 'value'; readonly name: string }
  | { readonly kind: 'if_not_exists'; readonly path: Path; readonly otherwise: Operand }
  | { readonly kind: 'sum'; readonly op: '+' | '-'; readonly left: Operand; readonly right: Operand }

export type Comparator = '=' | '<>' | '<' | '<=' | '>' | '>='

export type Condition =
  | { readonly kind: 'and' | 'or'; readonly left: Condition; readonly right: Condition }
  | { readonly kind: 'not'; readonly inner: Condition }
  | { readonly kind: 'compare'; readonly op: Comparator; readonly left: Operand; readonly right: Operand }
  | { readonly kind: 'in'; readonly operand: Operand; readonly list: readonly Operand[] }
  | { readonly kind: 'between'; readonly operand: Operand; readonly low: Operand; readonly high: Operand }
  | { readonly kind: 'exists'; readonly path: Path; readonly wanted: boolean }
  | { readonly kind: 'contains' | 'begins_with'; readonly path: Path; readonly operand: Operand }

export type Action =
  | { readonly clause: 'SET'; readonly path: Path; readonly operand: Operand }
  | { readonly clause: 'REMOVE'; readonly path: Path }
  | { readonly clause: 'ADD' | 'DELETE'; readonly path: Path; readonly operand: Operand }

/** Placeholders that an expression mentions: DynamoDB refuses missing ones and unused ones. */
export interface Parsed<T> {
  readonly tree: T
  readonly names: ReadonlySet<string>
  readonly values: ReadonlySet<string>
}

/** What DynamoDB answers to a request that it does not understand. */
export class ValidationException extends Error {
  override readonly name = 'ValidationException'
}

const TOKEN = /\s*(<>|<=|>=|[()=<>,+\-.]|[:#]?[A-Za-z_][A-Za-z0-9_]*|[:#][0-9A-Za-z_]+)/gy
const COMPARATORS = new Set<string>(['=', '<>', '<', '<=', '>', '>='])
const CLAUSES = new Set<string>(['SET', 'REMOVE', 'ADD', 'DELETE'])

class Reader {
  readonly text: string
  readonly tokens: readonly string[]
  readonly names = new Set<string>()
  readonly values = new Set<string>()
  at = 0

  constructor(text: string) {
    this.text = text
    const tokens: string[] = []
    const pattern = new RegExp(TOKEN)
    let end = 0
    for (let m = pattern.exec(text); m; m = pattern.exec(text)) {
      tokens.push(m[1]!)
      end = pattern.lastIndex
    }
    this.tokens = tokens
    if (text.slice(end).trim() !== '') this.fail(`cannot read ${JSON.stringify(text.slice(end))}`)
  }

  fail(what: string): never {
    throw new ValidationException(`Invalid expression: ${what} in ${JSON.stringify(this.text)}`)
  }

  get next(): string | undefined {
    return this.tokens[this.at]
  }

  take(expected?: string): string {
    const token = this.tokens[this.at++]
    if (token === undefined) return this.fail(`it ends where ${expected ?? 'more'} is expected`)
    if (expected !== undefined && token !== expected) this.fail(`${token} where ${expected} is expected`)
    return token
  }

  tryTake(token: string): boolean {
    if (this.next !== token) return false
    this.at++
    return true
  }

  path(): Path {
    const parts: string[] = []
    do {
      const part = this.take()
      if (!part.startsWith('#')) this.fail(`${part} stands bare: every attribute name goes behind a #name`)
      this.names.add(part)
      parts.push(part)
    } while (this.tryTake('.'))
    return parts
  }

  operand(): Operand {
    const token = this.next
    if (token?.startsWith(':')) {
      this.values.add(this.take())
      return { kind: 'value', name: token }
    }
    if (this.tryTake('if_not_exists')) {
      this.take('(')
      const path = this.path()
      this.take(',')
      const otherwise = this.operand()
      this.take(')')
      return { kind: 'if_not_exists', path, otherwise }
    }
    return { kind: 'path', path: this.path() }
  }

  sum(): Operand {
    const left = this.operand()
    const op = this.next
    if (op !== '+' && op !== '-') return left
    this.take()
    return { kind: 'sum', op, left, right: this.operand() }
  }

  or(): Condition {
    let left = this.and()
    while (this.tryTake('OR')) left = { kind: 'or', left, right: this.and() }
    return left
  }

  and(): Condition {
    let left = this.not()
    while (this.tryTake('AND')) left = { kind: 'and', left, right: this.not() }
    return left
  }

  not(): Condition {
    return this.tryTake('NOT') ? { kind: 'not', inner: this.not() } : this.primary()
  }

  primary(): Condition {
    if (this.tryTake('(')) {
      const inner = this.or()
      this.take(')')
      return inner
    }
    const word = this.next
    if (word === 'attribute_exists' || word === 'attribute_not_exists') {
      this.take()
      this.take('(')
      const path = this.path()
      this.take(')')
      return { kind: 'exists', path, wanted: word === 'attribute_exists' }
    }
    if (word === 'contains' || word === 'begins_with') {
      this.take()
      this.take('(')
      const path = this.path()
      this.take(',')
      const operand = this.operand()
      this.take(')')
      return { kind: word, path, operand }
    }
    return this.comparison()
  }

  comparison(): Condition {
    const left = this.operand()
    const op = this.take()
    if (op === 'IN') {
      this.take('(')
      const list = [this.operand()]
      while (this.tryTake(',')) list.push(this.operand())
      this.take(')')
      return { kind: 'in', operand: left, list }
    }
    if (op === 'BETWEEN') {
      const low = this.operand()
      this.take('AND')
      return { kind: 'between', operand: left, low, high: this.operand() }
    }
    if (!COMPARATORS.has(op)) this.fail(`operator ${op}`)
    return { kind: 'compare', op: op as Comparator, left, right: this.operand() }
  }

  actions(): Action[] {
    const actions: Action[] = []
    const seen = new Set<string>()
    while (this.next !== undefined) {
      const clause = this.take()
      if (!CLAUSES.has(clause)) this.fail(`${clause} where a clause is expected`)
      if (seen.has(clause)) this.fail(`clause ${clause} stands twice`)
      seen.add(clause)
      do actions.push(this.action(clause as Action['clause']))
      while (this.tryTake(','))
    }
    if (actions.length === 0) this.fail('it changes nothing')
    return actions
  }

  action(clause: Action['clause']): Action {
    const path = this.path()
    if (clause === 'REMOVE') return { clause, path }
    if (clause === 'SET') {
      this.take('=')
      return { clause, path, operand: this.sum() }
    }
    const operand = this.operand()
    if (operand.kind !== 'value' || path.length !== 1) this.fail(`${clause} takes one attribute and one :value`)
    return { clause, path, operand }
  }
}

/** Reads each text once: there are few, and they are evaluated often. */
function cached<T>(read: (reader: Reader) => T): (text: string) => Parsed<T> {
  const known = new Map<string, Parsed<T>>()
  return (text) => {
    const old = known.get(text)
    if (old) return old
    const reader = new Reader(text)
    const tree = read(reader)
    if (reader.next !== undefined) reader.fail(`${reader.next} is left over`)
    const parsed = { tree, names: reader.names, values: reader.values }
    known.set(text, parsed)
    return parsed
  }
}

/** @throws ValidationException when the text is no condition */
export const parseCondition = cached((reader) => reader.or())
/** @throws ValidationException when the text is no update */
export const parseUpdate = cached((reader) => reader.actions())
/** A projection: paths, of which only the first parts are kept apart here. */
export const parseProjection = cached((reader) => {
  const paths = [reader.path()]
  while (reader.tryTake(',')) paths.push(reader.path())
  return paths
})
