/** Lambda's asynchronous invocation: at least once, sometimes twice, sometimes late, sometimes never; retries, dead letters. */
import type { SessionRef } from '../../src/domain/run.ts'
import { runSession } from '../../src/engine/run-session.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { sweepSession } from '../../src/engine/sweep-run.ts'
import type { CallFault } from './weather.ts'
import type { Invocation, PortCall, World } from './world.ts'

interface Event {
  readonly ref: SessionRef
  readonly id: number
  /** deliveries so far */
  n: number
}

const RETRY_DELAYS_MS = [60_000, 120_000]
/** How often a dead letter's own handler is tried. */
const LETTER_TRIES = 3
const SWEEP_TIMEOUT_MS = 60_000

export class Lambda {
  readonly #world: World
  #events = 0

  constructor(world: World) {
    this.#world = world
  }

  invoke(inv: Invocation, ref: SessionRef): Promise<void> {
    const world = this.#world
    world.invariants.invokes(inv, ref)
    const what = () => `invoke ${world.nameOf(ref.sessionId)}`
    return world.port(inv, 'invoke', what, () => void this.send(ref, this.#soon()), ref)
  }

  /** The event is accepted, and something is wrong with its delivery. */
  applyWith(fault: CallFault, call: PortCall): void {
    const { weather, random } = this.#world
    const ref = call.ref!
    if (fault === 'drop') {
      weather.count('event dropped')
      this.#world.note(call.inv, '... and the event is lost')
      this.#world.invariants.eventLost(ref)
      return
    }
    if (fault === 'cut') {
      // a chain of self-invocations that Lambda takes for a loop: the event goes to the failure destination at once
      weather.count('event dead')
      this.#world.invariants.accepted(ref)
      this.#world.scheduler.after(random.between(10, 5_000), () => this.#letter(ref, LETTER_TRIES))
      return
    }
    if (fault === 'delay') {
      weather.count('event delayed')
      this.send(ref, random.between(5_000, 200_000))
      return
    }
    const first = this.#soon()
    const id = this.send(ref, first)
    if (fault === 'dup') {
      weather.count('event delivered twice')
      this.send(ref, random.between(10, 120_000), id)
    } else {
      weather.count('event delivered twice at once')
      this.send(ref, first, id)
    }
  }

  /** Puts an event in line. */
  send(ref: SessionRef, ms: number, id = ++this.#events): number {
    this.#world.invariants.accepted(ref)
    this.#deliverLater({ ref, id, n: 0 }, ms)
    return id
  }

  #soon(): number {
    const { latency } = this.#world.weather.options
    return latency === 'none' ? 0 : this.#world.random.below(40)
  }

  #deliverLater(event: Event, ms: number): void {
    this.#world.scheduler.after(ms, () => this.#deliver(event))
  }

  #deliver(event: Event): void {
    const world = this.#world
    event.n++
    world.start(
      'worker',
      world.options.workerTimeoutMs,
      (ctx, inv) => runSession(ctx, event.ref, { deadlineAt: inv.deadlineAt + inv.skew }),
      (inv) => {
        if (inv.state !== 'returned') this.#failed(inv, event)
      },
      { ref: event.ref, event: event.id },
    )
  }

  #failed(inv: Invocation, event: Event): void {
    const { weather, random } = this.#world
    const delay = RETRY_DELAYS_MS[event.n - 1]
    if (inv.state === 'crashed' && random.chance(weather.never)) {
      weather.count('crash without a retry')
      return
    }
    if (delay !== undefined) {
      weather.count('event retried')
      return this.#deliverLater(event, delay + random.below(2_000))
    }
    weather.count('event dead')
    this.#letter(event.ref, LETTER_TRIES)
  }

  #letter(ref: SessionRef, tries: number): void {
    if (tries === 0) return
    this.#world.start(
      'dead letter',
      SWEEP_TIMEOUT_MS,
      (ctx) => sweepSession(ctx, ref),
      (inv) => {
        if (inv.state !== 'returned') this.#world.scheduler.after(60_000, () => this.#letter(ref, tries - 1))
      },
    )
  }

  /** The scheduled sweep: each minute, sometimes not, sometimes twice. */
  sweepTick(): void {
    const { weather } = this.#world
    if (weather.strikes(0.2)) {
      weather.count('sweep dropped')
      this.#world.invariants.sweepLost()
      return
    }
    this.startSweep()
    if (weather.strikes(0.2)) {
      weather.count('sweeps beside each other')
      this.startSweep()
    }
  }

  startSweep(): void {
    this.#world.start(
      'sweep',
      SWEEP_TIMEOUT_MS,
      (ctx, inv) => sweep(ctx, { deadlineAt: inv.deadlineAt + inv.skew }),
      (inv) => {
        if (inv.state !== 'returned') this.#world.invariants.sweepLost()
      },
    )
  }
}
