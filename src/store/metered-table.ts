import { itemSize, writeUnits } from './item-size.ts'
import { A } from './table.ts'
import type {
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

/** What a table was asked, and what that cost. */
export interface Meter {
  /** requests, refused ones included; a query counts once for each page */
  readonly gets: number
  readonly puts: number
  readonly updates: number
  readonly queries: number
  /** puts and updates whose condition did not hold */
  readonly refused: number
  /** read capacity units: 4 KB each, half of one where the read is not consistent */
  readonly readUnits: number
  /** write capacity units of the table: 1 KB each, refused writes included */
  readonly writeUnits: number
  /** write capacity units of its indexes */
  readonly indexUnits: number
  /** bytes of items as they were after each write, as DynamoDB counts them */
  readonly bytesWritten: number
}

export interface MeteredTable extends TableClient {
  /** counts since the start or the last reset; requests that threw are not in them */
  snapshot(): Meter
  reset(): void
}

const NOTHING: Meter = {
  gets: 0,
  puts: 0,
  updates: 0,
  queries: 0,
  refused: 0,
  readUnits: 0,
  writeUnits: 0,
  indexUnits: 0,
  bytesWritten: 0,
}

/**
 * Counts around a table. The table's own units are those it reports. Writes of the indexes are worked out here, because
 * the embedded emulator does not report them: an entry of `runs` holds the whole item, so every write of RUN writes it; an
 * entry of `due` holds keys, so it costs one unit to appear, one to go, and two to move.
 */
export function meteredTable(table: TableClient): MeteredTable {
  let counts: { -readonly [K in keyof Meter]: Meter[K] } = { ...NOTHING }
  /** due time of each run as it was last seen here; null: it had none */
  const due = new Map<string, number | null>()

  const dueAt = (item: Item): number | null => {
    const value = item[A.dueAt]
    return typeof value === 'number' ? value : null
  }
  const isRun = (item: Item): boolean => item[A.runsTenant] !== undefined
  const remember = (item: Item) => {
    if (isRun(item)) due.set(String(item[A.pk]), dueAt(item))
  }

  function written(item: Item, isNew: boolean): void {
    counts.bytesWritten += itemSize(item)
    if (!isRun(item)) return
    const before = isNew ? null : due.get(String(item[A.pk]))
    const after = dueAt(item)
    // where the time before is not known, the entry is taken to have moved
    const moved = before === after ? 0 : before === null || after === null ? 1 : 2
    counts.indexUnits += writeUnits(itemSize(item)) + moved
    remember(item)
  }

  return {
    async get(request: GetRequest): Promise<GetResult> {
      const result = await table.get(request)
      counts.gets++
      counts.readUnits += result.units
      if (result.item) remember(result.item)
      return result
    },

    async put(request: PutRequest): Promise<PutResult> {
      const result = await table.put(request)
      counts.puts++
      counts.writeUnits += result.units
      if (result.written) written(request.item, true)
      else counts.refused++
      return result
    },

    async update(request: UpdateRequest): Promise<UpdateResult> {
      const result = await table.update(request)
      counts.updates++
      counts.writeUnits += result.units
      if (result.written) written(result.item, false)
      else counts.refused++
      return result
    },

    async delete(request: DeleteRequest): Promise<PutResult> {
      const result = await table.delete(request)
      counts.writeUnits += result.units
      if (!result.written) counts.refused++
      return result
    },

    async query(request: QueryRequest): Promise<QueryResult> {
      const result = await table.query(request)
      counts.queries++
      counts.readUnits += result.units
      for (const item of result.items) remember(item)
      return result
    },

    snapshot: () => ({ ...counts }),
    reset() {
      counts = { ...NOTHING }
    },
  }
}
