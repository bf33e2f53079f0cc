import type { Key } from './keys.ts'

/**
 * What the store needs of DynamoDB: single items, conditions and updates as DynamoDB's own expressions, queries.
 *
 * Values are plain JavaScript: whole numbers beyond 2^53 are bigint (smaller ones are numbers, also when they were
 * written as bigint), sets are Set, binary is Uint8Array. A condition that does not hold is a value; everything else that
 * goes wrong is thrown. Every attribute name in an expression stands behind a `#name`, so no word is ever a reserved one.
 */
export type Attribute =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | ReadonlySet<string>
  | ReadonlySet<number | bigint>
  | readonly Attribute[]
  | { readonly [name: string]: Attribute }

export interface Item {
  readonly [name: string]: Attribute
}

export interface Names {
  readonly [placeholder: string]: string
}

export interface Values {
  readonly [placeholder: string]: Attribute
}

export interface GetRequest {
  readonly key: Key
  readonly consistent: boolean
}

export interface PutRequest {
  /** with its key; nothing in it is undefined */
  readonly item: Item
  readonly condition?: string
  readonly names?: Names
  readonly values?: Values
}

export interface UpdateRequest {
  readonly key: Key
  readonly condition: string
  readonly update: string
  readonly names: Names
  readonly values: Values
}

export interface DeleteRequest {
  readonly key: Key
  readonly condition?: string
  readonly names?: Names
  readonly values?: Values
}

export interface QueryRequest {
  readonly index?: string
  readonly keyCondition: string
  readonly filter?: string
  readonly projection?: string
  readonly names: Names
  readonly values: Values
  /** most items looked at, before the filter */
  readonly limit?: number
  readonly backwards?: boolean
  /** the key of the last item of the page before, with the index's key where there is one */
  readonly startAfter?: Item
  readonly consistent: boolean
}

/** Capacity units that the table itself took; writes of its indexes are not among them. */
interface Used {
  readonly units: number
}

export type GetResult = Used & { readonly item: Item | undefined }
export type PutResult = Used & { readonly written: boolean }
export type UpdateResult = Used & ({ readonly written: true; readonly item: Item } | { readonly written: false })
/** `last` is where the next page starts after; absent: there is none */
export type QueryResult = Used & { readonly items: readonly Item[]; readonly last?: Item }

export interface TableClient {
  get(request: GetRequest): Promise<GetResult>
  put(request: PutRequest): Promise<PutResult>
  /** returns the item as it is after the write */
  update(request: UpdateRequest): Promise<UpdateResult>
  /** an item that is not there is removed as well as one that is */
  delete(request: DeleteRequest): Promise<PutResult>
  query(request: QueryRequest): Promise<QueryResult>
}
