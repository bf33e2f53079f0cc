/**
 * What a run has spent is in the reports exactly once, wherever a process dies or stands still between two writes: while
 * a round finishes, while a late answer is passed up, while a later round takes over, while hours are folded.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import { repair, settleUp } from '../../src/engine/settle.ts'
import { type MemoryTable, memoryTable } from '../../src/store/memory-table.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { aResponse, childRef, DRIVER, runRef } from '../support/builders.ts'
import {
  disturbed,
  ENDED,
  endedRunWithUnknown,
  foldLater,
  nextRound,
  reportOf,
  rootRef,
  untilKilled,
  type World,
  worldOn,
} from './support.ts'

const ref = runRef()
const root = rootRef(ref)
const worker = childRef(root, 0)
const HOUR = 3_600_000

/** The parts of a run's end. Each may be repeated, as its callers do. */
const finish = (w: World) => settleUp(w.ctx, root)
const late = async (w: World) => {
  await w.store.bookLate(worker, aResponse(1, { outcome: 'duplicate' }), DRIVER)
  await repair(w.ctx, worker)
}
const open = async (w: World) => nextRound(w.store, ref, 3, ENDED + 26 * HOUR)

const FIRST = [
  'root openai/gpt-5-mini accepted: 2 calls, 200 in, 100 out, 900000000',
  'worker openai/gpt-5-mini accepted: 2 calls, 200 in, 100 out, 900000000',
]
const UNKNOWN = 'worker mini unknown: 1 calls, 1200 in, 4096 out, 500000000000'
const DUPLICATE = 'worker mini duplicate: 1 calls, 100 in, 50 out, 450000000'
const SECOND = ['root second accepted: 3 calls, 300 in, 150 out, 1350000000']
const inOrder = (...lines: string[]) => lines.sort()
/** The cost of all lines that are about this. */
const sumOf = (lines: readonly string[], what: string): bigint =>
  lines.filter((line) => line.includes(what)).reduce((n, line) => n + BigInt(line.split(', ').at(-1)!), 0n)

/** What is disturbed, what has happened before, and what the day of the first round says in the end. */
const PARTS = [
  { name: 'the round finishes', before: [], part: finish, says: inOrder(...FIRST, UNKNOWN), next: [] },
  {
    name: 'a late answer is passed up',
    before: [finish],
    part: late,
    says: inOrder(...FIRST, DUPLICATE),
    next: [],
  },
  {
    name: 'a late answer is passed up after the fold of the hour',
    before: [finish, (w: World) => foldLater(w, 3)],
    part: late,
    says: inOrder(...FIRST, DUPLICATE),
    next: [],
  },
  {
    name: 'a second round finishes',
    before: [finish, open],
    part: finish,
    says: inOrder(...FIRST, UNKNOWN),
    next: SECOND,
  },
  {
    name: 'a second round finishes after a correction of the first',
    before: [finish, late, open],
    part: finish,
    says: inOrder(...FIRST, DUPLICATE),
    next: SECOND,
  },
  {
    name: 'the hours are folded',
    before: [finish],
    part: (w: World) => foldLater(w, 3),
    says: inOrder(...FIRST, UNKNOWN),
    next: [],
  },
  {
    name: 'the rest of the day is folded',
    before: [finish, (w: World) => foldLater(w, 3)],
    part: (w: World) => foldLater(w, 19),
    says: inOrder(...FIRST, UNKNOWN),
    next: [],
  },
] as const

let table: MemoryTable
let world: World
beforeEach(async () => {
  table = memoryTable()
  world = worldOn(table)
  await endedRunWithUnknown(world.store, ref)
})

async function expectReports(says: readonly string[], next: readonly string[]): Promise<void> {
  expect(await reportOf(world.store)).toEqual(says)
  expect(await reportOf(world.store, '2026-03-02')).toEqual(next)
}

/** A process of its own over the same items and the same time. */
const process = (on: TableClient) => worldOn(on, world.clock)

/** Runs a case with its disturbance moved on by one write until it comes too late to disturb. */
async function atEveryWrite(one: (at: number) => Promise<boolean>): Promise<number> {
  for (let at = 0; ; at++) {
    table = memoryTable()
    world = worldOn(table)
    await endedRunWithUnknown(world.store, ref)
    if (!(await one(at))) return at
  }
}

describe.each(PARTS)('while $name', ({ before, part, says, next }) => {
  test.each(['dies before', 'dies after'] as const)('a process %s each of its writes', async (how) => {
    const writes = await atEveryWrite(async (at) => {
      for (const step of before) await step(world)
      const dying = disturbed(table, at, how)
      await untilKilled(() => part(process(dying.table)))
      await part(world)
      await expectReports(says, next)
      return dying.reached()
    })
    expect(writes).toBeGreaterThan(2)
  })

  test.each(['dies before', 'dies after'] as const)(
    'a process %s each of its writes, and the hours are folded before anybody goes on',
    async (how) => {
      await atEveryWrite(async (at) => {
        for (const step of before) await step(world)
        const dying = disturbed(table, at, how)
        await untilKilled(() => part(process(dying.table)))
        await foldLater(world, 6)
        await part(world)
        await foldLater(world, 60)
        await expectReports(says, next)
        return dying.reached()
      })
    },
  )

  test('a process stands still before each of its writes, and another one does the same', async () => {
    await atEveryWrite(async (at) => {
      for (const step of before) await step(world)
      const slow = disturbed(table, at, { standsStill: () => Promise.resolve(part(world)).then(() => {}) })
      await part(process(slow.table))
      await part(world)
      await expectReports(says, next)
      return slow.reached()
    })
  })

  test('a process stands still before each of its writes, and all hours are folded', async () => {
    await atEveryWrite(async (at) => {
      for (const step of before) await step(world)
      const slow = disturbed(table, at, { standsStill: () => foldLater(world, 60) })
      await part(process(slow.table))
      await part(world)
      await foldLater(world, 61)
      await expectReports(says, next)
      return slow.reached()
    })
  })
})

describe('while the hours are folded', () => {
  const other = runRef(2)
  const both = inOrder(
    UNKNOWN.replace(': 1 calls, 1200 in, 4096 out, 500000000000', ': 2 calls, 2400 in, 8192 out, 1000000000000'),
    ...FIRST.map((line) =>
      line.replace(': 2 calls, 200 in, 100 out, 900000000', ': 4 calls, 400 in, 200 out, 1800000000'),
    ),
  )

  test('another run finishes, or has its late answer passed up, before each write of the fold', async () => {
    await atEveryWrite(async (at) => {
      await finish(world)
      await endedRunWithUnknown(world.store, other)
      const slow = disturbed(table, at, {
        async standsStill() {
          await settleUp(world.ctx, rootRef(other))
          // whatever is half done here: a report at this moment is right
          expect(await reportOf(world.store)).toEqual(both)
        },
      })
      await foldLater(process(slow.table), 60)
      if (slow.reached()) expect(await reportOf(world.store)).toEqual(both)
      return slow.reached()
    })
  })
})

describe('across rounds', () => {
  test('a correction that dies at each of its writes is taken over by the next round', async () => {
    for (const how of ['dies before', 'dies after'] as const) {
      await atEveryWrite(async (at) => {
        await finish(world)
        await foldLater(world, 3)
        const dying = disturbed(table, at, how)
        await world.store.bookLate(worker, aResponse(1, { outcome: 'duplicate' }), DRIVER)
        await untilKilled(() => repair(process(dying.table).ctx, worker))
        await open(world)
        // nobody repairs any more but the one who ends the next round
        await repair(world.ctx, worker)
        await finish(world)
        const all = [...(await reportOf(world.store)), ...(await reportOf(world.store, '2026-03-02'))]
        expect(sumOf(all, 'unknown') + sumOf(all, 'duplicate')).toBe(450_000_000n)
        return dying.reached()
      })
    }
  })

  test('a correction that stands still while the next round begins and ends counts once', async () => {
    await atEveryWrite(async (at) => {
      await finish(world)
      const second = () => open(world).then(() => finish(world))
      const slow = disturbed(table, at, { standsStill: second })
      await late(process(slow.table))
      await late(world)
      if ((await world.store.getRun(ref))!.round === 1) await second()
      const all = [...(await reportOf(world.store)), ...(await reportOf(world.store, '2026-03-02'))]
      // on which of the two days the late answer counts depends on who came first
      const sums = ['unknown', 'duplicate', 'root second'].map((what) => sumOf(all, what))
      expect(sums).toEqual([0n, 450_000_000n, 1_350_000_000n])
      expect(all.filter((line) => line.startsWith('root openai'))).toHaveLength(1)
      return slow.reached()
    })
  })

  test('a round that stands still while a late answer is passed up counts it once', async () => {
    await atEveryWrite(async (at) => {
      const slow = disturbed(table, at, { standsStill: () => late(world) })
      await finish(process(slow.table))
      await late(world)
      await finish(world)
      await foldLater(world, 60)
      await expectReports(inOrder(...FIRST, DUPLICATE), [])
      return slow.reached()
    })
  })
})

test('control: an item whose place in the reports nobody looked after is lost when its hour is folded', async () => {
  // the state in which a process dies between its put and its look, and nobody ever comes by again
  await finish(world)
  await foldLater(world, 3)
  await world.store.bookLate(worker, aResponse(1, { outcome: 'duplicate' }), DRIVER)
  const dying = disturbed(table, 2, 'dies after')
  await untilKilled(() => repair(process(dying.table).ctx, worker))
  expect(await reportOf(world.store)).toEqual(inOrder(...FIRST, UNKNOWN))
})
