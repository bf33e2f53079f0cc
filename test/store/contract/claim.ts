import { expect, test } from 'vitest'
import { aHeader, anIntent, aRunningHeader, DRIVER, OTHER_DRIVER, rootRef, T0 } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { LATER, NOW, queued, terminal, waiting } from './states.ts'
import { bench, type HeaderCase, headerCases } from './write-cases.ts'

const claim =
  (seenAttempt: number, first = false): HeaderCase['write'] =>
  (store, ref) =>
    store.claim(ref, {
      seenAttempt,
      driver: OTHER_DRIVER,
      now: NOW,
      lease: LATER,
      first: first ? anIntent({ driver: OTHER_DRIVER }) : null,
    })
const claimed = { status: 'running', driver: OTHER_DRIVER, lease: LATER, updatedAt: NOW } as const
const CLAIMS: HeaderCase[] = [
  {
    name: 'W3 claim a queued session, with the intent of its first call',
    from: queued,
    write: claim(0, true),
    becomes: { ...claimed, attempt: 1, startedAt: NOW, first: anIntent({ driver: OTHER_DRIVER }) },
    refused: { 'somebody has claimed it since': { attempt: 1 }, ...terminal },
  },
  {
    name: 'W3 claim a session whose lease is over',
    from: { attempt: 3, lease: NOW - 1 },
    write: claim(3),
    becomes: { ...claimed, attempt: 4 },
    refused: {
      'its lease is not over': { lease: NOW },
      'somebody has claimed it since': { attempt: 4 },
      ...terminal,
    },
  },
  {
    name: 'W3 claim a session that waits for nothing any more',
    from: { ...waiting, attempt: 3, waitAll: true },
    write: claim(3),
    becomes: { ...claimed, attempt: 4, waitAll: false },
    refused: {
      'it waits for all, and one is pending': { pending: new Set([7]) },
      'it waits for some': { waitAll: false, waitingOn: new Set([7]), pending: new Set([7, 8]) },
      'it waits for an approval': { asks: new Set(['a1']) },
      'it waits for an approval, and its time has not come': { asks: new Set(['a1']), wakeAt: NOW },
      'somebody has claimed it since': { attempt: 4 },
    },
  },
  {
    name: 'W3 claim a session whose wait is over by time',
    from: { ...waiting, attempt: 3, waitAll: true, pending: new Set([7]), asks: new Set(['a1']), wakeAt: NOW - 1 },
    write: claim(3),
    becomes: { ...claimed, attempt: 4, waitAll: false, asks: new Set(), wakeAt: null },
    refused: {
      'its time has not come': { wakeAt: NOW },
      'somebody has claimed it since': { attempt: 4 },
      'it runs': { status: 'running', lease: LATER },
      ...terminal,
    },
  },
  {
    name: 'W3 claim a session that waited for time alone',
    from: { ...waiting, attempt: 3, asks: new Set(['timer']), wakeAt: NOW - 1 },
    write: claim(3),
    becomes: { ...claimed, attempt: 4, asks: new Set(), wakeAt: null },
    refused: { 'its time has not come': { wakeAt: NOW }, 'it has no time': { wakeAt: null } },
  },
  {
    name: 'W3 claim a session that waited for some which have settled, while others are pending',
    from: { ...waiting, attempt: 3, pending: new Set([8]) },
    write: claim(3),
    becomes: { ...claimed, attempt: 4 },
    refused: { 'somebody has claimed it since': { attempt: 4 } },
  },
]

export function claimContract(open: () => Promise<TestTable>): void {
  const at = bench(open)
  headerCases(at, CLAIMS)

  test('a claim keeps the time of the first one', async () => {
    const ref = rootRef(at.newRun())
    await at.store.putHeader(aHeader({ ...ref, startedAt: T0 + 1, attempt: 1 }))
    const claimed = await at.store.claim(ref, { seenAttempt: 1, driver: DRIVER, now: NOW, lease: LATER, first: null })
    expect(claimed.written && claimed.item.startedAt).toBe(T0 + 1)
  })

  test('nobody can claim what was cancelled unclaimed, and nobody can cancel what was claimed', async () => {
    const write = { seenAttempt: 0, driver: DRIVER, now: NOW, lease: LATER, first: null }
    for (let i = 0; i < 20; i++) {
      const ref = rootRef(at.newRun())
      await at.store.putHeader(aHeader(ref))
      const [claimed, cancelled] = await Promise.all([
        at.store.claim(ref, write),
        at.store.cancelUnclaimed(ref, { reason: 'cancelled', round: 1, now: NOW }),
      ])
      expect([claimed.written, cancelled.written].filter(Boolean)).toHaveLength(1)
    }
  })

  test('a wait for time is over by a stop, and by its time, and by nothing else', async () => {
    const until = { on: 'time', wakeAt: LATER, rows: [], closed: false, now: NOW } as const
    const next = (now: number) => ({ seenAttempt: 1, driver: OTHER_DRIVER, now, lease: now, first: null })
    const [timed, stopped] = [rootRef(at.newRun()), rootRef(at.newRun())]
    for (const ref of [timed, stopped]) {
      await at.store.putHeader(aRunningHeader(ref))
      await at.store.suspend(ref, 1, until)
      expect((await at.store.claim(ref, next(LATER))).written).toBe(false)
    }
    expect((await at.store.claim(timed, next(LATER + 1))).written).toBe(true)
    await at.store.stop(stopped, { reason: 'cancelled', round: 1, now: NOW })
    expect((await at.store.claim(stopped, next(NOW))).written).toBe(true)
  })
}
