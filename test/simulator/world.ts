/**
 * The world of one seed: a table, Lambda, a provider, time. The engine and the store are the real ones; every call of
 * theirs to a port stops here, becomes an entry of the scheduler, and is answered when its time comes, or never.
 */

import type { Amount } from '../../src/domain/money.ts'
import type { OuterLimit } from '../../src/domain/outer-limit.ts'
import type { SessionRef } from '../../src/domain/run.ts'
import type { TeamDefinition } from '../../src/domain/team.ts'
import type { EngineContext } from '../../src/engine/context.ts'
import type { Clock, Ids, Logger, Teams } from '../../src/ports.ts'
import { type MemoryTable, memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { Item } from '../../src/store/table-client.ts'
import { Invariants } from './invariants.ts'
import { Lambda } from './lambda.ts'
import { Mirror } from './mirror.ts'
import { Provider } from './provider.ts'
import { type Random, randomText } from './random.ts'
import { Scheduler } from './scheduler.ts'
import { faultyTable } from './table.ts'
import type { CallFault, CallKind, Weather } from './weather.ts'

/** A fault that the simulator threw: what the engine throws because of it is no fault of the engine's. */
export class Injected extends Error {
  override readonly name = 'Injected'
}

export type InvocationKind =
  | 'start'
  | 'worker'
  | 'sweep'
  | 'dead letter'
  | 'cancel'
  | 'input'
  | 'retry'
  | 'budget'
  | 'approval'
  | 'stranger'
export type InvocationState = 'running' | 'returned' | 'threw' | 'crashed' | 'killed'

export interface Invocation {
  readonly id: number
  readonly kind: InvocationKind
  /** whose event a worker was started with */
  readonly ref: SessionRef | undefined
  /** number of that event: its duplicates and retries share it */
  readonly event: number | undefined
  readonly deadlineAt: number
  readonly skew: number
  state: InvocationState
  /** stands still until then */
  frozenUntil: number
  /** something went wrong with it, and when that was last */
  hurtAt: number | undefined
  /** what it has asked for and not been answered */
  readonly calls: Set<PortCall>
  /** calls that stand still while it is held; undefined: it is not held */
  held: PortCall[] | undefined
  /** told when it ends in whatever way */
  ended: ((error?: unknown) => void) | undefined
}

export interface PortCall {
  readonly inv: Invocation
  readonly kind: CallKind
  readonly what: () => string
  /** does it; what it resolves with is the answer */
  readonly apply: () => unknown
  /** whom an invocation is for */
  readonly ref?: SessionRef
  readonly resolve: (value: unknown) => void
  readonly reject: (fault: Error) => void
}

/** Says what happens at each call, for schedules that are exhaustive and not random. */
export interface Plan {
  /** asked once before each call is applied; it may also hold and release invocations */
  onCall(world: World, call: PortCall): 'crash, applied' | 'crash, not applied' | undefined
  /** asked when nothing is going on any more; true: something is going on again */
  onIdle(world: World): boolean
}

export interface WorldOptions {
  readonly random: Random
  readonly weather: Weather
  readonly team: TeamDefinition
  readonly seed: number
  readonly leaseMs: number
  readonly eventAgeMs: number
  readonly workerTimeoutMs: number
  readonly maxConcurrency: number
  readonly budget: Amount | undefined
  readonly outer: readonly OuterLimit[]
  readonly trace: boolean
  /** where given, decides what happens; otherwise the weather does */
  readonly plan?: Plan
}

export const START = Date.UTC(2026, 0, 5, 9)
/** How long a write may be unseen by reads that are not consistent. */
const STALE_MS = 3_000
const NEVER = new Promise<never>(() => {})

export class World {
  readonly options: WorldOptions
  readonly random: Random
  readonly weather: Weather
  readonly scheduler: Scheduler
  readonly table: MemoryTable
  readonly mirror = new Mirror()
  readonly invariants: Invariants
  readonly provider: Provider
  readonly lambda: Lambda
  readonly teams: Teams
  readonly trace: string[] = []
  readonly invocations: Invocation[] = []
  /** what sessions are called in a trace: `root`, `root.0`, `root.0.3` */
  readonly names = new Map<string, string>()
  /** when each item was last written, by sort key */
  readonly writtenAt = new Map<string, number>()
  /** items as they were last written; kept for a trace only */
  readonly raw = new Map<string, Item>()
  /** as they are configured now */
  outer: readonly OuterLimit[]
  portCalls = 0
  broken: string | undefined

  constructor(options: WorldOptions) {
    this.options = options
    this.outer = options.outer
    this.random = options.random
    this.weather = options.weather
    this.scheduler = new Scheduler(START, options.random)
    this.table = memoryTable({
      stale: ({ sk }) => this.now - (this.writtenAt.get(sk) ?? 0) < STALE_MS && this.weather.isStale(),
    })
    this.invariants = new Invariants(this)
    this.provider = new Provider(this)
    this.lambda = new Lambda(this)
    const { team } = options
    this.teams = { list: async () => [{ name: team.name, description: '' }], get: async () => team }
  }

  get now(): number {
    return this.scheduler.now
  }

  /** The first broken invariant ends the seed. */
  fail(message: string): void {
    if (this.broken === undefined) this.note(undefined, `BROKEN: ${message}`)
    this.broken ??= message
  }

  note(inv: Invocation | undefined, text: string): void {
    if (!this.options.trace) return
    const at = `${((this.now - START) / 1000).toFixed(3)}s`.padStart(12)
    this.trace.push(`${at}  ${(inv ? this.who(inv) : '').padEnd(26)} ${text}`)
  }

  who(inv: Invocation): string {
    return `${inv.kind} ${inv.id}${inv.ref ? ` of ${this.nameOf(inv.ref.sessionId)}` : ''}`
  }

  nameOf(sessionId: string): string {
    return this.names.get(sessionId) ?? sessionId
  }

  /** Starts an invocation; it ends when `body` does, at its deadline, or by a crash. */
  start(
    kind: InvocationKind,
    timeoutMs: number,
    body: (ctx: EngineContext, inv: Invocation) => Promise<unknown>,
    ended: (inv: Invocation, error?: unknown) => void = () => {},
    of: { readonly ref?: SessionRef; readonly event?: number } = {},
  ): Invocation {
    const inv: Invocation = {
      id: this.invocations.length + 1,
      kind,
      ref: of.ref,
      event: of.event,
      deadlineAt: this.now + timeoutMs,
      skew: this.weather.clockSkew(),
      state: 'running',
      frozenUntil: 0,
      hurtAt: undefined,
      calls: new Set(),
      held: undefined,
      ended: undefined,
    }
    this.invocations.push(inv)
    this.note(inv, 'begins')
    const deadline = this.scheduler.after(timeoutMs, () => {
      if (inv.state !== 'running') return
      this.weather.count('killed at the deadline')
      this.die(inv, 'killed')
    })
    inv.ended = (error) => {
      deadline.cancelled = true
      ended(inv, error)
    }
    body(this.#context(inv), inv).then(
      () => this.#over(inv, 'returned'),
      (error) => this.#over(inv, 'threw', error),
    )
    return inv
  }

  #over(inv: Invocation, state: 'returned' | 'threw', error?: unknown): void {
    if (inv.state !== 'running') return
    inv.state = state
    inv.held = undefined
    this.note(inv, state === 'threw' ? `throws: ${error instanceof Error ? error.message : error}` : 'returns')
    if (state === 'threw') this.invariants.threw(inv, error)
    // what it did not wait for stands still with its container: half of it goes on when the container does
    if (inv.calls.size > 0 && this.random.chance(0.5)) inv.calls.clear()
    inv.ended?.(error)
  }

  /** An invocation ends without a word. Of what it had under way, each write is applied now, later or never. */
  die(inv: Invocation, how: 'crashed' | 'killed', first?: PortCall, variant?: 'applied' | 'not applied'): void {
    if (inv.state !== 'running') return
    inv.state = how
    inv.hurtAt = this.now
    this.note(inv, how === 'killed' ? 'is KILLED at its deadline' : `CRASHES at ${first ? first.what() : 'once'}`)
    for (const call of inv.calls) {
      if (call.kind === 'sleep' || call.kind === 'read' || call.kind === 'answer') continue
      const fate = (call === first && variant) || this.random.pick(['not applied', 'applied', 'later'] as const)
      if (how === 'crashed' && call === first) {
        this.weather.count(
          fate === 'applied'
            ? 'crash, call applied'
            : fate === 'later'
              ? 'crash, write arrives later'
              : 'crash, call not applied',
        )
      }
      if (fate === 'applied') void call.apply()
      if (fate === 'later') this.scheduler.after(this.random.below(30_000), () => void call.apply())
    }
    if (first && (first.kind === 'sleep' || first.kind === 'read' || first.kind === 'answer')) {
      this.weather.count('crash, call not applied')
    }
    inv.calls.clear()
    this.provider.orphan(inv)
    inv.ended?.()
  }

  freeze(inv: Invocation, ms: number): void {
    this.note(inv, `STANDS STILL for ${Math.round(ms / 1000)} s`)
    inv.frozenUntil = this.now + ms
    inv.hurtAt = inv.frozenUntil
    if (inv.kind === 'sweep') this.invariants.sweepLost(inv.frozenUntil)
  }

  /** An invocation stands still until it is released. */
  hold(inv: Invocation): void {
    this.note(inv, 'is HELD')
    inv.held = []
    inv.hurtAt = Number.POSITIVE_INFINITY
  }

  release(inv: Invocation): void {
    this.note(inv, 'goes on')
    const held = inv.held ?? []
    inv.held = undefined
    inv.hurtAt = this.now
    for (const call of held) this.#later(call, 0)
  }

  /** One call of an invocation to a port. */
  port<T>(
    inv: Invocation,
    kind: CallKind,
    what: () => string,
    apply: () => T | Promise<T>,
    ref?: SessionRef,
  ): Promise<T> {
    if (inv.state === 'crashed' || inv.state === 'killed') return NEVER
    this.portCalls++
    return new Promise<T>((resolve, reject) => {
      const call: PortCall = {
        inv,
        kind,
        what,
        apply,
        ...(ref && { ref }),
        resolve: resolve as (value: unknown) => void,
        reject,
      }
      inv.calls.add(call)
      this.scheduler.after(this.weather.latency(), () => this.#turn(call))
    })
  }

  #turn(call: PortCall): void {
    const { inv } = call
    if (!inv.calls.has(call)) return
    if (inv.held) return void inv.held.push(call)
    if (inv.frozenUntil > this.now) return this.#later(call, inv.frozenUntil - this.now)
    const planned = this.options.plan?.onCall(this, call)
    if (planned) return this.die(inv, 'crashed', call, planned === 'crash, applied' ? 'applied' : 'not applied')
    if (inv.held) return void (inv.held as PortCall[]).push(call)
    const fault = inv.state === 'running' ? this.weather.onCall(call.kind) : undefined
    if (fault) inv.hurtAt = Math.max(inv.hurtAt ?? 0, this.now)
    switch (fault) {
      case undefined:
      case 'drop':
      case 'delay':
      case 'dup':
      case 'twin':
      case 'cut':
        return this.#answer(call, this.#applied(call, fault))
      case 'crash':
        return this.die(inv, 'crashed', call)
      case 'pause':
        this.weather.count('invocation paused')
        this.freeze(inv, this.weather.pause())
        return this.#later(call, inv.frozenUntil - this.now)
      case 'pause after': {
        this.weather.count('invocation paused')
        const answer = this.#applied(call)
        this.freeze(inv, this.weather.pause())
        return this.#answerAfter(call, answer, inv.frozenUntil - this.now)
      }
      case 'slow': {
        this.weather.count('slow answer')
        const ms = this.random.between(300, 8_000)
        this.note(inv, `... the answer takes ${ms} ms`)
        inv.hurtAt = this.now + ms
        return this.#answerAfter(call, this.#applied(call), ms)
      }
      case 'lost': {
        this.weather.count('answer lost, sent again')
        void this.#applied(call)
        this.note(inv, '... its answer is lost, the same request is sent again')
        this.scheduler.after(this.random.between(20, 800), () => {
          if (inv.calls.has(call)) this.#answer(call, this.#applied(call))
        })
        return
      }
      case 'lost and thrown':
        this.weather.count('answer lost, thrown')
        void this.#applied(call)
        return this.#throw(call, 'the answer was lost')
      case 'refuse':
        this.weather.count('event refused')
        if (this.random.chance(0.5)) void this.#applied(call)
        return this.#throw(call, 'the invocation was refused')
      case 'throttled':
        this.weather.count(call.kind === 'write' ? 'write throttled' : 'read throttled')
        return this.#throw(call, 'throttled')
    }
  }

  #applied(call: PortCall, fault?: CallFault): unknown {
    if (this.options.trace && call.kind !== 'sleep') this.note(call.inv, call.what())
    return fault && call.kind === 'invoke' ? this.lambda.applyWith(fault, call) : call.apply()
  }

  #later(call: PortCall, ms: number): void {
    this.scheduler.after(ms, () => this.#turn(call))
  }

  #answer(call: PortCall, answer: unknown): void {
    call.inv.calls.delete(call)
    call.resolve(answer)
  }

  #answerAfter(call: PortCall, answer: unknown, ms: number): void {
    this.scheduler.after(ms, () => {
      if (!call.inv.calls.has(call)) return
      const wait = call.inv.frozenUntil - this.now
      if (wait > 0) this.#answerAfter(call, answer, wait)
      else this.#answer(call, answer)
    })
  }

  #throw(call: PortCall, message: string): void {
    this.note(call.inv, `${call.what()}: ${message}`)
    call.inv.calls.delete(call)
    call.reject(new Injected(message))
  }

  #context(inv: Invocation): EngineContext {
    return {
      store: createStore(faultyTable(this, inv)),
      teams: this.teams,
      prices: { of: async () => undefined },
      ...(this.options.outer.length > 0 && {
        outerLimits: { of: async () => this.outer, requiredTags: async () => [] },
      }),
      model: { call: (request) => this.provider.call(inv, request) },
      invoker: { invoke: (ref) => this.lambda.invoke(inv, ref) },
      clock: this.#clock(inv),
      ids: this.#ids(inv),
      log: this.#logger(inv),
      settings: { leaseMs: this.options.leaseMs, eventAgeMs: this.options.eventAgeMs },
    }
  }

  #ids(inv: Invocation): Ids & { requestId(): string } {
    return {
      runId: () => randomText(this.random, 26).toUpperCase(),
      nonce: () => randomText(this.random, 16),
      // what Lambda gives an event: its repeats share it. The product must not use it; a mutant does
      requestId: () => `event${String(inv.event ?? 0).padStart(11, '0')}`,
    }
  }

  #clock(inv: Invocation): Clock {
    return {
      now: () => this.now + inv.skew,
      sleep: (ms, signal) => {
        if (signal?.aborted) return Promise.resolve()
        if (inv.state === 'crashed' || inv.state === 'killed') return NEVER
        this.invariants.sleeps(inv, ms)
        return new Promise((resolve, reject) => {
          const call: PortCall = {
            inv,
            kind: 'sleep',
            what: () => `sleep of ${ms} ms`,
            apply: () => undefined,
            resolve: () => resolve(),
            reject,
          }
          inv.calls.add(call)
          this.scheduler.after(ms, () => this.#turn(call))
          signal?.addEventListener('abort', () => {
            if (inv.calls.delete(call)) resolve()
          })
        })
      },
    }
  }

  #logger(inv: Invocation): Logger {
    const log = (level: string) => (message: string, fields?: object) => {
      this.note(inv, `${level}: ${message} ${JSON.stringify(fields ?? {})}`)
      if (level === 'error') this.invariants.loggedError(message, fields)
    }
    return { info: log('info'), warn: log('warn'), error: log('error') }
  }
}
