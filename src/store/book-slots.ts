/** The log of a whole run as an auditor reads it. */
import type { RunRef } from '../domain/run.ts'
import type { BookSlot, Page, Store } from '../ports.ts'
import { BadItemError, ItemReader } from './item-reader.ts'
import { parseTurnKey, runPartition, TURN_PREFIX } from './keys.ts'
import { between } from './log-reads.ts'
import { ROW_OF_BOOKS } from './run-reads.ts'
import { decodeResponse } from './slot-codec.ts'
import { placeholders } from './statements.ts'
import { A, END, INTENT } from './table.ts'
import type { Item, TableClient } from './table-client.ts'
import { decodeEnd, decodeIntent } from './value-codecs.ts'

const PROJECTION = `${ROW_OF_BOOKS}, #intent`
const FILTER = 'attribute_exists(#outcome) OR attribute_exists(#intent) OR attribute_exists(#end)'

export function bookSlots(table: TableClient): Pick<Store, 'listBookSlots'> {
  return {
    /** One page of the table, however many of its items are slots. */
    async listBookSlots(ref: RunRef, { after }: { after?: string }): Promise<Page<BookSlot>> {
      const pk = runPartition(ref)
      const keys = between(pk, TURN_PREFIX, `${TURN_PREFIX}~`, true)
      const page = await table.query({
        ...keys,
        ...placeholders([keys.keyCondition, FILTER, PROJECTION], { values: keys.values }),
        filter: FILTER,
        projection: PROJECTION,
        ...(after !== undefined && { startAfter: { [A.pk]: pk, [A.sk]: after } }),
      })
      const next = page.last?.[A.sk]
      return { items: page.items.map(slotOf), ...(typeof next === 'string' && { next }) }
    },
  }
}

/** An item that somebody has damaged must not keep the others from being looked at. */
function slotOf(item: Item): BookSlot {
  const sk = String(item[A.sk])
  const where = `${item[A.pk]} ${sk}`
  const { sessionId, n, slot } = parseTurnKey(sk)
  try {
    if (slot === 'response') return { sessionId, n, response: decodeResponse(item, n, undefined, where) }
    const r = new ItemReader(item, A, where)
    const request = {
      ...(r.has('intent') && { intent: decodeIntent(r.fields('intent', INTENT)) }),
      ...(r.has('end') && { end: decodeEnd(r.fields('end', END)) }),
    }
    return { sessionId, n, request }
  } catch (e) {
    if (e instanceof BadItemError) return { sessionId, n, fault: e.message }
    throw e
  }
}
