/** Evaluates DynamoDB's condition and update expressions on an item in memory, with DynamoDB's semantics. */
import { compareText, copyAttribute, equal, order, sum, typeOf } from './attributes.ts'
import {
  type Action,
  type Condition,
  type Operand,
  type Parsed,
  type Path,
  parseCondition,
  parseProjection,
  parseUpdate,
  ValidationException,
} from './expression-parser.ts'
import type { Attribute, Item, Names, Values } from './table-client.ts'

interface Scope {
  readonly item: Item
  readonly names: Names
  readonly values: Values
}

function givenName(part: string, names: Names): string {
  const name = names[part]
  if (name === undefined) throw new ValidationException(`An expression attribute name used is not defined: ${part}`)
  return name
}

function givenValue(placeholder: string, values: Values): Attribute {
  const value = values[placeholder]
  if (value === undefined)
    throw new ValidationException(`An expression attribute value used is not defined: ${placeholder}`)
  return value
}

const isMap = (value: Attribute | undefined): value is Item => value !== undefined && typeOf(value) === 'M'

function at(item: Item, path: Path, names: Names): Attribute | undefined {
  let here: Attribute | undefined = item
  for (const part of path) {
    if (!isMap(here)) return undefined
    const name = givenName(part, names)
    here = Object.hasOwn(here, name) ? here[name] : undefined
  }
  return here
}

function resolve(operand: Operand, scope: Scope): Attribute | undefined {
  switch (operand.kind) {
    case 'path':
      return at(scope.item, operand.path, scope.names)
    case 'value':
      return givenValue(operand.name, scope.values)
    case 'if_not_exists':
      return at(scope.item, operand.path, scope.names) ?? resolve(operand.otherwise, scope)
    case 'sum':
      return sum(resolve(operand.left, scope), resolve(operand.right, scope), operand.op)
  }
}

function compare(op: string, a: Attribute | undefined, b: Attribute | undefined): boolean {
  if (op === '=') return equal(a, b)
  if (op === '<>') return !equal(a, b)
  const sign = order(a, b)
  if (sign === undefined) return false
  return op === '<' ? sign < 0 : op === '<=' ? sign <= 0 : op === '>' ? sign > 0 : sign >= 0
}

function contains(value: Attribute | undefined, wanted: Attribute | undefined): boolean {
  if (value === undefined || wanted === undefined) return false
  if (typeof value === 'string') return typeof wanted === 'string' && value.includes(wanted)
  if (value instanceof Set) return value.has(wanted as never)
  return Array.isArray(value) && value.some((element) => equal(element, wanted))
}

function holds(condition: Condition, scope: Scope): boolean {
  switch (condition.kind) {
    case 'and':
      return holds(condition.left, scope) && holds(condition.right, scope)
    case 'or':
      return holds(condition.left, scope) || holds(condition.right, scope)
    case 'not':
      return !holds(condition.inner, scope)
    case 'compare':
      return compare(condition.op, resolve(condition.left, scope), resolve(condition.right, scope))
    case 'in': {
      const value = resolve(condition.operand, scope)
      return condition.list.some((element) => equal(value, resolve(element, scope)))
    }
    case 'between': {
      const value = resolve(condition.operand, scope)
      return compare('>=', value, resolve(condition.low, scope)) && compare('<=', value, resolve(condition.high, scope))
    }
    case 'exists':
      return (at(scope.item, condition.path, scope.names) !== undefined) === condition.wanted
    case 'contains':
      return contains(at(scope.item, condition.path, scope.names), resolve(condition.operand, scope))
    case 'begins_with': {
      const value = at(scope.item, condition.path, scope.names)
      const start = resolve(condition.operand, scope)
      return typeof value === 'string' && typeof start === 'string' && value.startsWith(start)
    }
  }
}

/** Values are compared in the form in which they are stored. */
const canonical = (values: Values): Values => copyAttribute(values, 'values') as Item

/** @throws ValidationException where the text or its placeholders are not valid */
export function evaluateCondition(text: string, item: Item | undefined, names: Names, values: Values): boolean {
  return holds(parseCondition(text).tree, { item: item ?? {}, names, values: canonical(values) })
}

/** DynamoDB refuses placeholders that are not used, so that nothing is forgotten in silence. */
export function checkPlaceholders(parsed: readonly Parsed<unknown>[], names: Names, values: Values): void {
  for (const [what, given, used] of [
    ['name', names, parsed.map((p) => p.names)],
    ['value', values, parsed.map((p) => p.values)],
  ] as const) {
    for (const key of Object.keys(given))
      if (!used.some((set) => set.has(key)))
        throw new ValidationException(`An expression attribute ${what} is not used: ${key}`)
    for (const key of used.flatMap((set) => [...set]))
      if (given[key] === undefined)
        throw new ValidationException(`An expression attribute ${what} used is not defined: ${key}`)
  }
}

function checkOverlap(paths: readonly string[]): void {
  const sorted = [...paths].sort(compareText)
  for (const [i, path] of sorted.entries())
    for (const other of sorted.slice(i + 1))
      if (other === path || other.startsWith(`${path}\u0000`))
        throw new ValidationException(`Two document paths overlap with each other: ${[path, other].join(', ')}`)
}

function holder(item: { [name: string]: Attribute }, path: Path, names: Names): { [name: string]: Attribute } {
  const parent = at(item, path.slice(0, -1), names)
  if (!isMap(parent))
    throw new ValidationException('The document path provided in the update expression is invalid for update')
  return parent as { [name: string]: Attribute }
}

function add(old: Attribute | undefined, value: Attribute): Attribute {
  if (old !== undefined && typeOf(old) !== typeOf(value))
    throw new ValidationException('An operand in the update expression has an incorrect data type')
  if (value instanceof Set) return new Set([...((old as Set<never> | undefined) ?? []), ...value]) as Attribute
  if (typeof value !== 'number' && typeof value !== 'bigint')
    throw new ValidationException('ADD takes a number or a set')
  return sum(old ?? 0, value, '+')
}

/** undefined: the set is empty now, and an empty set is no attribute */
function without(old: Attribute | undefined, value: Attribute): Attribute | undefined {
  if (!(value instanceof Set)) throw new ValidationException('DELETE takes a set')
  if (old === undefined) return undefined
  if (typeOf(old) !== typeOf(value))
    throw new ValidationException('An operand in the update expression has an incorrect data type')
  const rest = new Set(
    [...(old as ReadonlySet<string>)].filter((element) => !(value as ReadonlySet<string>).has(element)),
  )
  return rest.size === 0 ? undefined : rest
}

function apply(action: Action, now: { [name: string]: Attribute }, scope: Scope): void {
  const parent = holder(now, action.path, scope.names)
  const name = givenName(action.path.at(-1)!, scope.names)
  if (action.clause === 'REMOVE') {
    delete parent[name]
    return
  }
  const value = resolve(action.operand, scope)
  if (value === undefined)
    throw new ValidationException('The provided expression refers to an attribute that does not exist in the item')
  const old = Object.hasOwn(parent, name) ? parent[name] : undefined
  const result = action.clause === 'SET' ? value : action.clause === 'ADD' ? add(old, value) : without(old, value)
  if (result === undefined) delete parent[name]
  else parent[name] = copyAttribute(result, name)
}

/**
 * The item after an update. Every operand is read from the item as it was before.
 * @throws ValidationException where DynamoDB would refuse the update
 */
export function evaluateUpdate(text: string, item: Item, names: Names, values: Values): Item {
  const actions = parseUpdate(text).tree
  checkOverlap(actions.map((action) => action.path.map((part) => givenName(part, names)).join('\u0000')))
  const scope = { item, names, values: canonical(values) }
  const now = copyAttribute(item, 'item') as { [name: string]: Attribute }
  for (const action of actions) apply(action, now, scope)
  return now
}

/** The attributes that an update changes. */
export const updatedAttributes = (text: string, names: Names): string[] =>
  parseUpdate(text).tree.map((action) => givenName(action.path[0]!, names))

/** Keeps only the attributes that a projection names. */
export function project(text: string, item: Item, names: Names): Item {
  const kept: { [name: string]: Attribute } = {}
  for (const path of parseProjection(text).tree) {
    if (path.length !== 1) throw new ValidationException('this table projects whole attributes only')
    const name = givenName(path[0]!, names)
    if (item[name] !== undefined) kept[name] = item[name]
  }
  return kept
}
