/** What goes wrong in one seed, how often, and how fast everything is. Every fault is counted by its kind. */
import type { Random } from './random.ts'

export type FaultKind =
  | 'crash, call not applied'
  | 'crash, call applied'
  | 'crash, write arrives later'
  | 'crash without a retry'
  | 'killed at the deadline'
  | 'invocation paused'
  | 'slow answer'
  | 'answer lost, sent again'
  | 'answer lost, thrown'
  | 'write throttled'
  | 'read throttled'
  | 'stale read'
  | 'event dropped'
  | 'event delayed'
  | 'event delivered twice'
  | 'event delivered twice at once'
  | 'event refused'
  | 'event retried'
  | 'event dead'
  | 'model refused'
  | 'model failed after spend'
  | 'stream broken'
  | 'model slow'
  | 'model hangs'
  | 'cancel'
  | 'budget raised'
  | 'approval decided'
  | 'follow-up input'
  | 'follow-up inputs at once'
  | 'retry'
  | 'retries at once'
  | 'start crashed'
  | 'sweep dropped'
  | 'sweeps beside each other'
  | 'sweep at a random time'
  | 'clock skewed'

export type CallKind = 'read' | 'write' | 'invoke' | 'model' | 'answer' | 'sleep'

/** What may happen to one port call. */
export type CallFault =
  | 'crash'
  | 'pause'
  | 'pause after'
  | 'slow'
  | 'lost'
  | 'lost and thrown'
  | 'throttled'
  | 'drop'
  | 'delay'
  | 'dup'
  | 'twin'
  | 'refuse'
  | 'cut'

type Weights = { readonly [fault in CallFault]?: number }

const STORM: { readonly [kind in CallKind]: Weights } = {
  write: { crash: 4, pause: 1, 'pause after': 1, slow: 1, lost: 3, 'lost and thrown': 2.2, throttled: 2.2 },
  read: { crash: 2, pause: 1, slow: 1, throttled: 1 },
  invoke: { crash: 2, drop: 3.6, delay: 3, dup: 3, twin: 3, refuse: 6, cut: 4 },
  model: { crash: 2 },
  answer: { crash: 3, pause: 3 },
  sleep: { crash: 1, pause: 1 },
}

/** Nothing is lost for good, so nobody needs the sweep. */
const NOTHING_LOST: { readonly [kind in CallKind]: Weights } = {
  write: { pause: 1, 'pause after': 1, slow: 1, lost: 3 },
  read: { pause: 1, slow: 1 },
  invoke: { delay: 1, dup: 2, twin: 2 },
  model: {},
  answer: { pause: 1 },
  sleep: {},
}

/** Kinds of calls are not equally frequent: with these factors each kind of fault comes often enough. */
const EXPOSURE: { readonly [kind in CallKind]: number } = {
  write: 1,
  read: 0.35,
  invoke: 5,
  model: 1.5,
  answer: 2,
  sleep: 0.5,
}

export interface WeatherOptions {
  /** `fair`: nothing goes wrong; `nothing lost`: no sweep runs either */
  readonly mode: 'fair' | 'nothing lost' | 'storm'
  /** most faults of calls */
  readonly most: number
  /** chance of a fault for each call */
  readonly rate: number
  /** chance that a read that may be stale is stale */
  readonly stale: number
  readonly latency: 'none' | 'short' | 'mixed'
  /** most by which a clock may be wrong, ms */
  readonly skew: number
  /** chance that a model call goes wrong in some way */
  readonly modelTrouble: number
}

export const FAIR: WeatherOptions = {
  mode: 'fair',
  most: 0,
  rate: 0,
  stale: 0,
  latency: 'none',
  skew: 0,
  modelTrouble: 0,
}

export class Weather {
  readonly options: WeatherOptions
  readonly counts = new Map<FaultKind, number>()
  readonly #random: Random
  #left: number

  constructor(options: WeatherOptions, random: Random) {
    this.options = options
    this.#random = random
    this.#left = options.most
  }

  count(kind: FaultKind): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
  }

  /** Whether anything may still go wrong. */
  get over(): boolean {
    return this.#left <= 0
  }

  /** Whether something of this chance happens now; it is one of the faults of this seed. */
  strikes(chance: number): boolean {
    if (this.#left <= 0 || !this.#random.chance(chance)) return false
    this.#left--
    return true
  }

  /** What happens to this call. */
  onCall(kind: CallKind): CallFault | undefined {
    if (this.options.mode === 'fair' || this.#left <= 0) return undefined
    if (!this.#random.chance(this.options.rate * EXPOSURE[kind])) return undefined
    const weights = (this.options.mode === 'storm' ? STORM : NOTHING_LOST)[kind]
    if (Object.keys(weights).length === 0) return undefined
    this.#left--
    return this.#random.weighted<CallFault>(weights)
  }

  /** What is lost for good by a crash: the event comes again, or never. */
  readonly never = 0.25

  isStale(): boolean {
    if (this.options.stale === 0 || !this.#random.chance(this.options.stale)) return false
    this.count('stale read')
    return true
  }

  /** How long a call takes, ms. */
  latency(): number {
    const { latency } = this.options
    if (latency === 'none') return 0
    if (latency === 'mixed' && this.#random.chance(0.1)) return this.#random.below(150)
    return 1 + this.#random.below(10)
  }

  clockSkew(): number {
    const { skew } = this.options
    if (skew === 0) return 0
    this.count('clock skewed')
    return this.#random.between(-skew, skew)
  }

  /** How long an invocation stands still: mostly long enough for its lease to run out. */
  pause(): number {
    if (this.options.mode !== 'storm') return this.#random.between(1_000, 30_000)
    return this.#random.chance(0.3) ? this.#random.between(500, 60_000) : this.#random.between(90_000, 400_000)
  }
}
