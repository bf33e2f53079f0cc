/** Idempotency records: what was asked under a key, what it made, and what was answered. */
import type { IdempotencyStore, OnceRef } from '../ports/idempotency-store.ts'
import { inlineBody, joinParts, packBody, partBytes, partsOf } from './bodies.ts'
import { BadItemError, ItemReader, present } from './item-reader.ts'
import { idempotencyKey, idempotencyPartKey } from './keys.ts'
import { placeholders, putNew, updateItem } from './statements.ts'
import { A, ITEM_VERSION } from './table.ts'
import type { Item, TableClient } from './table-client.ts'

const keyOf = (ref: OnceRef) => idempotencyKey(ref.tenant, ref.route, ref.key)
/** Bytes of a record without its answer, roughly: what is stored with a body must leave room for it. */
const BASE_BYTES = 500

export function idempotency(table: TableClient): IdempotencyStore {
  async function bodyOf(ref: OnceRef, item: Item, where: string): Promise<string> {
    const parts = partsOf(item, where)
    if (!parts) return inlineBody(item, where) ?? ''
    const pieces = await Promise.all(
      Array.from({ length: parts.count }, async (_, i) => {
        const key = idempotencyPartKey(ref.tenant, ref.route, ref.key, parts.driver, i)
        const { item: part } = await table.get({ key, consistent: true })
        if (!part) throw new BadItemError(`${where}: part ${i} of ${parts.count} of its answer is missing`)
        return partBytes(part, key.sk)
      }),
    )
    return joinParts(pieces, parts.bytes, where)
  }

  return {
    async putOnce(ref, record, now) {
      const condition = 'attribute_not_exists(#pk) OR #expiresAt <= :seconds'
      const item = {
        ...keyOf(ref),
        [A.version]: ITEM_VERSION,
        [A.bodyHash]: record.bodyHash,
        [A.token]: record.token,
        [A.createdAt]: record.createdAt,
        [A.expiresAt]: record.expiresAt,
      }
      const values = { ':seconds': Math.floor(now / 1000) }
      const { written } = await table.put({ item, condition, ...placeholders([condition], { values }) })
      return written ? 'written' : 'already'
    },

    async getOnce(ref, now) {
      const key = keyOf(ref)
      const { item } = await table.get({ key, consistent: true })
      if (!item) return undefined
      const where = `${key.pk} ${key.sk}`
      const r = new ItemReader(item, A, where)
      const expiresAt = r.whole('expiresAt')
      if (expiresAt <= Math.floor(now / 1000)) return undefined
      return {
        bodyHash: r.text('bodyHash'),
        token: r.text('token'),
        createdAt: r.whole('createdAt'),
        expiresAt,
        answer: r.has('answer')
          ? { status: r.whole('answer'), location: r.textOrNull('location'), body: await bodyOf(ref, item, where) }
          : null,
      }
    },

    async answerOnce(ref, { token, expiresAt }, answer, nonce) {
      const { attributes, parts } = packBody(BASE_BYTES, answer.body, {
        driver: nonce,
        slot: '0',
        key: (part) => idempotencyPartKey(ref.tenant, ref.route, ref.key, nonce, part),
      })
      await Promise.all(parts.map((part) => putNew(table, { ...part, [A.expiresAt]: expiresAt })))
      const [body, reference] = [attributes[A.body], attributes[A.parts]]
      const set = ['#answer = :status']
      if (answer.location !== null) set.push('#location = :location')
      if (body !== undefined) set.push('#body = :body')
      if (reference !== undefined) set.push('#parts = :parts')
      const { written } = await updateItem(
        table,
        keyOf(ref),
        '#token = :token AND attribute_not_exists(#answer)',
        { set },
        {
          values: present({
            ':token': token,
            ':status': answer.status,
            ':location': answer.location,
            ':body': body,
            ':parts': reference,
          }),
        },
        () => undefined,
      )
      return written ? 'written' : 'already'
    },

    async releaseOnce(ref, token) {
      const condition = '#token = :token AND attribute_not_exists(#answer)'
      const values = { ':token': token, ':past': 0 }
      await updateItem(table, keyOf(ref), condition, { set: ['#expiresAt = :past'] }, { values }, () => undefined)
    },
  }
}
