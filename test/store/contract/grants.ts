import { expect, test } from 'vitest'
import { UNLIMITED, ZERO } from '../../../src/domain/money.ts'
import type { Run } from '../../../src/domain/run.ts'
import type { SessionHeader } from '../../../src/domain/session.ts'
import { aRun, books, money, T0 } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { bench, type HeaderCase, headerCases, type RunCase, runCases } from './write-cases.ts'

const NOW = T0 + 5_000
const seen = { limitSeq: 3, status: 'running', round: 2 } as const
const granted = { usd: money(1).usd, tok: UNLIMITED }
const grants: Run['grants'] = [
  { period: '2026-11-30', name: 'tenant', from: ZERO, hold: money(1) },
  { period: '2026-12', name: 'tag ["customer","ä#1"]', from: money(0.5), hold: money(0.5) },
]
const short = { need: money(0.3), resumeAt: T0 + 99 }
const from: Partial<Run> = { ...seen, granted: ZERO }
const elsewhere: RunCase['refused'] = {
  'the limit was changed': { limitSeq: 4 },
  'it has ended': { status: 'completed' },
  'it is in another round': { round: 3 },
}

const RUNS: RunCase[] = [
  {
    name: 'W26b note and grant',
    from,
    write: (store, ref) => store.moveGrants(ref, seen, { granted, grants, short, due: { at: NOW + 1 }, now: NOW }),
    becomes: { granted, grants, short, limitSeq: 4, dueAt: NOW + 1, updatedAt: NOW },
    refused: elsewhere,
  },
  {
    name: 'W26b nothing is held any more',
    from: { ...from, grants, short },
    write: (store, ref) => store.moveGrants(ref, seen, { granted, grants: [], due: { at: null }, now: NOW }),
    becomes: { granted, grants: [], limitSeq: 4, dueAt: null, updatedAt: NOW },
    refused: elsewhere,
  },
  {
    name: 'W17 under limits outside of the run',
    from: { limitSeq: 3 },
    write: (store, ref) =>
      store.finishRun(ref, {
        round: 1,
        status: 'completed',
        stopReason: 'end_turn',
        error: null,
        books: books(1),
        sessions: 1,
        v: 2,
        reportedAt: NOW,
        dueAt: null,
        seenLimitSeq: 3,
        now: NOW,
      }),
    becomes: {
      status: 'completed',
      stopReason: 'end_turn',
      books: books(1),
      sessions: 1,
      v: 2,
      reportedAt: NOW,
      dueAt: null,
      finishedAt: NOW,
      updatedAt: NOW,
    },
    refused: { 'something else is held by now': { limitSeq: 4 } },
  },
]

const ended: Partial<SessionHeader> = { status: 'completed', own: money(2), avail: money(3) }
const HEADERS: HeaderCase[] = [
  ...(['completed', 'failed', 'cancelled'] as const).map(
    (status): HeaderCase => ({
      name: `W26c a ${status} root gives up what it has not spent`,
      from: { ...ended, status, given: money(1) },
      write: (store, ref) =>
        store.giveUp(ref, {
          seenGiven: money(1),
          given: money(5),
          seenOwn: money(2),
          own: money(0.5),
          avail: money(2.5),
        }),
      becomes: { given: money(5), own: money(0.5), avail: money(0.5) },
      refused: {
        'it has given up more': { given: money(2) },
        'it owns something else': { own: money(1) },
        'it is in its next round': { status: 'queued' },
        'it runs': { status: 'running' },
      },
    }),
  ),
  {
    name: 'W26c the first time',
    from: ended,
    write: (store, ref) =>
      store.giveUp(ref, { seenGiven: ZERO, given: money(1), seenOwn: money(2), own: money(2), avail: money(1) }),
    becomes: { given: money(1), avail: money(2) },
    refused: { 'it has given up something': { given: money(1) }, 'it waits': { status: 'waiting' } },
  },
]

export function grantsContract(open: () => Promise<TestTable>): void {
  const at = bench(open)
  runCases(at, RUNS)
  headerCases(at, HEADERS)

  test.each([
    [
      'a new round by an input',
      { status: 'completed', round: 1 },
      (ref: Run) => at.store.openRound(ref, { seenRound: 1, inputRef: 'x', dueAt: T0, now: NOW }),
    ],
    [
      'a new round of one that waits',
      { status: 'waiting', round: 1 },
      (ref: Run) => at.store.changeLimit(ref, { seen: ref, limit: money(9), resume: { dueAt: T0 }, now: NOW }),
    ],
  ] as const)('%s opens only when nothing is held any more, and forgets why it had stopped', async (_, state, open) => {
    const held = aRun({ ...at.newRun(), ...state, grants, short })
    await at.store.createRun(held)
    expect(await open(held)).toEqual({ written: false })
    const free = aRun({ ...at.newRun(), ...state, short })
    await at.store.createRun(free)
    expect(await open(free)).toMatchObject({ written: true, item: { status: 'running', round: 2, short: null } })
  })
}
