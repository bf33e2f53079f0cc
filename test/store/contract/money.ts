/** How money moves where it is short: children that are held back, what is given back, and limits that are changed. */
import { expect, test } from 'vitest'
import { add, sub, times, ZERO } from '../../../src/domain/money.ts'
import type { Run } from '../../../src/domain/run.ts'
import { MONEY } from '../../../src/domain/session.ts'
import { aRun, aRunningHeader, books, money, rootRef, row } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { LATER, NOW, nobody, queued, terminal, waiting } from './states.ts'
import { bench, type HeaderCase, headerCases, type RunCase, runCases } from './write-cases.ts'

const lessBy = (amount: { usd: bigint; tok: bigint }) => ({
  usd: { ...amount, usd: amount.usd - 1n },
  tok: { ...amount, tok: amount.tok - 1n },
})
const givesAll = {
  seenGiven: ZERO,
  given: money(1.5),
  avail: money(0.5),
  own: { seen: money(1), to: ZERO, attempt: 1 },
}

const HELD_BACK: HeaderCase[] = [
  {
    name: 'W11 delegate three, of which one is held back for want of money',
    from: { needs: new Set([4]), pending: new Set([4]), next: 5 },
    write: (store, ref) =>
      store.delegate(ref, { round: 1, turn: 0, from: 5, count: 3, share: money(2), funded: 2, needs: [7], now: NOW }),
    becomes: {
      next: 8,
      pending: new Set([4, 5, 6, 7]),
      needs: new Set([4, 7]),
      avail: ZERO,
      deleg: { turn: 0, from: 5, count: 3, share: money(2), funded: 2 },
      updatedAt: NOW,
    },
    refused: { 'it has not the money for the others': { avail: lessBy(money(4)).usd } },
  },
  {
    name: 'W36 a child is held back for want of money',
    from: { pending: new Set([3, 4]), needs: new Set([3]) },
    write: (store, ref) => store.need(ref, 4, 'needs'),
    becomes: { needs: new Set([3, 4]) },
    refused: { 'it has settled': { pending: new Set([3]) }, 'nothing is pending': { pending: new Set() } },
    repeatable: true,
  },
  {
    name: 'W36 somebody below a child waits for money',
    from: { status: 'waiting', pending: new Set([3, 4]) },
    write: (store, ref) => store.need(ref, 4, 'wants'),
    becomes: { wants: new Set([4]) },
    refused: { 'the child has settled': { pending: new Set([3]) } },
    repeatable: true,
  },
  {
    name: 'W18 lend to a child that is held back: it takes a place as well',
    from: { pending: new Set([3, 4]), needs: new Set([3, 4]), next: 5, attempt: 2 },
    write: (store, ref) => store.lend(ref, 4, null, money(4), { avail: money(4), next: 5, attempt: 2 }),
    becomes: { lent: { 4: money(4) }, avail: ZERO, needs: new Set([3]) },
    refused: {
      'it is not held back': { needs: new Set([3]) },
      'it has settled': { pending: new Set([3]) },
      'there is more money than was seen': { avail: { ...money(4), usd: money(4).usd + 1n } },
      'there are more tokens than were seen': { avail: { ...money(4), tok: money(4).tok + 1n } },
      'children were born since': { next: 6 },
      'another driver has come since': { attempt: 3 },
      'it was lent money since': { lent: { 4: money(0.1) } },
    },
  },
  {
    name: 'W18 lend to a child that is held back, of what is there in part',
    from: { pending: new Set([4]), needs: new Set([4]), lent: { 4: money(0.5) } },
    write: (store, ref) => store.lend(ref, 4, money(0.5), money(1), { avail: money(4), next: 0, attempt: 1 }),
    becomes: { lent: { 4: money(1.5) }, avail: money(3), needs: new Set() },
    refused: { 'it was lent more since': { lent: { 4: money(0.6) } } },
  },
]

const BACK: HeaderCase[] = [
  {
    name: 'W37 give back all that is left, for the first time',
    from: {},
    write: (store, ref) => store.giveBack(ref, givesAll),
    becomes: { given: money(1.5), avail: money(3.5), own: ZERO },
    refused: {
      'it has given back already': { given: money(0.1) },
      'its money was raised since': { own: lessBy(money(1)).usd },
      'its tokens were raised since': { own: lessBy(money(1)).tok },
      'it has not so much money to give': { avail: lessBy(money(0.5)).usd },
      'it has not so many tokens to give': { avail: lessBy(money(0.5)).tok },
      'another driver has claimed it': { attempt: 2 },
      'it waits': { status: 'waiting' },
      ...terminal,
    },
  },
  {
    name: 'W37 give back more, of its own alone',
    from: { given: money(0.5), own: money(2), avail: ZERO },
    write: (store, ref) =>
      store.giveBack(ref, {
        seenGiven: money(0.5),
        given: money(1.75),
        avail: ZERO,
        own: { seen: money(2), to: money(0.75), attempt: 1 },
      }),
    becomes: { given: money(1.75), own: money(0.75) },
    refused: {
      'it has given back more money since': { given: { ...money(0.5), usd: money(0.6).usd } },
      'it has given back more tokens since': { given: { ...money(0.5), tok: money(0.6).tok } },
      'it has given back nothing': { given: ZERO },
    },
  },
  {
    name: 'W37 anybody brings up what a resting session may still give',
    from: { ...waiting, asks: new Set([MONEY]), given: money(0.5) },
    write: (store, ref) =>
      store.giveBack(ref, { seenGiven: money(0.5), given: money(4.5), avail: money(4), own: null }),
    becomes: { given: money(4.5), avail: ZERO },
    refused: {
      'it was done already': { given: money(4.5) },
      'it has not so much money': { avail: lessBy(money(4)).usd },
      'it has not so many tokens': { avail: lessBy(money(4)).tok },
      ...terminal,
    },
  },
  {
    name: 'W37 a child that was never claimed gives all it has back, and nobody claims it as it was',
    from: queued,
    write: (store, ref) =>
      store.giveBack(ref, {
        seenGiven: ZERO,
        given: money(5),
        avail: money(4),
        own: { seen: money(1), to: ZERO, attempt: 0 },
      }),
    becomes: { given: money(5), avail: ZERO, own: ZERO, attempt: 1 },
    refused: {
      'it was claimed since': { status: 'running', attempt: 1 },
      'it was claimed and released since': { attempt: 1 },
      'it was asked for more since': { own: money(2) },
      ...terminal,
    },
  },
  {
    name: 'W38 take in what a child has given back, for the first time, and hold it back',
    from: { pending: new Set([3, 4]), returned: { 3: money(0.1) } },
    write: (store, ref) => store.takeBack(ref, 4, null, money(0.5), true),
    becomes: { returned: { 3: money(0.1), 4: money(0.5) }, avail: money(4.5), needs: new Set([4]) },
    refused: {
      'it was taken in already': { returned: { 4: money(0.5) } },
      'the child has settled': { pending: new Set([3]) },
    },
  },
  {
    name: 'W38 take in what a child has given back beyond that',
    from: { ...waiting, pending: new Set([4]), returned: { 4: money(0.5) } },
    write: (store, ref) => store.takeBack(ref, 4, money(0.5), money(0.75), false),
    becomes: { returned: { 4: money(0.75) }, avail: money(4.25) },
    refused: {
      'it was taken in already': { returned: { 4: money(0.75) } },
      'the money was taken in already': { returned: { 4: { ...money(0.5), usd: money(0.75).usd } } },
      'the tokens were taken in already': { returned: { 4: { ...money(0.5), tok: money(0.75).tok } } },
      'nothing was taken in before': { returned: {} },
      'the child has settled': { pending: new Set() },
    },
  },
  {
    name: 'W16 settle a child that was held back and has given money back',
    from: {
      pending: new Set([3, 4]),
      needs: new Set([3, 4]),
      wants: new Set([4]),
      lent: { 4: money(0.5) },
      returned: { 3: money(0.1), 4: money(0.3) },
    },
    write: (store, ref) =>
      store.settle(
        ref,
        {
          ordinal: 4,
          books: books(1),
          sessions: 1,
          lent: money(0.5),
          returned: money(0.3),
          back: money(0.2),
          seen: null,
        },
        NOW,
      ),
    becomes: {
      pending: new Set([3]),
      needs: new Set([3]),
      wants: new Set(),
      lent: {},
      returned: { 3: money(0.1) },
      avail: money(4.2),
      kids: books(1),
      kidsSessions: 1,
      settled: 1,
      v: 1,
      updatedAt: NOW,
    },
    refused: {
      'more of it was taken in since': { returned: { 4: money(0.4) } },
      'nothing of it was taken in': { returned: {} },
      'it was lent more since': { lent: { 4: money(0.6) } },
    },
  },
]

const WAITS: HeaderCase[] = [
  {
    name: 'W12 lie down for want of money',
    from: { asks: new Set(['a1']) },
    write: (store, ref) =>
      store.suspend(ref, 1, { on: 'money', wakeAt: LATER, rows: [row(1)], closed: false, now: NOW }),
    becomes: {
      ...waiting,
      asks: new Set(['a1', MONEY]),
      wakeAt: LATER,
      waits: 1,
      rows: [row(1)],
      updatedAt: NOW,
    },
    refused: {
      'it was asked to stop': { stop: 'cancelled' },
      'another driver has claimed it': { attempt: 2 },
      'it waits already': { status: 'waiting' },
      ...terminal,
    },
  },
  {
    name: 'W40 end a wait for money',
    from: { ...waiting, asks: new Set(['a1', MONEY]), wakeAt: LATER },
    write: (store, ref) => store.unask(ref, NOW),
    becomes: { asks: new Set(['a1']), updatedAt: NOW },
    refused: {
      'it does not wait for money': { asks: new Set(['a1']) },
      'it waits for nothing that is asked': { asks: new Set() },
      'it runs': { status: 'running' },
      ...terminal,
    },
  },
]

const ROOT: HeaderCase[] = [
  {
    name: 'W39 take in a limit that was raised',
    from: { limitSeq: 1, ...terminal['it is failed'], ...nobody },
    write: (store, ref) => store.takeLimit(ref, 1, { seq: 3, limit: money(9), more: money(4), now: NOW }),
    becomes: { limitSeq: 3, share: money(9), avail: money(8), updatedAt: NOW },
    refused: { 'it was taken in already': { limitSeq: 3 }, 'an earlier change is missing': { limitSeq: 0 } },
  },
  {
    name: 'W39 take in a limit that was lowered: what may be given away goes below zero',
    from: {},
    write: (store, ref) => store.takeLimit(ref, 0, { seq: 1, limit: money(0.5), more: money(-4.5), now: NOW }),
    becomes: { limitSeq: 1, share: money(0.5), avail: money(-0.5), updatedAt: NOW },
    refused: { 'it was taken in already': { limitSeq: 1 } },
  },
]

const outOfMoney: Partial<Run> = {
  status: 'waiting',
  stopReason: 'budget',
  error: { code: 'budget', message: 'The budget does not cover the next model call.' },
  dueAt: LATER,
  limitSeq: 2,
}
/** far ahead: a run whose time is over is not found */
const EXPIRES = 4_000_000_000
const raise = (run: Partial<Run>, resume: { dueAt: number } | null): RunCase['write'] => {
  const { limit, limitSeq, status, round, inputRound } = { ...aRun(), ...run }
  const to = { seen: { limit, limitSeq, status, round, inputRound }, limit: money(9), resume, now: NOW }
  return (store, ref) => store.changeLimit(ref, to)
}

const LIMITS: RunCase[] = [
  {
    name: 'W41 change the limit of a run that goes on',
    from: {},
    write: raise({}, null),
    becomes: { limit: money(9), limitSeq: 1, budgetSeq: 1, updatedAt: NOW },
    refused: {
      'another has changed it since': { limitSeq: 1 },
      'it waits by now': { status: 'waiting' },
      'it has ended': { status: 'completed' },
      'it is in its next round': { round: 2 },
    },
  },
  {
    name: 'W41 raise the limit of a run that waits for it: it goes on in a round without an input of its own',
    from: outOfMoney,
    write: raise(outOfMoney, { dueAt: NOW + 1 }),
    becomes: {
      status: 'running',
      stopReason: null,
      error: null,
      round: 2,
      inputRound: 1,
      limit: money(9),
      limitSeq: 3,
      budgetSeq: 1,
      dueAt: NOW + 1,
      updatedAt: NOW,
    },
    refused: {
      'another has changed it since': { limitSeq: 3 },
      'it goes on already': { status: 'running' },
      'it was cancelled': { status: 'cancelled' },
      'it has gone on since': { round: 2 },
    },
  },
  {
    name: 'W42 fail a run that waited for its budget for too long, where runs are not kept for ever',
    from: outOfMoney,
    write: (store, ref) => store.failWaiting(ref, 1, { now: NOW, expiresAt: EXPIRES }),
    becomes: { status: 'failed', finishedAt: NOW, updatedAt: NOW, expiresAt: EXPIRES, dueAt: EXPIRES * 1000 },
    refused: { 'it goes on': { status: 'running' } },
  },
  {
    name: 'W42 fail a run that waited for its budget for too long',
    from: outOfMoney,
    write: (store, ref) => store.failWaiting(ref, 1, { now: NOW }),
    becomes: { status: 'failed', finishedAt: NOW, updatedAt: NOW, dueAt: null },
    refused: {
      'it goes on': { status: 'running' },
      'it was cancelled': { status: 'cancelled' },
      'it waits in a later round': { round: 2 },
    },
  },
]

export function moneyContract(open: () => Promise<TestTable>): void {
  const at = bench(open)
  headerCases(at, [...HELD_BACK, ...BACK, ...WAITS, ...ROOT])
  runCases(at, LIMITS)

  test('of fifty that want the last place and the last money, one has both', async () => {
    const ref = rootRef(at.newRun())
    const held = Array.from({ length: 50 }, (_, i) => i)
    await at.store.putHeader(aRunningHeader({ ...ref, next: 50, pending: new Set(held), needs: new Set(held) }))
    const seen = { avail: money(4), next: 50, attempt: 1 }
    const lent = await Promise.all(held.map((o) => at.store.lend(ref, o, null, money(0.5), seen)))
    expect(lent.filter((w) => w.written)).toHaveLength(1)
    const header = await at.store.getHeader(ref)
    expect([header?.avail, header?.needs.size]).toEqual([money(3.5), 49])
  })

  test('a wake and a claim by time at once: whoever comes second finds the wait over', async () => {
    for (let i = 0; i < 20; i++) {
      const ref = rootRef(at.newRun())
      await at.store.putHeader(aRunningHeader({ ...ref, ...waiting, asks: new Set([MONEY]), wakeAt: NOW - 1 }))
      const claim = { seenAttempt: 1, driver: 'next', now: NOW, lease: LATER, first: null }
      const [, claimed] = await Promise.all([at.store.unask(ref, NOW), at.store.claim(ref, claim)])
      expect(claimed.written).toBe(true)
      expect(await at.store.getHeader(ref)).toMatchObject({ status: 'running', asks: new Set(), wakeAt: null })
    }
  })

  test('what a child gives back step by step reaches its parent once, however it is repeated and raced for', async () => {
    const run = at.newRun()
    const [parent, child] = [rootRef(run), { ...rootRef(run), sessionId: 'c'.repeat(20) }]
    await at.store.putHeader(aRunningHeader({ ...parent, pending: new Set([4]), avail: ZERO }))
    await at.store.putHeader(aRunningHeader({ ...child, parentId: parent.sessionId, ordinal: 4, avail: money(3) }))
    for (let step = 0; step < 6; step++) {
      const h = (await at.store.getHeader(child))!
      const back = { seenGiven: h.given, given: add(h.given, money(0.5)), avail: money(0.5), own: null }
      const given = await Promise.all(Array.from({ length: 5 }, () => at.store.giveBack(child, back)))
      expect(given.filter((w) => w.written)).toHaveLength(1)
      const returned = (await at.store.getHeader(parent))!.returned[4] ?? null
      const taken = await Promise.all(
        Array.from({ length: 5 }, () => at.store.takeBack(parent, 4, returned, back.given, false)),
      )
      expect(taken.filter((w) => w.written)).toHaveLength(1)
    }
    const [p, c] = [(await at.store.getHeader(parent))!, (await at.store.getHeader(child))!]
    expect([p.avail, p.returned, c.given, c.avail]).toEqual([money(3), { 4: money(3) }, money(3), ZERO])
  })

  test('two that raise the limit of a waiting run at once: one is written, and the money comes in once', async () => {
    const run = at.newRun()
    await at.store.createRun(aRun({ ...run, ...outOfMoney }))
    await at.store.putHeader(aRunningHeader({ ...rootRef(run), status: 'failed', limitSeq: 2 }))
    const write = raise(outOfMoney, { dueAt: NOW })
    const raised = await Promise.all([write(at.store, run), write(at.store, run)])
    expect(raised.filter((w) => w.written)).toHaveLength(1)
    const more = sub(money(9), money(5))
    const taken = await Promise.all(
      Array.from({ length: 5 }, () => at.store.takeLimit(rootRef(run), 2, { seq: 3, limit: money(9), more, now: NOW })),
    )
    expect(taken.filter((w) => w.written)).toHaveLength(1)
    expect((await at.store.getHeader(rootRef(run)))?.avail).toEqual(times(money(4), 2))
  })
}
