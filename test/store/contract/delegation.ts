import { describe, expect, test } from 'vitest'
import { add, sub, times, ZERO } from '../../../src/domain/money.ts'
import { addBooks } from '../../../src/domain/usage.ts'
import type { Settlement } from '../../../src/ports.ts'
import { aRunningHeader, books, money, rootRef, row, T0, totals } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { bench, type HeaderCase, headerCases } from './write-cases.ts'

const NOW = T0 + 5_000
const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i)

const settlement = (of: Partial<Settlement> = {}): Settlement => ({
  ordinal: 4,
  books: books(2),
  sessions: 1,
  lent: null,
  back: money(0.4),
  seen: null,
  ...of,
})

const DELEGATION: HeaderCase[] = [
  {
    name: 'W11 delegate three, of which two are funded',
    from: { next: 5, pending: new Set([4]), deleg: { turn: 2, from: 3, count: 2, share: money(0.1), funded: 2 } },
    write: (store, ref) =>
      store.delegate(ref, { round: 1, turn: 3, from: 5, count: 3, share: money(2), funded: 2, now: NOW }),
    becomes: {
      next: 8,
      pending: new Set([4, 5, 6, 7]),
      avail: ZERO,
      deleg: { turn: 3, from: 5, count: 3, share: money(2), funded: 2 },
      updatedAt: NOW,
    },
    refused: {
      'the watermark has moved': { next: 6 },
      'this answer was delegated already, and its children have settled': {
        pending: new Set(),
        deleg: { turn: 3, from: 5, count: 0, share: ZERO, funded: 0 },
      },
      'a later answer was delegated': { deleg: { turn: 4, from: 5, count: 0, share: ZERO, funded: 0 } },
      'it has not the money': { avail: { ...money(4), usd: money(4).usd - 1n } },
      'it has not the tokens': { avail: { ...money(4), tok: money(4).tok - 1n } },
      'it does not run': { status: 'waiting' },
      'it is in its next round': { round: 2 },
      'it was asked to stop': { stop: 'cancelled' },
      'it is completed': { status: 'completed' },
    },
  },
  {
    name: 'W11 refuse all of an answer',
    from: { avail: ZERO },
    write: (store, ref) =>
      store.delegate(ref, { round: 1, turn: 0, from: 0, count: 0, share: ZERO, funded: 0, now: NOW }),
    becomes: { deleg: { turn: 0, from: 0, count: 0, share: ZERO, funded: 0 }, updatedAt: NOW },
    refused: { 'this answer was decided already': { deleg: { turn: 0, from: 0, count: 0, share: ZERO, funded: 0 } } },
  },
  {
    name: 'W16 settle',
    from: { pending: new Set([3, 4]), waitingOn: new Set([3, 4]), kids: books(1), kidsSessions: 2, settled: 3, v: 8 },
    write: (store, ref) => store.settle(ref, settlement(), NOW),
    becomes: {
      pending: new Set([3]),
      waitingOn: new Set([3]),
      kids: books(3),
      kidsSessions: 3,
      avail: money(4.4),
      settled: 4,
      v: 9,
      updatedAt: NOW,
    },
    refused: {
      'it has settled already': { pending: new Set([3]) },
      'nothing is pending': { pending: new Set(), waitingOn: new Set() },
      'it was lent money since the read': { lent: { 4: money(0.1) } },
    },
  },
  {
    name: 'W16 settle the last one, with a loan and an unknown call',
    from: { status: 'waiting', pending: new Set([4]), waitAll: true, lent: { 4: money(0.2), 7: money(0.1) } },
    write: (store, ref) =>
      store.settle(
        ref,
        settlement({ books: books(1, 2), sessions: 6, lent: money(0.2), seen: { v: 5, books: books(1, 2) } }),
        NOW,
      ),
    becomes: {
      pending: new Set(),
      lent: { 7: money(0.1) },
      kids: books(1, 2),
      kidsSessions: 6,
      avail: money(4.4),
      settled: 1,
      v: 1,
      seen: { 4: { v: 5, books: books(1, 2) } },
      updatedAt: NOW,
    },
    refused: {
      'it was lent more since the read': { lent: { 4: money(0.3) } },
      'it was lent more tokens since the read': { lent: { 4: { ...money(0.2), tok: 1n } } },
      'it was lent more money since the read': { lent: { 4: { ...money(0.2), usd: 1n } } },
      'it was lent nothing': { lent: {} },
      'it has settled already': { pending: new Set([5]) },
    },
  },
  {
    name: 'W16 settle at a loss: what is available may go below zero',
    from: { status: 'completed', pending: new Set([4]), avail: money(0.1) },
    write: (store, ref) => store.settle(ref, settlement({ books: {}, back: money(-0.5) }), NOW),
    becomes: { pending: new Set(), avail: money(-0.4), kidsSessions: 1, settled: 1, v: 1, updatedAt: NOW },
    refused: { 'it has settled already': { pending: new Set() } },
  },
  {
    name: 'W18 lend for the first time',
    from: { pending: new Set([4]), lent: { 7: money(0.1) } },
    write: (store, ref) => store.lend(ref, 4, null, money(4)),
    becomes: { lent: { 4: money(4), 7: money(0.1) }, avail: ZERO },
    refused: {
      'it has settled': { pending: new Set([5]) },
      'it has not the money': { avail: { ...money(4), usd: money(4).usd - 1n } },
      'it has not the tokens': { avail: { ...money(4), tok: money(4).tok - 1n } },
      'it was lent money since the read': { lent: { 4: money(0.1) } },
    },
  },
  {
    name: 'W18 lend more',
    from: { pending: new Set([4]), lent: { 4: money(0.5) } },
    write: (store, ref) => store.lend(ref, 4, money(0.5), money(0.25)),
    becomes: { lent: { 4: money(0.75) }, avail: money(3.75) },
    refused: {
      'it has settled': { pending: new Set() },
      'it was lent more since the read': { lent: { 4: money(0.6) } },
      'it was lent nothing': { lent: {} },
    },
  },
  {
    name: 'W19 take a loan into own',
    from: { status: 'waiting', taken: money(0.1) },
    write: (store, ref) => store.takeLoan(ref, money(0.1), money(0.35), 'own'),
    becomes: { own: money(1.25), taken: money(0.35) },
    refused: {
      'it was taken already': { taken: money(0.35) },
      'tokens were taken already': { taken: { ...money(0.1), tok: 0n } },
      'money was taken already': { taken: { ...money(0.1), usd: 0n } },
      'it is completed': { status: 'completed' },
      'it is failed': { status: 'failed' },
      'it is cancelled': { status: 'cancelled' },
    },
  },
  {
    name: 'W19 take a loan into what may be given away',
    from: {},
    write: (store, ref) => store.takeLoan(ref, ZERO, money(0.5), 'avail'),
    becomes: { avail: money(4.5), taken: money(0.5) },
    refused: { 'it was taken already': { taken: money(0.5) }, 'it has ended': { status: 'failed' } },
  },
  {
    name: 'W20 raise own',
    from: {},
    write: (store, ref) => store.raiseOwn(ref, money(1), money(4)),
    becomes: { own: money(5), avail: ZERO },
    refused: {
      'it was raised already': { own: money(2) },
      'its money was raised already': { own: { ...money(1), usd: 0n } },
      'its tokens were raised already': { own: { ...money(1), tok: 0n } },
      'it has not the money': { avail: { ...money(4), usd: money(4).usd - 1n } },
      'it has not the tokens': { avail: { ...money(4), tok: money(4).tok - 1n } },
      'it does not run': { status: 'queued' },
    },
  },
]

const CORRECTIONS: HeaderCase[] = [
  {
    name: 'W21 correct own totals',
    from: {
      status: 'failed',
      v: 3,
      unknowns: { 2: money(0.5), 12: money(0.5) },
      rows: [row(2, { outcome: 'unknown' })],
    },
    write: (store, ref) => store.correctOwn(ref, 3, 2, [row(1), row(1, { outcome: 'unknown' })], NOW),
    becomes: { v: 4, unknowns: { 12: money(0.5) }, rows: [row(1), row(1, { outcome: 'unknown' })], updatedAt: NOW },
    refused: {
      'it is known already': { unknowns: { 12: money(0.5) } },
      'another call was corrected since the read': { v: 4 },
    },
  },
  {
    name: 'W22 correct the parent',
    from: { seen: { 4: { v: 2, books: books(1, 1) }, 5: { v: 2, books: books(0, 1) } }, kids: books(3, 2), v: 8 },
    write: (store, ref) =>
      store.correctParent(ref, 4, 2, {
        seen: { v: 6, books: { accepted: totals(1), duplicate: totals(1) } },
        difference: { unknown: totals(-1), duplicate: totals(1) },
        back: money(0.25),
        now: NOW,
      }),
    becomes: {
      seen: { 4: { v: 6, books: { accepted: totals(1), duplicate: totals(1) } }, 5: { v: 2, books: books(0, 1) } },
      kids: { ...books(3, 1), duplicate: totals(1) },
      avail: money(4.25),
      v: 9,
      updatedAt: NOW,
    },
    refused: {
      'another has taken it over': { seen: { 4: { v: 6, books: books(1) } } },
      'that child is not remembered': { seen: { 5: { v: 2, books: books(0, 1) } } },
    },
  },
]

export function delegationContract(open: () => Promise<TestTable>): void {
  const at = bench(open)
  headerCases(at, DELEGATION)
  headerCases(at, CORRECTIONS)

  const put = async (of: Parameters<typeof aRunningHeader>[0]) => {
    const ref = rootRef(at.newRun())
    await at.store.putHeader(aRunningHeader({ ...ref, ...of }))
    return ref
  }

  describe('many writers at once', () => {
    test('fifty children settle at once, and the parent has the sum of them all', async () => {
      const ref = await put({ pending: new Set(range(0, 50)), waitAll: true, status: 'waiting', avail: ZERO })
      const each = range(0, 50).map((ordinal) =>
        settlement({ ordinal, books: books(ordinal % 3, 1), back: money(0.1) }),
      )
      const twice = [...each, ...each]
      const written = await Promise.all(twice.map((s) => at.store.settle(ref, s, NOW)))
      expect(written.filter((w) => w.written)).toHaveLength(50)
      expect(await at.store.getHeader(ref)).toMatchObject({
        pending: new Set(),
        settled: 50,
        v: 50,
        kidsSessions: 50,
        avail: times(money(0.1), 50),
        kids: each.map((s) => s.books).reduce(addBooks),
      })
    })

    test('fifty loans of one dollar from twenty: twenty are given, and none is left', async () => {
      const ref = await put({ pending: new Set(range(0, 50)), avail: money(20) })
      const written = await Promise.all(range(0, 50).map((ordinal) => at.store.lend(ref, ordinal, null, money(1))))
      expect(written.filter((w) => w.written)).toHaveLength(20)
      const header = await at.store.getHeader(ref)
      expect(header?.avail).toEqual(ZERO)
      expect(Object.values(header!.lent).reduce(add)).toEqual(money(20))
    })

    test('F1: ten holds of 0.30 from 1.00, at most three are given', async () => {
      const ref = await put({ pending: new Set(range(0, 10)), avail: money(1) })
      const written = await Promise.all(range(0, 10).map((ordinal) => at.store.lend(ref, ordinal, null, money(0.3))))
      expect(written.filter((w) => w.written)).toHaveLength(3)
      expect((await at.store.getHeader(ref))?.avail).toEqual(sub(money(1), money(0.9)))
    })

    test('a loan and the settlement of the same child at once: the money is in one place', async () => {
      for (let i = 0; i < 20; i++) {
        const ref = await put({ pending: new Set([4]), avail: money(1) })
        const [lent, settled] = await Promise.all([
          at.store.lend(ref, 4, null, money(0.5)),
          at.store.settle(ref, settlement({ back: ZERO }), NOW),
        ])
        expect([lent.written, settled.written].filter(Boolean)).toHaveLength(1)
        const header = await at.store.getHeader(ref)
        expect(header?.avail).toEqual(lent.written ? money(0.5) : money(1))
        expect(header?.lent).toEqual(lent.written ? { 4: money(0.5) } : {})
      }
    })

    test('a suspension and the last settlement at once: nobody lies down for ever', async () => {
      for (let i = 0; i < 20; i++) {
        const ref = await put({ pending: new Set([4]) })
        const until = { on: 'all', wakeAt: null, rows: [], closed: false, now: NOW } as const
        const [, settled] = await Promise.all([
          at.store.suspend(ref, 1, until),
          at.store.settle(ref, settlement(), NOW),
        ])
        expect(settled.written).toBe(true)
        const header = await at.store.getHeader(ref)
        const claim = { seenAttempt: 1, driver: 'next', now: NOW, lease: NOW, first: null }
        expect((await at.store.claim(ref, claim)).written).toBe(header?.status === 'waiting')
      }
    })

    test('corrections of two calls at once: one is written, and the other sees what it did', async () => {
      const unknowns = { 1: money(0.1), 2: money(0.1) }
      const ref = await put({ status: 'failed', unknowns, rows: [row(2, { outcome: 'unknown' })] })
      const one = [row(1), row(1, { outcome: 'unknown' })]
      const written = await Promise.all([1, 2].map((n) => at.store.correctOwn(ref, 0, n, one, NOW)))
      expect(written.filter((w) => w.written)).toHaveLength(1)
      const header = await at.store.getHeader(ref)
      const [left] = Object.keys(header!.unknowns)
      const second = await at.store.correctOwn(ref, header!.v, Number(left), [row(2)], NOW)
      expect(second).toMatchObject({ written: true, item: { v: 2, unknowns: {}, rows: [row(2)] } })
    })
  })

  test('waiting for some ends with the last of them, while others are pending', async () => {
    const ref = await put({ pending: new Set([3, 4, 5]) })
    await at.store.suspend(ref, 1, {
      on: { ordinals: [4], settled: 0 },
      wakeAt: null,
      rows: [],
      closed: false,
      now: NOW,
    })
    const claim = { seenAttempt: 1, driver: 'next', now: NOW, lease: NOW, first: null }
    await at.store.settle(ref, settlement({ ordinal: 3 }), NOW)
    expect((await at.store.claim(ref, claim)).written).toBe(false)
    await at.store.settle(ref, settlement({ ordinal: 4 }), NOW)
    expect(await at.store.claim(ref, claim)).toMatchObject({ written: true, item: { pending: new Set([5]) } })
  })

  test('B31: ten thousand calls of a millionth of a dollar are a cent', async () => {
    const ref = await put({ pending: new Set(range(0, 100)) })
    const micro = { ...totals(100), cost: 100n * 1_000_000n }
    for (const ordinal of range(0, 100))
      await at.store.settle(ref, settlement({ ordinal, books: { accepted: micro } }), NOW)
    expect((await at.store.getHeader(ref))?.kids.accepted).toMatchObject({ calls: 10_000, cost: 10_000_000_000n })
  })
}
