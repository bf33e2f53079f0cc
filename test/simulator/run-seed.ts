/** One seed, from its start to its rest. */

import { approvalIdOf } from '../../src/domain/approval.ts'
import { type Amount, formatUsd, UNLIMITED } from '../../src/domain/money.ts'
import { isTerminal } from '../../src/domain/session.ts'
import { addInput } from '../../src/engine/add-input.ts'
import { decideApproval } from '../../src/engine/approve.ts'
import { cancelRun } from '../../src/engine/cancel-run.ts'
import { changeBudget } from '../../src/engine/change-budget.ts'
import type { EngineContext } from '../../src/engine/context.ts'
import { openLimits } from '../../src/engine/look-outer.ts'
import { retryRun } from '../../src/engine/retry-run.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { wakeWaiting } from '../../src/engine/wake-waiting.ts'
import type { LimitRef } from '../../src/ports/limit-store.ts'
import { randomFrom, randomOf, randomText } from './random.ts'
import { type Scenario, scenarioOf } from './scenario.ts'
import { settle } from './scheduler.ts'
import { Weather } from './weather.ts'
import { START, World, type WorldOptions } from './world.ts'

export interface Outcome {
  readonly scenario: Scenario
  readonly world: World
  /** the first broken invariant */
  readonly broken: string | undefined
}

const USER_TIMEOUT_MS = 30_000
const SWEEP_EVERY_MS = 60_000
/** A run that is not at rest after so much virtual time, or so many steps, never will be. */
/** A run that was out of budget is looked at once more when it would have failed, after seven days. */
const MOST_MS = 8 * 24 * 3_600_000
const MOST_STEPS = 400_000

export function worldOf(scenario: Scenario, options: { trace: boolean; plan?: WorldOptions['plan'] }): World {
  const random = randomOf('world', scenario.seed)
  return new World({
    random,
    weather: new Weather(scenario.weather, random),
    team: scenario.team,
    seed: scenario.seed,
    leaseMs: scenario.leaseMs,
    eventAgeMs: scenario.eventAgeMs,
    workerTimeoutMs: scenario.workerTimeoutMs,
    maxConcurrency: scenario.maxConcurrency,
    budget: scenario.budget,
    outer: scenario.outer,
    ...options,
  })
}

export async function runSeed(seed: number, options: { trace?: boolean } = {}): Promise<Outcome> {
  const scenario = scenarioOf(seed, randomFrom(seed * 2654435761))
  return runScenario(scenario, worldOf(scenario, { trace: options.trace ?? false }))
}

/** @param each looks at the world after each step */
export async function runScenario(
  scenario: Scenario,
  world: World,
  each?: (ref: Ref) => Promise<void>,
): Promise<Outcome> {
  const ref = { tenant: 'local', runId: randomText(world.random, 26).toUpperCase() }
  startUser(world, scenario, ref)
  try {
    await toRest(world, scenario, () => each?.(ref))
    if (world.broken === undefined) world.invariants.atRest()
  } catch (fault) {
    world.fail(`the simulator stops: ${fault instanceof Error ? fault.stack : fault}`)
  }
  return { scenario, world, broken: world.broken }
}

type Ref = { readonly tenant: string; readonly runId: string }

/** What the user does: starts the run (again, if that failed), cancels it, sends further inputs, tries again, sweeps out of turn. */
function startUser(world: World, scenario: Scenario, ref: Ref): void {
  const { scheduler, weather } = world
  const start = (tries: number) =>
    world.start(
      'start',
      // a starter may be killed between any two of its writes
      weather.options.mode === 'storm' && weather.strikes(0.12) ? world.random.below(30) : USER_TIMEOUT_MS,
      (ctx) => {
        const { input, tasks, maxConcurrency } = scenario
        return startRun(ctx, {
          ...ref,
          team: scenario.team.name,
          input,
          tasks,
          maxConcurrency,
          budget: budgetIn(scenario),
        })
      },
      (inv) => {
        if (inv.state === 'returned') return
        weather.count('start crashed')
        // whoever started it does not know whether it runs: mostly he asks again; always where no sweep would come
        const alone = weather.options.mode === 'nothing lost'
        const again = tries < 4 && (alone || world.mirror.run === undefined || world.random.chance(0.6))
        if (again) scheduler.after(world.random.between(50, 5_000), () => start(tries + 1))
      },
    )
  start(0)
  for (const s of scenario.strangers) scheduler.after(s.at, () => stranger(world, s))
  for (const at of scenario.raiseAt) scheduler.after(at, () => raise(world, ref))
  for (const at of scenario.raiseAt) if (scenario.team.permissions) scheduler.after(at + 7, () => decide(world, ref))
  for (const at of scenario.cancelAt) scheduler.after(at, () => cancel(world, ref))
  for (const at of scenario.sweepAt) {
    scheduler.after(at, () => {
      weather.count('sweep at a random time')
      world.lambda.startSweep()
    })
  }
}

/** A scenario's budget, as the user says it. */
function budgetIn({ budget }: Scenario): { usd?: string; tokens?: number } | undefined {
  if (!budget) return undefined
  return {
    ...(budget.usd < UNLIMITED && { usd: formatUsd(budget.usd) }),
    ...(budget.tok < UNLIMITED && { tokens: Number(budget.tok) }),
  }
}

/** Another run of the tenant holds a part of each outer limit for a while, and spends half of it. */
function stranger(world: World, { part, forMs }: Scenario['strangers'][number]): void {
  const runId = randomText(world.random, 26).toUpperCase()
  world.start('stranger', USER_TIMEOUT_MS, async (ctx) => {
    const run = { tenant: 'local', team: 'crew', tags: {} }
    for (const { ref, limit, item } of await openLimits(ctx, run)) {
      const some = { usd: limit.usd / part, tok: limit.tok / part }
      const half = { usd: some.usd / 2n, tok: some.tok / 2n }
      const end = (tries: number) =>
        world.start(
          'stranger',
          USER_TIMEOUT_MS,
          (ctx) => leave(ctx, ref, runId, half),
          (inv) => {
            if (inv.state !== 'returned' && tries < 99) world.scheduler.after(1_000, () => end(tries + 1))
          },
        )
      // whether or not its answer comes, and longer than it may be on its way
      world.scheduler.after(forMs + USER_TIMEOUT_MS + 1_000, () => end(0))
      await ctx.store.hold(ref, runId, { hold: null, v: item.v }, { ...some, seq: 1 })
    }
  })
}

async function leave(ctx: EngineContext, ref: LimitRef, runId: string, spent: Amount): Promise<void> {
  const { held } = (await ctx.store.getLimit(ref))!
  if (!held[runId]) return
  const settled = await ctx.store.settleHold(ref, runId, held[runId], spent)
  if (settled.written) await wakeWaiting(ctx, ref, settled.item, runId, 2)
}

/** Twice as much as it may be now. */
function raise(world: World, ref: Ref): void {
  const limit = world.mirror.run?.limit
  if (!limit) return
  world.weather.count('budget raised')
  world.outer = world.outer.map((l) => ({
    ...l,
    limit: {
      usd: l.limit.usd < UNLIMITED ? 2n * l.limit.usd : UNLIMITED,
      tok: l.limit.tok < UNLIMITED ? 2n * l.limit.tok : UNLIMITED,
    },
  }))
  if (limit.usd >= UNLIMITED && limit.tok >= UNLIMITED) return
  world.start('budget', USER_TIMEOUT_MS, (ctx) =>
    changeBudget(ctx, ref, {
      ...(limit.usd < UNLIMITED && { usd: formatUsd(2n * limit.usd) }),
      ...(limit.tok < UNLIMITED && { tokens: Number(2n * limit.tok) }),
    }),
  )
}

/** Tool calls that somebody is waited for. */
const openAsks = (world: World) =>
  [...world.mirror.headers.values()].flatMap((h) =>
    [...h.asks].flatMap((ask) => {
      const [n, index] = ask.split('#').map(Number)
      return h.status === 'waiting' && index !== undefined ? [{ sessionId: h.sessionId, n: n!, index }] : []
    }),
  )

/** Somebody decides about one or two of them, or two do about the same; in a storm one may die over it. */
function decide(world: World, ref: Ref): void {
  const { random, weather } = world
  for (const place of [openAsks(world)[0], random.pick(openAsks(world))]) {
    if (!place) return
    weather.count('approval decided')
    const killed = weather.options.mode === 'storm' && weather.strikes(0.2)
    world.start('approval', killed ? random.below(30) : USER_TIMEOUT_MS, (ctx) => {
      const decision = random.chance(0.7) ? 'approve' : 'deny'
      return decideApproval(ctx, ref, approvalIdOf(place), { decision, by: null })
    })
  }
}

function cancel(world: World, ref: Ref): void {
  world.weather.count('cancel')
  world.start('cancel', USER_TIMEOUT_MS, (ctx) => cancelRun(ctx, ref))
}

function followUp(world: World, ref: Ref, twins: number): void {
  world.weather.count('follow-up input')
  if (twins > 1) world.weather.count('follow-up inputs at once')
  for (let i = 0; i < twins; i++) {
    world.start('input', USER_TIMEOUT_MS, (ctx) => addInput(ctx, ref, `further input ${world.now}/${i}`))
  }
}

function retry(world: World, ref: Ref, twins: number): void {
  world.weather.count('retry')
  if (twins > 1) world.weather.count('retries at once')
  for (let i = 0; i < twins; i++) world.start('retry', USER_TIMEOUT_MS, (ctx) => retryRun(ctx, ref))
}

/** Whether anybody waits with a time-out of its own, and not for somebody who will answer. */
const waitsForTime = (mirror: World['mirror']): boolean =>
  [...mirror.headers.values()].some((h) => h.status === 'waiting' && h.wakeAt !== null && h.asks.size === 0)

/** Lets everything happen that is going to happen. */
async function toRest(world: World, scenario: Scenario, each: () => Promise<void> | undefined): Promise<void> {
  const { scheduler, mirror } = world
  const sweeps = scenario.weather.mode !== 'nothing lost'
  const further = [
    ...scenario.followUps.map((f) => ({ ...f, send: followUp })),
    ...scenario.retries.map((f) => ({ ...f, send: retry })),
  ]
  let raises = scenario.seed % 4
  // what an outer limit has too little of comes back by itself, with the next day
  let days = scenario.outer.length > 0 ? 400 : 0
  let tick = START + world.random.below(SWEEP_EVERY_MS)
  let steps = 0
  await settle()
  while (world.broken === undefined) {
    const next = scheduler.peek()
    // a wait that ends by its time is ended by the sweep, also where nothing is lost
    const due = sweeps || (next === undefined && waitsForTime(mirror)) ? mirror.run?.dueAt : undefined
    if (mirror.run && isTerminal(mirror.run) && further.length > 0) {
      const { twins, afterMs, send } = further.shift()!
      const ref = { tenant: mirror.run.tenant, runId: mirror.run.runId }
      scheduler.after(afterMs, () => send(world, ref, twins))
      continue
    }
    // a run that is out of budget is helped some times, and then given up
    const comesBack = due !== undefined && due !== null && mirror.run?.short && days-- > 0
    if (mirror.run?.status === 'waiting' && next === undefined && !comesBack) {
      const ref = { tenant: mirror.run.tenant, runId: mirror.run.runId }
      if (raises-- > 0) scheduler.after(world.random.pick([5, 90_000, 3_600_000]), () => raise(world, ref))
      else scheduler.after(1_000, () => cancel(world, ref))
      continue
    }
    if (next === undefined && mirror.run?.status === 'running' && openAsks(world).length > 0) {
      const ref = { tenant: mirror.run.tenant, runId: mirror.run.runId }
      scheduler.after(world.random.pick([5, 5, 90_000, 3_600_000]), () => decide(world, ref))
      continue
    }
    if (next === undefined && (due === undefined || due === null)) {
      if (!world.options.plan?.onIdle(world)) return
      continue
    }
    while (due && tick < due && (next === undefined || tick < next)) tick += SWEEP_EVERY_MS
    if (due && tick >= due && (next === undefined || tick <= next)) {
      scheduler.now = Math.max(scheduler.now, tick)
      tick += SWEEP_EVERY_MS
      world.lambda.sweepTick()
    } else scheduler.step()
    await settle()
    await each()
    if (++steps > MOST_STEPS) world.fail(`9: no rest after ${steps} steps`)
    if (scheduler.now > START + MOST_MS) world.fail('9: no rest after eight days of virtual time')
  }
}
