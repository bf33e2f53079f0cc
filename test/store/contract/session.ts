import { describe, expect, test } from 'vitest'
import { aHeader, anIntent, books, DRIVER, money, rootRef, row, T0, totals } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { LATER, NOW, nobody, queued, terminal, waiting } from './states.ts'
import { bench, type HeaderCase, headerCases } from './write-cases.ts'

const rows = [row(2), row(1, { outcome: 'failed', agent: 'root' })]
const failed = { code: 'model', message: 'the model said no' }

const DRIVING: HeaderCase[] = [
  {
    name: 'W4 release',
    from: { continuations: 2 },
    write: (store, ref) => store.release(ref, 1, { continues: true, now: NOW }),
    becomes: { status: 'queued', continuations: 3, ...nobody, updatedAt: NOW },
    refused: { 'somebody has claimed it since': { attempt: 2 }, 'it is queued': { status: 'queued' }, ...terminal },
  },
  {
    name: 'W4 release by a driver that failed, which is no continuation',
    from: { continuations: 2 },
    write: (store, ref) => store.release(ref, 1, { continues: false, now: NOW }),
    becomes: { status: 'queued', ...nobody, updatedAt: NOW },
    refused: { 'somebody has claimed it since': { attempt: 2 }, 'it is queued': { status: 'queued' }, ...terminal },
  },
  {
    name: 'W4b heartbeat',
    from: {},
    write: (store, ref) => store.heartbeat(ref, 1, { lease: LATER, rows, now: NOW }),
    becomes: { lease: LATER, rows, updatedAt: NOW },
    refused: { 'somebody has claimed it since': { attempt: 2 }, 'it waits': { status: 'waiting' }, ...terminal },
    repeatable: true,
  },
  {
    name: 'W12 suspend until all have settled',
    from: { pending: new Set([3, 4]) },
    write: (store, ref) => store.suspend(ref, 1, { on: 'all', wakeAt: null, rows, closed: false, now: NOW }),
    becomes: { ...waiting, waits: 1, waitAll: true, rows, updatedAt: NOW },
    refused: {
      'nothing is pending any more': { pending: new Set() },
      'it was asked to stop': { stop: 'cancelled' },
      'somebody has claimed it since': { attempt: 2 },
      'it is queued': { status: 'queued' },
      ...terminal,
    },
  },
  {
    name: 'W12 suspend until some have settled, or until a time',
    from: { pending: new Set([3, 4, 5]), settled: 2 },
    write: (store, ref) =>
      store.suspend(ref, 1, {
        on: { ordinals: [3, 5], settled: 2 },
        wakeAt: LATER,
        rows,
        closed: false,
        now: NOW,
      }),
    becomes: { ...waiting, waits: 1, waitingOn: new Set([3, 5]), wakeAt: LATER, rows, updatedAt: NOW },
    refused: {
      'one has settled since it was read': { settled: 3 },
      'it was asked to stop': { stop: 'cancelled' },
      'somebody has claimed it since': { attempt: 2 },
      'it is queued': { status: 'queued' },
      ...terminal,
    },
  },
  {
    name: 'W12 suspend until a time, whatever is pending',
    from: { pending: new Set([3]), settled: 2 },
    write: (store, ref) => store.suspend(ref, 1, { on: 'time', wakeAt: LATER, rows, closed: false, now: NOW }),
    becomes: { ...waiting, waits: 1, asks: new Set(['timer']), wakeAt: LATER, rows, updatedAt: NOW },
    refused: {
      'it was asked to stop': { stop: 'cancelled' },
      'somebody has claimed it since': { attempt: 2 },
      'it is queued': { status: 'queued' },
      ...terminal,
    },
  },
  {
    name: 'W12 suspend until approvals are decided',
    from: { pending: new Set([3]), settled: 2 },
    write: (store, ref) =>
      store.suspend(ref, 1, { on: { asks: ['4#0', '4#2'] }, wakeAt: LATER, rows, closed: false, now: NOW }),
    becomes: { ...waiting, waits: 1, asks: new Set(['4#0', '4#2']), wakeAt: LATER, rows, updatedAt: NOW },
    refused: {
      'it was asked to stop': { stop: 'cancelled' },
      'somebody has claimed it since': { attempt: 2 },
      'it is queued': { status: 'queued' },
      ...terminal,
    },
  },
  {
    name: 'W12 suspend with a closed log, stopped or not',
    from: { pending: new Set([3]), stop: 'cancelled' },
    write: (store, ref) => store.suspend(ref, 1, { on: 'all', wakeAt: null, rows, closed: true, now: NOW }),
    becomes: { ...waiting, waits: 1, waitAll: true, rows, updatedAt: NOW },
    refused: { 'nothing is pending any more': { pending: new Set() }, 'somebody has claimed it since': { attempt: 2 } },
  },
  {
    name: 'W40 a wait for money is over',
    from: { ...waiting, asks: new Set(['money']), wakeAt: LATER },
    write: (store, ref) => store.unask(ref, NOW),
    becomes: { asks: new Set(), updatedAt: NOW },
    refused: { 'it waits for something else': { asks: new Set(['4#0']) }, 'it is queued': { status: 'queued' } },
  },
  {
    name: 'W40 an approval is decided',
    from: { ...waiting, asks: new Set(['4#0', '4#2']), wakeAt: LATER },
    write: (store, ref) => store.unask(ref, NOW, '4#2'),
    becomes: { asks: new Set(['4#0']), updatedAt: NOW },
    refused: {
      'it was taken off before': { asks: new Set(['4#0']) },
      'somebody drives it': { status: 'running' },
      ...terminal,
    },
  },
  {
    name: 'W13 stop a session that waits',
    from: {
      ...waiting,
      pending: new Set([3, 4]),
      waitingOn: new Set([3]),
      waitAll: true,
      asks: new Set(['a1']),
      wakeAt: LATER,
    },
    write: (store, ref) => store.stop(ref, { reason: 'cancelled', round: 1, now: NOW }),
    becomes: { stop: 'cancelled', waitingOn: new Set(), waitAll: false, asks: new Set(), updatedAt: NOW },
    refused: {
      'it was asked before': { stop: 'parent_ended' },
      'the run is in its next round': { round: 2 },
      ...terminal,
    },
  },
  {
    name: 'W13 stop a session that runs',
    from: {},
    write: (store, ref) => store.stop(ref, { reason: 'parent_ended', round: 1, now: NOW }),
    becomes: { stop: 'parent_ended', updatedAt: NOW },
    refused: {
      'it was asked before': { stop: 'parent_ended' },
      'the run is in its next round': { round: 2 },
      ...terminal,
    },
  },
  {
    name: 'W13b cancel a session that nobody ever claimed',
    from: queued,
    write: (store, ref) => store.cancelUnclaimed(ref, { reason: 'cancelled', round: 1, now: NOW }),
    becomes: {
      status: 'cancelled',
      stop: 'cancelled',
      stopReason: 'cancelled',
      finishedAt: NOW,
      updatedAt: NOW,
    },
    refused: {
      'it was claimed, and released': { attempt: 1 },
      'the run is in its next round': { round: 2 },
      'it runs': { status: 'running' },
      'it waits': { status: 'waiting' },
      ...terminal,
    },
  },
]

const finish = {
  round: 2,
  status: 'completed',
  stopReason: 'end_turn',
  error: null,
  rows,
  unknowns: { 3: money(0.5), 12: money(0.25) },
  finalTurn: 7,
  outputPreview: 'Here it is',
  now: NOW,
} as const

const ENDS: HeaderCase[] = [
  {
    name: 'W15 finish',
    from: { round: 2, error: failed },
    write: (store, ref) => store.finish(ref, finish),
    becomes: {
      status: 'completed',
      stopReason: 'end_turn',
      error: null,
      rows,
      unknowns: finish.unknowns,
      finalTurn: 7,
      outputPreview: 'Here it is',
      finishedAt: NOW,
      updatedAt: NOW,
      ...nobody,
    },
    refused: {
      'a child is pending': { pending: new Set([3]) },
      'another round is open': { round: 3 },
      'it is queued': { status: 'queued' },
      'it waits': { status: 'waiting' },
      ...terminal,
    },
  },
  {
    name: 'W15 finish with an error, and nothing of an earlier round is left',
    from: { round: 2, finalTurn: 4, outputPreview: 'of the first round' },
    write: (store, ref) =>
      store.finish(ref, {
        ...finish,
        status: 'failed',
        stopReason: 'error',
        error: failed,
        unknowns: {},
        finalTurn: null,
        outputPreview: null,
      }),
    becomes: {
      status: 'failed',
      stopReason: 'error',
      error: failed,
      rows,
      finalTurn: null,
      outputPreview: null,
      finishedAt: NOW,
      updatedAt: NOW,
      ...nobody,
    },
    refused: { 'a child is pending': { pending: new Set([3]) }, 'another round is open': { round: 3 } },
  },
  {
    name: 'a new round of the root',
    from: {
      status: 'failed',
      stop: 'cancelled',
      stopReason: 'error',
      error: failed,
      finishedAt: T0 + 1,
      round: 2,
      rows,
      settled: 3,
      next: 3,
      continuations: 7,
    },
    write: (store, ref) => store.reopenRoot(ref, 2, NOW),
    becomes: {
      status: 'queued',
      round: 3,
      continuationsBefore: 7,
      stop: null,
      stopReason: null,
      error: null,
      finishedAt: null,
      updatedAt: NOW,
      ...nobody,
    },
    refused: {
      'another round has been opened': { round: 3 },
      'it is queued': { status: 'queued' },
      'it runs': { status: 'running' },
      'it waits': { status: 'waiting' },
    },
  },
]

export function sessionContract(open: () => Promise<TestTable>): void {
  const at = bench(open)
  headerCases(at, DRIVING)
  headerCases(at, ENDS)

  describe('W2 put a header', () => {
    test('reads back what was written, with everything that a header may hold', async () => {
      const header = aHeader({
        ...rootRef(at.newRun()),
        parentId: '1'.repeat(20),
        ordinal: 12_345,
        agent: null,
        kind: 'group',
        depth: 3,
        limitSeq: 2,
        via: { turn: 4, index: 5 },
        status: 'waiting',
        stop: 'budget',
        stopReason: 'max_tokens',
        error: failed,
        attempt: 9,
        driver: DRIVER,
        lease: LATER,
        continuations: 3,
        asks: new Set(['a', 'b']),
        wakeAt: LATER,
        share: { usd: 10n ** 24n, tok: -5n },
        taken: money(0.1),
        lent: { 3: money(0.1), 40: money(0.2) },
        next: 41,
        deleg: { turn: 6, from: 39, count: 2, share: money(0.1), funded: 1 },
        pending: new Set([3, 40]),
        waitingOn: new Set([40]),
        waitAll: true,
        settled: 39,
        needs: new Set([40]),
        rows,
        unknowns: { 2: money(0.3) },
        kids: {
          ...books(4, 2),
          duplicate: { ...totals(1), cost: 10n ** 20n },
          failed: { ...totals(1), reasoningTokens: 7 },
        },
        kidsSessions: 38,
        seen: { 3: { v: 2, books: books(1, 1) } },
        v: 55,
        first: anIntent(),
        startedAt: T0 + 1,
        finishedAt: T0 + 2,
        taskPreview: 'Ä task 🧾',
        outputPreview: '',
        finalTurn: 0,
      })
      expect(await at.store.putHeader(header)).toBe('written')
      expect(await at.store.getHeader(header)).toEqual(header)
      expect(await at.store.getHeader(header, { consistent: false })).toEqual(header)
    })

    test('is done once, by one of 50, and never overwrites', async () => {
      const ref = rootRef(at.newRun())
      const headers = Array.from({ length: 50 }, (_, i) => aHeader({ ...ref, share: money(i) }))
      const outcomes = await Promise.all(headers.map((header) => at.store.putHeader(header)))
      expect(outcomes.filter((o) => o === 'written')).toHaveLength(1)
      expect(await at.store.getHeader(ref)).toEqual(headers[outcomes.indexOf('written')])
    })
  })

  test('a wait for no child, and one for no time, are mistakes of the caller', async () => {
    const until = { wakeAt: null, rows: [], closed: false, now: NOW }
    const some = { ...until, on: { ordinals: [], settled: 0 } }
    await expect(at.store.suspend(rootRef(), 1, some)).rejects.toThrow('cannot wait for nothing')
    const time = { ...until, on: 'time' } as const
    await expect(at.store.suspend(rootRef(), 1, time)).rejects.toThrow('needs the time at which it ends')
  })
}
