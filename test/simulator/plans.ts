/** Exhaustive schedules: a crash at every call, and two drivers of one session that take turns at every pair of points. */
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import { type Outcome, runScenario, worldOf } from './run-seed.ts'
import type { Scenario } from './scenario.ts'
import type { Invocation, Plan, PortCall, World } from './world.ts'

/** Crashes the invocation whose call is the `at`-th of the whole run. */
class CrashAt implements Plan {
  #seen = 0
  struck = false
  readonly #at: number
  readonly #variant: 'crash, applied' | 'crash, not applied'

  constructor(at: number, variant: 'crash, applied' | 'crash, not applied') {
    this.#at = at
    this.#variant = variant
  }

  onCall(_world: World, call: PortCall): 'crash, applied' | 'crash, not applied' | undefined {
    if (call.kind === 'sleep' || this.#seen++ !== this.#at) return undefined
    this.struck = true
    return this.#variant
  }

  onIdle(): boolean {
    return false
  }
}

/** Runs a scenario with a crash at call `at`; undefined: the run has no such call. */
export async function crashAt(
  scenario: Scenario,
  at: number,
  variant: 'crash, applied' | 'crash, not applied',
  trace = false,
): Promise<Outcome | undefined> {
  const plan = new CrashAt(at, variant)
  const outcome = await runScenario(scenario, worldOf(scenario, { trace, plan }))
  return plan.struck ? outcome : undefined
}

/**
 * The first driver of a session is held at its call `a`; when another one has made `b` calls it is held in its turn, the
 * first goes on to its end, and then the second.
 */
class Duel implements Plan {
  readonly #path: readonly number[]
  readonly #a: number
  readonly #b: number
  readonly #seen = new Set<PortCall>()
  #first: Invocation | undefined
  #second: Invocation | undefined
  #calls = { first: 0, second: 0 }
  /** the first was held, the second was held */
  heldFirst = false
  heldSecond = false

  constructor(path: readonly number[], a: number, b: number) {
    this.#path = path
    this.#a = a
    this.#b = b
  }

  onCall(world: World, call: PortCall): undefined {
    const { inv } = call
    this.#moveOn(world)
    if (inv.kind !== 'worker' || call.kind === 'sleep' || !this.#isContested(world, inv) || this.#seen.has(call)) return
    this.#seen.add(call)
    if (!this.#first) this.#first = inv
    else if (inv !== this.#first && this.heldFirst && !this.#second) this.#second = inv
    if (inv === this.#first && !this.heldFirst && this.#calls.first++ === this.#a) {
      this.heldFirst = true
      world.hold(inv)
    } else if (inv === this.#second && !this.heldSecond && this.#calls.second++ === this.#b) {
      this.heldSecond = true
      world.hold(inv)
      if (this.#first?.held) world.release(this.#first)
    }
  }

  onIdle(world: World): boolean {
    return this.#moveOn(world, true)
  }

  /** Whoever waits for the other to end goes on when that has happened, or when nothing else happens. */
  #moveOn(world: World, idle = false): boolean {
    const [first, second] = [this.#first, this.#second]
    const over = (inv: Invocation | undefined) => inv !== undefined && inv.state !== 'running'
    if (first?.held && (idle || over(second))) {
      world.release(first)
      return true
    }
    if (second?.held && (idle || over(first))) {
      world.release(second)
      return true
    }
    return false
  }

  #isContested(world: World, inv: Invocation): boolean {
    const root = rootSessionId(world.mirror.run!.runId)
    return inv.ref!.sessionId === this.#path.reduce((s, o) => childSessionId(s, o), root)
  }
}

export interface DuelOutcome extends Outcome {
  readonly a: number
  readonly b: number
}

/** One pair of switch points. */
export async function duel(scenario: Scenario, path: readonly number[], a: number, b: number, trace = false) {
  const plan = new Duel(path, a, b)
  const outcome = await runScenario(scenario, worldOf(scenario, { trace, plan }))
  return { plan, outcome: { ...outcome, a, b } satisfies DuelOutcome }
}

/** Every pair of switch points of two drivers. */
export async function* grid(scenario: Scenario, path: readonly number[]): AsyncGenerator<DuelOutcome> {
  for (let a = 0; ; a++) {
    for (let b = 0; ; b++) {
      const { plan, outcome } = await duel(scenario, path, a, b)
      if (!plan.heldFirst) return
      yield outcome
      if (!plan.heldSecond) break
    }
  }
}
