/** Runs that have just ended, written as they stand in the table; and processes that die, or stand still, at a write. */
import { HOUR_MS, type ReportRow, sumReport } from '../../src/domain/report.ts'
import type { Run, RunRef } from '../../src/domain/run.ts'
import type { SessionHeader } from '../../src/domain/session.ts'
import { type BookRow, NO_TOTALS } from '../../src/domain/usage.ts'
import type { EngineContext } from '../../src/engine/context.ts'
import { foldUsage } from '../../src/engine/fold-usage.ts'
import type { Store } from '../../src/ports.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { systemIds } from '../../src/system.ts'
import {
  aChild,
  anUnknown,
  aRun,
  aRunningHeader,
  books,
  childRef,
  DRIVER,
  money,
  rootRef,
  row,
  totals,
} from '../support/builders.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

/** Half past seven: the root of every run here ends at this time unless told. */
export const ENDED = Date.UTC(2026, 2, 1, 7, 30)
export const DAY = '2026-03-01'
export const TENANT = 'local'

/** What a call of `anUnknown` is booked with. */
export const BOUND = { ...NO_TOTALS, calls: 1, inputTokens: 1200, outputTokens: 4096, cost: money(0.5).usd }
export const bound: BookRow = { agent: 'worker', model: 'mini', outcome: 'unknown', totals: BOUND }

export interface World {
  readonly store: Store
  readonly ctx: EngineContext
  readonly clock: VirtualClock
  /** what was logged as an error */
  readonly faults: string[]
}

/** An engine without workers and models, over a table that may be one that fails. */
export function worldOn(table: TableClient, clock: VirtualClock = createVirtualClock(ENDED + 1_000)): World {
  const store = createStore(table)
  const nothing = () => Promise.reject(new Error('not here'))
  const faults: string[] = []
  const log = { info: () => {}, warn: () => {}, error: (_: string, f?: object) => void faults.push(JSON.stringify(f)) }
  const ctx: EngineContext = {
    store,
    teams: { list: nothing, get: nothing },
    prices: { of: nothing },
    model: { call: nothing },
    invoker: { invoke: async () => {} },
    clock,
    ids: systemIds,
    log,
    settings: { leaseMs: 90_000, eventAgeMs: 120_000 },
  }
  return { store, ctx, clock, faults }
}

/** A run whose root has ended with these rows and that has not finished yet. */
export async function endedRun(
  store: Store,
  ref: RunRef,
  of: { run?: Partial<Run>; root?: Partial<SessionHeader> } = {},
): Promise<Run> {
  const run = aRun({ ...ref, ...of.run })
  await store.createRun(run)
  const at = of.root?.finishedAt ?? ENDED
  const root = { status: 'completed', stopReason: 'end_turn', driver: null, lease: null, finishedAt: at } as const
  await store.putHeader(aRunningHeader({ ...rootRef(ref), rows: [row(2, { agent: 'root' })], ...root, ...of.root }))
  return run
}

/** The same with a worker below it, of whose three calls one was lost. */
export async function endedRunWithUnknown(store: Store, ref: RunRef): Promise<Run> {
  const run = await endedRun(store, ref, {
    root: {
      next: 1,
      settled: 1,
      kidsSessions: 1,
      v: 1,
      kids: { accepted: totals(2), unknown: BOUND },
      seen: { 0: { v: 0, books: { accepted: totals(2), unknown: BOUND } } },
    },
  })
  const worker = childRef(rootRef(ref), 0)
  await store.putHeader(
    aChild(0, {
      ...worker,
      parentId: rootRef(ref).sessionId,
      status: 'completed',
      stopReason: 'end_turn',
      rows: [row(2), bound],
      unknowns: { 1: money(0.5) },
      finishedAt: ENDED - 1_000,
    }),
  )
  await store.putResponse(worker, anUnknown(1), DRIVER)
  return run
}

/** Opens the next round, in which the root makes `calls` more, and ends its root at `at`. */
export async function nextRound(store: Store, ref: RunRef, calls: number, at: number): Promise<void> {
  const run = (await store.getRun(ref))!
  const root = rootRef(ref)
  await store.openRound(ref, { seenRound: run.round, inputRef: DRIVER, dueAt: at, now: at })
  await store.reopenRoot(root, run.round, at)
  const header = (await store.getHeader(root))!
  const claim = { seenAttempt: header.attempt, driver: DRIVER, now: at, lease: at + 90_000, first: null }
  await store.claim(root, claim)
  await store.finish(root, {
    round: run.round + 1,
    status: 'completed',
    stopReason: 'end_turn',
    error: null,
    rows: [...header.rows, row(calls, { agent: 'root', model: 'second' })],
    unknowns: {},
    finalTurn: null,
    outputPreview: null,
    now: at,
  })
}

/** Folds everything that is over `hours` hours after the runs have ended. */
export async function foldLater(world: World, hours: number): Promise<void> {
  const at = ENDED + hours * HOUR_MS
  if (world.clock.now() < at) await world.clock.advance(at - world.clock.now())
  await foldUsage(world.ctx, { deadlineAt: world.clock.now() + HOUR_MS })
  const fault = world.faults.pop()
  if (fault) throw fault.includes('Killed') ? new Killed(fault) : new Error(fault)
}

/** A day's report in one order, short enough to compare: calls, tokens and cost by agent, model and outcome. */
export function shown(rows: readonly ReportRow[]): string[] {
  return sumReport(rows)
    .map(
      ({ agent, model, outcome, totals: t }) =>
        `${agent} ${model} ${outcome}: ${t.calls} calls, ${t.inputTokens} in, ${t.outputTokens} out, ${t.cost}`,
    )
    .sort()
}

export const reportOf = async (store: Store, day = DAY, tenant = TENANT): Promise<string[]> =>
  shown(await store.readUsage({ tenant, day }))

/** A process that does not live beyond a write. */
export class Killed extends Error {
  override readonly name = 'Killed'
}

/**
 * A table as one process reaches it: at its write number `at` (from 0) something happens.
 *
 * `dies before` and `dies after` the write: nothing goes through any more. `stands still before`: whatever else is to
 * happen, happens first.
 */
export function disturbed(
  table: TableClient,
  at: number,
  what: 'dies before' | 'dies after' | { standsStill: () => Promise<void> },
): { table: TableClient; reached: () => boolean } {
  let writes = 0
  let dead = false
  const alive = () => {
    if (dead) throw new Killed('the process is dead')
  }
  async function read<T>(apply: () => Promise<T>): Promise<T> {
    alive()
    return apply()
  }
  async function write<T>(apply: () => Promise<T>): Promise<T> {
    alive()
    if (writes++ !== at) return apply()
    if (typeof what === 'object') {
      await what.standsStill()
      return apply()
    }
    dead = true
    if (what === 'dies after') await apply()
    throw new Killed(what)
  }
  return {
    table: {
      get: (request) => read(() => table.get(request)),
      query: (request) => read(() => table.query(request)),
      put: (request) => write(() => table.put(request)),
      delete: (request) => table.delete(request),
      update: (request) => write(() => table.update(request)),
    },
    reached: () => writes > at,
  }
}

/** Lets a process die. What else it throws is a fault. */
export async function untilKilled(body: () => Promise<unknown>): Promise<void> {
  try {
    await body()
  } catch (e) {
    if (!(e instanceof Killed)) throw e
  }
}

export { books, rootRef, row }
