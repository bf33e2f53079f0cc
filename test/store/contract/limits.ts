/** Limits that many share: never more held and spent than the limit, each hold and each settlement once. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Amount, add, sub, UNLIMITED, ZERO } from '../../../src/domain/money.ts'
import type { Hold, LimitRef, SharedLimit } from '../../../src/ports/limit-store.ts'
import type { Store } from '../../../src/ports.ts'
import { createStore } from '../../../src/store/store.ts'
import { money, runRef } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'

export function limitsContract(open: () => Promise<TestTable>): void {
  let table: TestTable
  let store: Store
  let limits = 0
  beforeAll(async () => {
    table = await open()
    store = createStore(table.table)
  })
  afterAll(() => table.close())

  /** one over time, then a pot, and so on */
  async function newLimit(limit: Amount = money(10)): Promise<LimitRef> {
    const n = limits++
    const ref = n % 2 ? { ...runRef(n), pot: 'research' } : { tenant: `t${n}`, period: '2026-11-30', name: 'team ü#1' }
    expect(await store.putLimit(ref, limit)).toBe('written')
    return ref
  }
  const [A, B] = ['01K74V2QHG0000000000000001', '01K74V2QHG0000000000000002']
  const nothing = (v = 0) => ({ hold: null, v })
  const fresh = (limit: Amount): SharedLimit => ({ limit, avail: limit, spent: ZERO, held: {}, v: 0 })
  const balance = (l: SharedLimit) => sub(l.limit, add(add(l.spent, l.avail), Object.values(l.held).reduce(add, ZERO)))

  test('a limit begins with nothing spent and nothing held, and is made once', async () => {
    const ref = await newLimit()
    expect(await store.putLimit(ref, money(99))).toBe('already')
    expect(await store.getLimit(ref)).toEqual(fresh(money(10)))
    expect(await store.getLimit({ tenant: 'nobody', period: '2026-11', name: 'tenant' })).toBeUndefined()
  })

  test.each(['one', 'another'])('%s hold grows, is settled, and what is left of it is available', async () => {
    const ref = await newLimit()
    const first = { ...fresh(money(10)), avail: money(7), held: { [A]: money(3) } }
    expect(await store.hold(ref, A, nothing(), money(3))).toEqual({ written: true, item: first })
    const grown = { ...first, avail: money(4), held: { [A]: money(6) } }
    expect(await store.hold(ref, A, { hold: money(3), v: 0 }, money(6))).toEqual({ written: true, item: grown })
    const settled = { ...grown, avail: money(8), spent: money(2), held: {}, v: 1 }
    expect(await store.settleHold(ref, A, money(6), money(2))).toEqual({ written: true, item: settled })
    expect(await store.settleHold(ref, A, money(6), money(2))).toEqual({ written: false })
    expect(await store.getLimit(ref)).toEqual(settled)
  })

  test('a hold is refused: more than there is, in money or in tokens; seen otherwise; after a settlement', async () => {
    const ref = await newLimit()
    await store.hold(ref, A, nothing(), money(6))
    const before = await store.getLimit(ref)
    const refused = [
      store.hold(ref, B, nothing(), { ...money(1), usd: money(4).usd + 1n }),
      store.hold(ref, B, nothing(), { ...money(1), tok: money(4).tok + 1n }),
      store.hold(ref, A, nothing(), money(7)),
      store.hold(ref, A, { hold: money(5), v: 0 }, money(7)),
      store.hold(ref, B, { hold: money(6), v: 0 }, money(7)),
      store.hold(ref, B, nothing(1), money(1)),
      store.settleHold(ref, A, money(5), ZERO),
      store.settleHold(ref, B, money(6), ZERO),
      store.settleHold(ref, A, null, ZERO),
      store.moveLimit(ref, money(9), money(99)),
    ]
    expect((await Promise.all(refused)).filter((r) => r.written)).toEqual([])
    expect(await store.getLimit(ref)).toEqual(before)
  })

  test('a late hold of one who was settled is refused, whether or not it had held anything', async () => {
    const ref = await newLimit()
    await store.hold(ref, A, nothing(), money(1))
    await store.settleHold(ref, A, money(1), ZERO)
    expect(await store.hold(ref, A, nothing(), money(1))).toEqual({ written: false })
    expect(await store.settleHold(ref, B, null, ZERO)).toMatchObject({ written: true, item: { v: 2, held: {} } })
    expect(await store.hold(ref, B, nothing(1), money(1))).toEqual({ written: false })
    expect(await store.hold(ref, B, nothing(2), money(1))).toMatchObject({ written: true })
  })

  test('a holder that numbers its writes writes over what it has read alone, and says whether it waits', async () => {
    const ref = await newLimit()
    const first = { ...money(1), seq: 3 }
    await store.hold(ref, A, nothing(), first)
    const second = { ...money(1), seq: 4, waits: true } as const
    const seen = (hold: Hold) => ({ hold, v: 0 })
    expect(await store.hold(ref, A, seen(first), second)).toMatchObject({ item: { held: { [A]: second } } })
    expect(await store.hold(ref, A, seen(first), { ...money(2), seq: 4 })).toEqual({ written: false })
    expect(await store.settleHold(ref, A, first, ZERO)).toEqual({ written: false })
    expect(await store.settleHold(ref, A, second, ZERO)).toMatchObject({ item: { held: {}, avail: money(10) } })
  })

  test('where there is no limit nothing is written', async () => {
    const ref = { tenant: 'nobody', period: '2026-11', name: 'tenant' }
    const writes = [
      store.hold(ref, A, nothing(), money(1)),
      store.hold(ref, A, { hold: money(2), v: 0 }, money(1)),
      store.settleHold(ref, A, money(1), ZERO),
      store.settleHold(ref, A, null, ZERO),
      store.moveLimit(ref, money(1), money(2)),
    ]
    expect((await Promise.all(writes)).filter((w) => w.written)).toEqual([])
    expect(await store.getLimit(ref)).toBeUndefined()
  })

  test('a limit that is lowered below what is held gives no new hold; what is held may still be spent', async () => {
    const ref = await newLimit()
    await store.hold(ref, A, nothing(), money(6))
    expect(await store.moveLimit(ref, money(10), money(5))).toMatchObject({ item: { avail: sub(ZERO, money(1)) } })
    expect(await store.hold(ref, B, nothing(), { usd: 0n, tok: 1n })).toEqual({ written: false })
    expect(await store.hold(ref, A, { hold: money(6), v: 0 }, money(5.5))).toMatchObject({ written: true })
    const { avail, spent } = ((await store.settleHold(ref, A, money(5.5), money(7))) as { item: SharedLimit }).item
    expect([avail, spent]).toEqual([sub(ZERO, money(2)), money(7)])
  })

  test('limits in money alone leave tokens without end', async () => {
    const ref = await newLimit({ usd: money(10).usd, tok: UNLIMITED })
    await store.hold(ref, A, nothing(), { usd: money(10).usd, tok: UNLIMITED / 2n })
    const { item } = (await store.settleHold(ref, A, { usd: money(10).usd, tok: UNLIMITED / 2n }, money(3))) as {
      item: SharedLimit
    }
    expect(item.avail).toEqual({ usd: money(7).usd, tok: UNLIMITED - money(3).tok })
  })

  test('of many at once as many hold as there is money for, and the sums hold', async () => {
    const ref = await newLimit()
    const holders = Array.from({ length: 20 }, (_, n) => `holder-${n}`)
    const done = await Promise.all(holders.map((h) => store.hold(ref, h, nothing(), money(3))))
    expect(done.filter((d) => d.written)).toHaveLength(3)
    const { held } = (await store.getLimit(ref))!
    await Promise.all(Object.keys(held).flatMap((h) => [1, 2].map(() => store.settleHold(ref, h, money(3), money(1)))))
    const after = (await store.getLimit(ref))!
    expect(after).toMatchObject({ avail: money(7), spent: money(3), held: {}, v: 3 })
    expect(balance(after)).toEqual(ZERO)
  })
}
