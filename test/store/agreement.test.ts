/**
 * The table in memory stands in for DynamoDB in most tests, so it must be the same: random sequences of every write of the
 * protocol, from a fixed seed, on both, with every outcome, every item and every write unit compared.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Amount, ZERO } from '../../src/domain/money.ts'
import type { Run, RunRef, SessionRef } from '../../src/domain/run.ts'
import type { SessionHeader } from '../../src/domain/session.ts'
import type { Store } from '../../src/ports.ts'
import { memoryTable as newMemoryTable } from '../../src/store/memory-table.ts'
import { type MeteredTable, meteredTable } from '../../src/store/metered-table.ts'
import { createStore } from '../../src/store/store.ts'
import {
  aChild,
  aHeader,
  anIntent,
  anUnknown,
  aRequest,
  aResponse,
  aRun,
  aToolResult,
  books,
  childRef,
  money,
  rootRef,
  row,
  runRef,
  T0,
  totals,
} from '../support/builders.ts'
import { TABLES, type TestTable } from '../support/tables.ts'

/** Numbers from 0 up to 1, the same for the same seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

type Step = readonly [name: string, (store: Store) => Promise<unknown>]
const CHILDREN = 3

/**
 * Picks the next write from what is there now: mostly one that may hold, often one that comes too late. Everything is picked
 * before the write is made, since it is made twice.
 */
class Script {
  readonly next: () => number
  readonly run: RunRef
  readonly root: SessionRef

  constructor(seed: number) {
    this.next = random(seed)
    this.run = runRef(seed)
    this.root = rootRef(this.run)
  }

  below = (n: number) => Math.floor(this.next() * n)
  pick = <T>(of: readonly T[]): T => of[this.below(of.length)]!
  /** what was read, or now and then something older */
  about = (seen: number) => (this.next() < 0.85 ? seen : seen - 1)
  /** a write after which little else holds */
  rarely = (share: number, step: Step): readonly Step[] => (this.next() < share ? [step] : [])
  amount = (): Amount => this.pick([ZERO, money(0.1), money(0.5), money(2)])
  now = () => T0 + this.below(100)
  driver = () => this.pick(['driver-a', 'driver-b'])

  session(): SessionRef {
    return this.next() < 0.6 ? this.root : childRef(this.root, this.below(CHILDREN))
  }

  runStep(run: Run | undefined): Step {
    const ref = this.run
    const [v, dueAt, round] = [this.about(run?.v ?? 0), this.about(run?.dueAt ?? T0), this.about(run?.round ?? 1)]
    const status = this.pick(['completed', 'failed'] as const)
    const error = status === 'failed' ? { code: 'model', message: 'no' } : null
    const due = this.pick([null, this.now()])
    const updatedAt = this.about(run?.updatedAt ?? T0)
    const now = this.now()
    const born = this.pick(['running', 'waiting'] as const)
    return this.pick<Step>([
      ['createRun', (s) => s.createRun(aRun({ ...ref, status: born }))],
      ['cancelRun', (s) => s.cancelRun(ref, { now })],
      [
        'finishRun',
        (s) =>
          s.finishRun(ref, {
            round,
            status,
            stopReason: 'end_turn',
            error,
            books: books(2),
            sessions: 3,
            v,
            reportedAt: now,
            dueAt: due,
            now,
          }),
      ],
      ['correctRun', (s) => s.correctRun(ref, v, { v: v + 1, books: books(3, 1), now })],
      ['undueRun', (s) => s.undueRun(ref, { v, dueAt })],
      ['pushDue', (s) => s.pushDue(ref, { dueAt, updatedAt }, now)],
      ['openRound', (s) => s.openRound(ref, { seenRound: round, inputRef: 'input', dueAt: now, now })],
    ])
  }

  drivingStep(ref: SessionRef, h: SessionHeader | undefined): Step {
    const [attempt, now, driver] = [this.about(h?.attempt ?? 0), this.now(), this.driver()]
    const round = this.about(h?.round ?? 1)
    const rows = this.pick([[], [row(1)], [row(2), row(1, { outcome: 'unknown' })]])
    const first = this.pick([null, anIntent({ driver })])
    const time = this.now()
    const on = this.pick(['all', 'time', { ordinals: [0, 2], settled: this.about(h?.settled ?? 0) }] as const)
    const wakeAt = on === 'time' ? time : this.pick([null, time])
    const closed = this.next() < 0.3
    const [error, finalTurn, outputPreview] = this.pick([
      [null, 3, 'done'],
      [{ code: 'x', message: 'y' }, null, null],
    ] as const)
    const unknowns: SessionHeader['unknowns'] = this.next() < 0.5 ? {} : { 0: money(0.5), 3: money(0.1) }
    const status = error ? 'failed' : 'completed'
    return this.pick<Step>([
      ['putHeader', (s) => s.putHeader(ref.sessionId === this.root.sessionId ? aHeader(ref) : aChild(1, ref))],
      ['claim', (s) => s.claim(ref, { seenAttempt: attempt, driver, now, lease: now + 20, first })],
      ['release', (s) => s.release(ref, attempt, { continues: true, now: now })],
      ['heartbeat', (s) => s.heartbeat(ref, attempt, { lease: now + 20, rows, now })],
      ['suspend', (s) => s.suspend(ref, attempt, { on, wakeAt, rows, closed, now })],
      ...this.rarely(0.15, ['stop', (s) => s.stop(ref, { reason: 'cancelled', round: 1, now: now })]),
      ...this.rarely(0.5, [
        'cancelUnclaimed',
        (s) => s.cancelUnclaimed(ref, { reason: 'parent_ended', round: 1, now: now }),
      ]),
      ...this.rarely(0.6, [
        'finish',
        (s) =>
          s.finish(ref, {
            round,
            status,
            stopReason: 'end_turn',
            error,
            rows,
            unknowns,
            finalTurn,
            outputPreview,
            now,
          }),
      ]),
      ['reopenRoot', (s) => s.reopenRoot(ref, round, now)],
    ])
  }

  moneyStep(ref: SessionRef, h: SessionHeader | undefined): Step {
    const now = this.now()
    const ordinal = this.pick([...(h?.pending ?? []), ...Object.keys(h?.seen ?? {}).map(Number), this.below(CHILDREN)])
    const count = this.pick([0, 1, 2, 2])
    const [turn, from] = [this.about((h?.deleg.turn ?? -1) + 1), this.about(h?.next ?? 0)]
    const round = h?.round ?? 1
    const [share, more] = [this.amount(), this.amount()]
    const lent = this.next() < 0.8 ? (h?.lent[ordinal] ?? null) : money(0.1)
    const unknowns = this.below(2)
    const seen = unknowns > 0 ? { v: 1, books: books(1, unknowns) } : null
    const seenV = this.about(h?.seen[ordinal]?.v ?? 1)
    const [n, v] = [this.pick([0, 3]), this.about(h?.v ?? 0)]
    const into = this.pick(['own', 'avail'] as const)
    return this.pick<Step>([
      ['delegate', (s) => s.delegate(ref, { round, turn, from, count, share, funded: count, now })],
      [
        'settle',
        (s) => s.settle(ref, { ordinal, books: books(1, unknowns), sessions: 1, lent, back: more, seen }, now),
      ],
      ['lend', (s) => s.lend(ref, ordinal, lent, more)],
      ['takeLoan', (s) => s.takeLoan(ref, h?.taken ?? ZERO, more, into)],
      ['raiseOwn', (s) => s.raiseOwn(ref, h?.own ?? ZERO, more)],
      ['correctOwn', (s) => s.correctOwn(ref, v, n, [row(3)], now)],
      [
        'correctParent',
        (s) =>
          s.correctParent(ref, ordinal, seenV, {
            seen: { v: seenV + 1, books: books(2) },
            difference: { accepted: totals(1), unknown: totals(-1) },
            back: more,
            now,
          }),
      ],
    ])
  }

  logStep(ref: SessionRef): Step {
    const [n, index, of] = [this.below(3), this.below(2), this.driver()]
    const content = 'worker '.repeat(this.pick([1, 1, 400]))
    const message = { role: 'assistant', content, toolCalls: [] } as const
    const next = this.next() < 0.3 ? { next: anIntent({ driver: of }) } : {}
    return this.pick<Step>([
      ['putRequest', (s) => s.putRequest(ref, aRequest(n, { intent: anIntent({ driver: of }) }), of)],
      ['putResponse', (s) => s.putResponse(ref, aResponse(n, { of, message, ...next }), of)],
      ['putResponse unknown', (s) => s.putResponse(ref, anUnknown(n, { of, ...next }), of)],
      ['bookLate', (s) => s.bookLate(ref, aResponse(n, { of, message, outcome: 'duplicate' }), of)],
      ['putToolResult', (s) => s.putToolResult(ref, aToolResult(n, index, { content }), of)],
    ])
  }

  async step(store: Store): Promise<Step> {
    const ref = this.session()
    const kind = this.next()
    if (kind < 0.13) return this.runStep(await store.getRun(this.run))
    if (kind < 0.3) return this.logStep(ref)
    const header = await store.getHeader(ref)
    return kind < 0.6 ? this.drivingStep(ref, header) : this.moneyStep(ref, header)
  }
}

const STEPS = 500

describe.each(TABLES.slice(1))('the table in memory and $name', ({ open }) => {
  let opened: TestTable
  let other: MeteredTable
  beforeAll(async () => {
    opened = await open()
    other = meteredTable(opened.table)
  })
  afterAll(() => opened?.close())

  test.each([1, 2, 3, 4])('agree on 500 random writes of seed %i', async (seed) => {
    const script = new Script(seed)
    const memory = newMemoryTable()
    const metered = meteredTable(memory)
    const stores = { memory: createStore(metered), other: createStore(other) }
    const seen = new Map<string, { held: number; refused: number }>()
    other.reset()
    for (let i = 0; i < STEPS; i++) {
      const [name, write] = await script.step(stores.memory)
      const outcome = await write(stores.memory)
      expect(await write(stores.other), `step ${i}: ${name}`).toEqual(outcome)
      const held = outcome === 'written' || (outcome as { written?: boolean }).written === true
      const count = seen.get(name) ?? { held: 0, refused: 0 }
      seen.set(name, { held: count.held + Number(held), refused: count.refused + Number(!held) })
    }
    const mine = (await opened.items()).filter((item) => String(item.pk).endsWith(script.run.runId))
    expect(mine).toEqual(memory.items())
    const { readUnits: _, gets: __, ...writes } = metered.snapshot()
    expect(other.snapshot()).toMatchObject(writes)
    expect([...seen.values()].reduce((sum, { held }) => sum + held, 0)).toBeGreaterThan(STEPS / 10)
    tally(seen)
  })

  const all = new Map<string, { held: number; refused: number }>()
  const tally = (seen: ReadonlyMap<string, { held: number; refused: number }>) => {
    for (const [name, { held, refused }] of seen) {
      const count = all.get(name) ?? { held: 0, refused: 0 }
      all.set(name, { held: count.held + held, refused: count.refused + refused })
    }
  }
  test('every write was among them, written and refused', () => {
    expect(all.size).toBe(28)
    expect([...all].filter(([, { held, refused }]) => held === 0 || refused === 0)).toEqual([])
  })
})
