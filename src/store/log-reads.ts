/** Reads of a session's log. */
import { SubledgerError } from '../domain/errors.ts'
import type { SessionRef } from '../domain/run.ts'
import type { LogSlots, RequestSlot, ResponseSlot, ToolResultSlot } from '../domain/turn.ts'
import type { Store } from '../ports.ts'
import { inlineBody, joinParts, partBytes, partsOf } from './bodies.ts'
import { BadItemError } from './item-reader.ts'
import {
  CALLS_END,
  type Key,
  parseTurnKey,
  partKey,
  responseKey,
  runPartition,
  toolResultKey,
  turnPrefix,
  turnsPrefix,
} from './keys.ts'
import { decodeRequest, decodeResponse, decodeToolResult } from './slot-codec.ts'
import { placeholders } from './statements.ts'
import { A } from './table.ts'
import type { Item, QueryRequest, TableClient } from './table-client.ts'

/** All items of a query, page by page. A page ends after 1 MB, whatever it holds. */
export async function* queryAll(table: TableClient, request: QueryRequest): AsyncGenerator<Item> {
  let startAfter: Item | undefined
  do {
    const page = await table.query({ ...request, ...(startAfter && { startAfter }) })
    yield* page.items
    startAfter = page.last
  } while (startAfter)
}

export async function collect(table: TableClient, request: QueryRequest): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of queryAll(table, request)) items.push(item)
  return items
}

/** Items of one partition whose sort key stands between two, both included. */
export function between(
  pk: string,
  from: string,
  to: string,
  consistent: boolean,
): Pick<QueryRequest, 'keyCondition' | 'names' | 'values' | 'consistent'> {
  const keyCondition = '#pk = :pk AND #sk BETWEEN :from AND :to'
  const values = { ':pk': pk, ':from': from, ':to': to }
  return { keyCondition, consistent, ...placeholders([keyCondition], { values }) }
}

export const badCursor = (): SubledgerError =>
  new SubledgerError('bad_cursor', 'The cursor was not made for this list. Start without one.')

const skOf = (item: Item): string => {
  const sk = item[A.sk]
  if (typeof sk !== 'string') throw new BadItemError(`an item has no key`)
  return sk
}

type LogReads = Pick<Store, 'readLog' | 'listSlots' | 'getResponse' | 'getToolResult'>

export function logReads(table: TableClient): LogReads {
  /** @param known parts that were read together with the slot, by sort key */
  async function bodyOf(
    ref: SessionRef,
    n: number,
    item: Item,
    where: string,
    known?: ReadonlyMap<string, Item>,
  ): Promise<string | undefined> {
    const parts = partsOf(item, where)
    if (!parts) return inlineBody(item, where)
    const pieces: Uint8Array[] = []
    for (let i = 0; i < parts.count; i++) {
      const key = partKey(ref, n, parts.driver, parts.slot, i)
      // A reader of replicas may see a slot before its parts: then ask for the part itself, consistently.
      const part = known?.get(key.sk) ?? (await table.get({ key, consistent: true })).item
      if (!part) throw new BadItemError(`${where}: part ${i} of ${parts.count} of its body is missing (${key.sk})`)
      pieces.push(partBytes(part, key.sk))
    }
    return joinParts(pieces, parts.bytes, where)
  }

  async function slots(ref: SessionRef, items: readonly Item[]): Promise<LogSlots> {
    const requests = new Map<number, RequestSlot>()
    const responses = new Map<number, ResponseSlot>()
    const results = new Map<string, ToolResultSlot>()
    const places = items.map((item) => ({ item, sk: skOf(item), place: parseTurnKey(skOf(item)) }))
    const parts = new Map(places.filter(({ place }) => place.slot === 'part').map(({ sk, item }) => [sk, item]))
    for (const { item, sk, place } of places) {
      const where = `${item[A.pk]} ${sk}`
      if (place.slot === 'part') continue
      const body = await bodyOf(ref, place.n, item, where, parts)
      if (place.slot === 'request') requests.set(place.n, decodeRequest(item, place.n, body, where))
      else if (place.slot === 'response') responses.set(place.n, decodeResponse(item, place.n, body, where))
      else results.set(`${place.n}#${place.index}`, decodeToolResult(item, place, body, where))
    }
    return { requests, responses, results }
  }

  async function slot(key: Key): Promise<{ item: Item; where: string } | undefined> {
    const { item } = await table.get({ key, consistent: true })
    return item && { item, where: `${key.pk} ${key.sk}` }
  }

  return {
    async readLog(ref: SessionRef): Promise<LogSlots> {
      const keyCondition = '#pk = :pk AND begins_with(#sk, :prefix)'
      const values = { ':pk': runPartition(ref), ':prefix': turnsPrefix(ref) }
      const request = { keyCondition, consistent: true, ...placeholders([keyCondition], { values }) }
      return slots(ref, await collect(table, request))
    },

    async listSlots(ref: SessionRef, options: { from?: number; limit: number; consistent?: boolean }) {
      const { from = 0, limit, consistent = false } = options
      const last = `${turnsPrefix(ref)}~`
      const start = turnPrefix(ref, from)
      const end = from + limit < CALLS_END ? turnPrefix(ref, from + limit) : last
      const pk = runPartition(ref)
      // A prefix sorts before everything that begins with it, so the upper bound itself is never an item.
      const items = await collect(table, between(pk, start, end, consistent))
      const found = await slots(ref, items)
      const rest = await table.query({ ...between(pk, end, last, consistent), limit: 1 })
      const next = rest.items[0]
      return { slots: found, ...(next && { nextTurn: parseTurnKey(skOf(next)).n }) }
    },

    async getResponse(ref: SessionRef, n: number): Promise<ResponseSlot | undefined> {
      const found = await slot(responseKey(ref, n))
      if (!found) return undefined
      return decodeResponse(found.item, n, await bodyOf(ref, n, found.item, found.where), found.where)
    },

    async getToolResult(ref: SessionRef, n: number, index: number): Promise<ToolResultSlot | undefined> {
      const found = await slot(toolResultKey(ref, n, index))
      if (!found) return undefined
      const body = await bodyOf(ref, n, found.item, found.where)
      return decodeToolResult(found.item, { n, index }, body, found.where)
    },
  }
}
