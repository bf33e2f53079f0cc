/** Slots of a session's log: each is put once, by whoever comes first. */
import type { SessionRef } from '../domain/run.ts'
import type { RequestSlot, ResponseSlot, ToolResultSlot } from '../domain/turn.ts'
import type { Put, Store } from '../ports.ts'
import { type PackedBody, packBody } from './bodies.ts'
import { itemSize } from './item-size.ts'
import { type Key, PART_SLOT, partKey, requestKey, responseKey, toolResultKey } from './keys.ts'
import {
  encodeRequest,
  encodeResponse,
  encodeToolResult,
  moneyAttributes,
  outcomeAttributes,
  requestBody,
  responseBody,
  toolResultBody,
} from './slot-codec.ts'
import { placeholders, putNew, updateText } from './statements.ts'
import { A } from './table.ts'
import type { Attribute, Item, TableClient } from './table-client.ts'

type LogWrites = Pick<Store, 'putRequest' | 'putResponse' | 'bookLate' | 'putToolResult'>

export function logWrites(table: TableClient): LogWrites {
  const packed = (ref: SessionRef, n: number, driver: string, slot: string, base: Item, text: string): PackedBody =>
    packBody(itemSize(base), text, { driver, slot, key: (part) => partKey(ref, n, driver, slot, part) })

  /**
   * Puts the parts of a body, before the slot that names them: a slot that can be read can be read whole. Parts of a
   * driver that loses its slot are left behind; nobody asks for them, because their key names the driver.
   */
  const putParts = (body: PackedBody) => Promise.all(body.parts.map((item) => table.put({ item })))

  async function putSlot(
    key: Key,
    attributes: Item,
    text: string | undefined,
    pack: (base: Item, text: string) => PackedBody,
  ): Promise<Put> {
    const base = { ...key, ...attributes }
    if (text === undefined) return putNew(table, base)
    const body = pack(base, text)
    await putParts(body)
    return putNew(table, { ...base, ...body.attributes })
  }

  return {
    /** W5, W8 */
    putRequest: (ref: SessionRef, slot: RequestSlot, driver: string): Promise<Put> =>
      putSlot(requestKey(ref, slot.n), encodeRequest(slot), requestBody(slot), (base, text) =>
        packed(ref, slot.n, driver, PART_SLOT.request, base, text),
      ),

    /** W6, W7, W8 */
    putResponse: (ref: SessionRef, slot: ResponseSlot, driver: string): Promise<Put> =>
      putSlot(responseKey(ref, slot.n), encodeResponse(slot), responseBody(slot), (base, text) =>
        packed(ref, slot.n, driver, PART_SLOT.response, base, text),
      ),

    /** W10 */
    putToolResult: (ref: SessionRef, slot: ToolResultSlot, driver: string): Promise<Put> =>
      putSlot(toolResultKey(ref, slot.n, slot.index), encodeToolResult(slot), toolResultBody(slot), (base, text) =>
        packed(ref, slot.n, driver, PART_SLOT.toolResult(slot.index), base, text),
      ),

    /**
     * W9. Everything that an outcome says of its call is replaced; what belongs to the place in the log stays: whose call
     * it was, its bound, and the intent that a take-over packed in.
     */
    async bookLate(ref: SessionRef, slot: ResponseSlot, driver: string): Promise<'written' | 'lost'> {
      const key = responseKey(ref, slot.n)
      const base = { ...key, ...encodeResponse(slot) }
      const text = responseBody(slot)
      const body = text === undefined ? undefined : packed(ref, slot.n, driver, PART_SLOT.late, base, text)
      if (body) await putParts(body)
      const known = { ...outcomeAttributes(slot), ...moneyAttributes(slot) }
      const attributes: { [name: string]: Attribute | undefined } = {
        ...known,
        [A.body]: undefined,
        [A.parts]: undefined,
        ...body?.attributes,
      }

      const names: { [placeholder: string]: string } = {}
      const values: { [placeholder: string]: Attribute } = {}
      const [set, remove]: [string[], string[]] = [[], []]
      for (const [name, value] of Object.entries(attributes)) {
        names[`#_${name}`] = name
        if (value === undefined) {
          remove.push(`#_${name}`)
        } else {
          set.push(`#_${name} = :_${name}`)
          values[`:_${name}`] = value
        }
      }
      const condition = '#outcome = :unknown AND #of = :driver'
      const update = updateText({ set, remove })
      const result = await table.update({
        key,
        condition,
        update,
        ...placeholders([condition, update], { names, values: { ...values, ':driver': driver } }),
      })
      return result.written ? 'written' : 'lost'
    },
  }
}
