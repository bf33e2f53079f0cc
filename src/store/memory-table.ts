/**
 * A table in memory that understands DynamoDB's own expressions and keeps its rules: conditions, sets, item and page
 * sizes, sparse indexes, capacity units. For tests, and for anything that must be deterministic.
 */
import { compareText, copyItem, order, typeOf } from './attributes.ts'
import { parseCondition, parseProjection, parseUpdate, ValidationException } from './expression-parser.ts'
import { checkPlaceholders, evaluateCondition, evaluateUpdate, project, updatedAttributes } from './expressions.ts'
import { itemSize, MAX_ITEM_BYTES, readUnits, writeUnits } from './item-size.ts'
import type { Key } from './keys.ts'
import { TABLE_DEFINITION } from './table.ts'
import type {
  Attribute,
  DeleteRequest,
  GetRequest,
  GetResult,
  Item,
  PutRequest,
  PutResult,
  QueryRequest,
  QueryResult,
  TableClient,
  UpdateRequest,
  UpdateResult,
} from './table-client.ts'

const PAGE_BYTES = 1024 * 1024

export interface MemoryTableOptions {
  /**
   * Asked at every read that is not consistent, for each item. True: the reader sees the item as it was before its last
   * write (or not at all, if that write made it), as it may happen to one who reads from a replica.
   */
  readonly stale?: (key: Key) => boolean
}

export interface MemoryTable extends TableClient {
  /** every item, in the order of the keys; copies */
  items(): Item[]
}

interface Index {
  readonly hash: string
  readonly range: string
  readonly keysOnly: boolean
}

const ATTRIBUTE_TYPES = new Map<string, string>(
  TABLE_DEFINITION.AttributeDefinitions.map((d) => [d.AttributeName, d.AttributeType]),
)
const INDEXES = new Map<string, Index>(
  TABLE_DEFINITION.GlobalSecondaryIndexes.map((index) => [
    index.IndexName,
    {
      hash: index.KeySchema[0].AttributeName,
      range: index.KeySchema[1].AttributeName,
      keysOnly: index.Projection.ProjectionType === 'KEYS_ONLY',
    },
  ]),
)
const [HASH, RANGE] = [TABLE_DEFINITION.KeySchema[0].AttributeName, TABLE_DEFINITION.KeySchema[1].AttributeName]

/** One partition: its items, and their sort keys in order. */
class Partition {
  readonly items = new Map<string, Item>()
  readonly order: string[] = []

  set(sk: string, item: Item): void {
    if (!this.items.has(sk)) this.order.splice(this.position(sk), 0, sk)
    this.items.set(sk, item)
  }

  delete(sk: string): void {
    if (this.items.delete(sk)) this.order.splice(this.position(sk), 1)
  }

  /** where a sort key stands, or would stand */
  position(sk: string): number {
    let [low, high] = [0, this.order.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (compareText(this.order[middle]!, sk) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

const keyOf = (item: Item): Key => {
  const [pk, sk] = [item[HASH], item[RANGE]]
  if (typeof pk !== 'string' || typeof sk !== 'string' || pk === '' || sk === '')
    throw new ValidationException('One or more parameter values were invalid: the item has no key')
  if (Buffer.byteLength(pk) > 2048 || Buffer.byteLength(sk) > 1024)
    throw new ValidationException(
      'One or more parameter values were invalid: the key is longer than 2,048 and 1,024 bytes',
    )
  return { pk, sk }
}

function checkItem(item: Item): void {
  for (const [name, type] of ATTRIBUTE_TYPES) {
    const value = item[name]
    if (value !== undefined && typeOf(value) !== type)
      throw new ValidationException(`Type mismatch for key ${name}: expected ${type}, got ${typeOf(value)}`)
  }
  if (itemSize(item) > MAX_ITEM_BYTES) throw new ValidationException('Item size has exceeded the maximum allowed size')
}

export function memoryTable(options: MemoryTableOptions = {}): MemoryTable {
  const partitions = new Map<string, Partition>()
  /** items as they were before their last write; kept only where somebody may ask for them */
  const previous = new Map<Item, Item | undefined>()

  const find = (key: Key): Item | undefined => partitions.get(key.pk)?.items.get(key.sk)

  function store(item: Item, old: Item | undefined): void {
    const key = keyOf(item)
    let partition = partitions.get(key.pk)
    if (!partition) partitions.set(key.pk, (partition = new Partition()))
    partition.set(key.sk, item)
    if (!options.stale) return
    previous.set(item, old)
    if (old) previous.delete(old)
  }

  /** the item as a reader sees it */
  const seen = (item: Item, consistent: boolean): Item | undefined =>
    !consistent && options.stale?.(keyOf(item)) ? previous.get(item) : item

  async function get(request: GetRequest): Promise<GetResult> {
    const item = find(keyOf({ ...request.key }))
    const visible = item && seen(item, request.consistent)
    return {
      item: visible && copyItem(visible),
      units: readUnits(visible ? itemSize(visible) : 0, request.consistent),
    }
  }

  async function put(request: PutRequest): Promise<PutResult> {
    const item = copyItem(request.item)
    const { condition, names = {}, values = {} } = request
    checkPlaceholders(condition === undefined ? [] : [parseCondition(condition)], names, values)
    const old = find(keyOf(item))
    checkItem(item)
    const units = writeUnits(Math.max(itemSize(item), old ? itemSize(old) : 0))
    if (condition !== undefined && !evaluateCondition(condition, old, names, values))
      return { written: false, units: writeUnits(old ? itemSize(old) : 0) }
    store(item, old)
    return { written: true, units }
  }

  async function update(request: UpdateRequest): Promise<UpdateResult> {
    const { key, condition, update: text, names, values } = request
    checkPlaceholders([parseCondition(condition), parseUpdate(text)], names, values)
    for (const name of updatedAttributes(text, names))
      if (name === HASH || name === RANGE)
        throw new ValidationException(`Cannot update attribute ${name}: it is part of the key`)
    const old = find(keyOf({ ...key }))
    const oldUnits = writeUnits(old ? itemSize(old) : 0)
    if (!evaluateCondition(condition, old, names, values)) return { written: false, units: oldUnits }
    const item = evaluateUpdate(text, old ?? { ...key }, names, values)
    checkItem(item)
    store(item, old)
    return { written: true, item: copyItem(item), units: Math.max(oldUnits, writeUnits(itemSize(item))) }
  }

  async function remove(request: DeleteRequest): Promise<PutResult> {
    const { key, condition, names = {}, values = {} } = request
    checkPlaceholders(condition === undefined ? [] : [parseCondition(condition)], names, values)
    const old = find(keyOf({ ...key }))
    const units = writeUnits(old ? itemSize(old) : 0)
    if (condition !== undefined && !evaluateCondition(condition, old, names, values)) return { written: false, units }
    partitions.get(key.pk)?.delete(key.sk)
    if (old) previous.delete(old)
    return { written: true, units }
  }

  /** Every item in which the key condition holds, in the order of the keys. */
  function matching(request: QueryRequest, index: Index | undefined): Item[] {
    const { keyCondition, names, values, consistent } = request
    const key = keyOfQuery(request, index?.hash ?? HASH)
    const found: Item[] = []
    const holds = (item: Item) => evaluateCondition(keyCondition, item, names, values)
    if (index) {
      for (const partition of partitions.values())
        for (const item of partition.items.values()) {
          const visible = seen(item, false)
          if (visible && visible[index.range] !== undefined && holds(visible)) found.push(visible)
        }
      return found.sort((a, b) => compareKeys(a, b, index.range))
    }
    // The sort keys of a condition stand side by side: look from its lower bound on, and stop behind the last one.
    const partition = partitions.get(String(key.hash))
    if (!partition) return found
    for (let i = key.from === undefined ? 0 : partition.position(key.from); i < partition.order.length; i++) {
      const item = partition.items.get(partition.order[i]!)!
      if (!holds(item)) {
        if (found.length > 0 || partition.order[i] !== key.from) break
        continue
      }
      const visible = seen(item, consistent)
      if (visible) found.push(visible)
    }
    return found
  }

  async function query(request: QueryRequest): Promise<QueryResult> {
    const { names, values, keyCondition, filter, projection, limit } = request
    const texts = [parseCondition(keyCondition), ...(filter === undefined ? [] : [parseCondition(filter)])]
    checkPlaceholders([...texts, ...(projection === undefined ? [] : [parseProjection(projection)])], names, values)
    if (limit !== undefined && !(limit >= 1)) throw new ValidationException(`Limit ${limit} must be at least 1`)
    const index = request.index === undefined ? undefined : INDEXES.get(request.index)
    if (request.index !== undefined && !index)
      throw new ValidationException(`The table does not have the specified index: ${request.index}`)
    if (index && request.consistent)
      throw new ValidationException('Consistent reads are not supported on global secondary indexes')

    const range = index?.range ?? RANGE
    const ordered = matching(request, index)
    if (request.backwards) ordered.reverse()
    const { startAfter } = request
    const direction = request.backwards ? -1 : 1
    let bytes = 0
    let more = false
    const page: Item[] = []
    for (const item of ordered) {
      if (startAfter && compareKeys(item, startAfter, range) * direction <= 0) continue
      more = page.length === limit || bytes >= PAGE_BYTES
      if (more) break
      const entry = index?.keysOnly ? pick(item, [HASH, RANGE, index.hash, range]) : item
      bytes += itemSize(entry)
      page.push(entry)
    }
    // As DynamoDB does: a page that was filled says where it ended, also when nothing follows.
    const last = more || page.length === limit ? page.at(-1) : undefined
    return {
      items: page
        .filter((item) => filter === undefined || evaluateCondition(filter, item, names, values))
        .map((item) => copyItem(projection === undefined ? item : project(projection, item, names))),
      ...(last && { last: copyItem(pick(last, [...new Set([HASH, RANGE, index?.hash ?? HASH, range])])) }),
      units: readUnits(bytes, request.consistent),
    }
  }

  return {
    get,
    put,
    update,
    delete: remove,
    query,
    items: () =>
      [...partitions.keys()]
        .sort(compareText)
        .flatMap((pk) => partitions.get(pk)!.order.map((sk) => copyItem(partitions.get(pk)!.items.get(sk)!))),
  }
}

/** Partition of a query, and the lower bound of its sort keys where it has one. */
function keyOfQuery(request: QueryRequest, hash: string): { hash: Attribute | undefined; from: string | undefined } {
  const { names, values } = request
  const { tree } = parseCondition(request.keyCondition)
  const [first, second] = tree.kind === 'and' ? [tree.left, tree.right] : [tree, undefined]
  if (first.kind !== 'compare' || first.op !== '=' || first.left.kind !== 'path' || first.right.kind !== 'value')
    throw new ValidationException('A key condition begins with #hash = :value')
  if (names[first.left.path[0]!] !== hash)
    throw new ValidationException(`Query condition missed key schema element: ${hash}`)
  const bound =
    second?.kind === 'begins_with'
      ? second.operand
      : second?.kind === 'between'
        ? second.low
        : second?.kind === 'compare' && (second.op === '=' || second.op === '>' || second.op === '>=')
          ? second.right
          : undefined
  const from = bound?.kind === 'value' ? values[bound.name] : undefined
  return { hash: values[first.right.name], from: typeof from === 'string' ? from : undefined }
}

/** Order of two items of one query: by the range key, then by primary key. */
const compareKeys = (a: Item, b: Item, range: string): number =>
  order(a[range], b[range]) ||
  compareText(String(a[HASH]), String(b[HASH])) ||
  compareText(String(a[RANGE]), String(b[RANGE]))

function pick(item: Item, names: readonly string[]): Item {
  const kept: { [name: string]: Attribute } = {}
  for (const name of names) kept[name] = item[name]!
  return kept
}
