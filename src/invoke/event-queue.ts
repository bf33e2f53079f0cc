import { randomUUID } from 'node:crypto'
import type { Clock, Logger } from '../ports.ts'

/**
 * Lambda's queue for asynchronous invocations, in one process: an event is accepted at once and delivered later, at
 * least once; a delivery that fails is tried again after a delay; what cannot be delivered becomes a dead letter.
 */
export interface EventQueue {
  /** Takes an event and returns: nothing is delivered in the caller's stack. @throws Error when closed */
  send(payload: string): void
  counts(): QueueCounts
  /** resolves when nothing waits, runs or is to be retried */
  drain(): Promise<void>
  /** Takes no more events, forgets what waits, and gives running deliveries `graceMs` to end. Tells how many did not. */
  close(graceMs?: number): Promise<{ readonly abandoned: number }>
}

export interface Delivery {
  /** the same for every delivery of one event, as on Lambda */
  readonly requestId: string
  /** 1 for the first delivery, one more with each retry */
  readonly n: number
  /** epoch ms after which the delivery counts as timed out */
  readonly deadlineAt: number
}

export interface QueueSettings {
  /** how long one delivery may take, ms */
  readonly timeoutMs: number
  /** delays before the retries, ms; as many retries as there are delays */
  readonly retryDelaysMs: readonly number[]
  /** an event older than this is not delivered any more, ms */
  readonly maxEventAgeMs: number
  /** deliveries that may run at once; more wait in the order they came */
  readonly concurrency: number
}

/** What Lambda does unless told otherwise. */
export const LAMBDA_SETTINGS: QueueSettings = {
  timeoutMs: 900_000,
  retryDelaysMs: [60_000, 120_000],
  maxEventAgeMs: 21_600_000,
  concurrency: 1_000,
}

export interface QueueCounts {
  readonly accepted: number
  /** deliveries begun: first ones, duplicates and retries */
  readonly delivered: number
  readonly succeeded: number
  /** deliveries that ended in an error, time-outs included */
  readonly failed: number
  readonly timedOut: number
  readonly retried: number
  readonly duplicated: number
  readonly dead: number
  readonly running: number
  readonly maxRunning: number
  /** accepted and neither running nor done */
  readonly waiting: number
}

/** The envelope in which Lambda hands an event to its on-failure destination. */
export interface DeadLetter {
  readonly version: '1.0'
  readonly timestamp: string
  readonly requestContext: {
    readonly requestId: string
    readonly functionArn: string
    readonly condition: 'RetriesExhausted' | 'EventAgeExceeded'
    readonly approximateInvokeCount: number
  }
  readonly requestPayload: unknown
  /** absent when the event was never delivered */
  readonly responsePayload?: { readonly errorType: string; readonly errorMessage: string }
}

export interface EventQueueOptions {
  /** for logs and dead letters */
  readonly functionName: string
  readonly clock: Clock
  readonly log: Logger
  readonly deliver: (payload: unknown, delivery: Delivery) => Promise<unknown>
  readonly onDeadLetter?: (letter: DeadLetter) => Promise<void>
  readonly settings?: Partial<QueueSettings>
  /** asked once for every event: whether to deliver it twice, as Lambda sometimes does */
  readonly duplicate?: () => boolean
}

interface Event {
  readonly payload: string
  readonly requestId: string
  readonly acceptedAt: number
  /** deliveries so far */
  n: number
}

const TIMED_OUT = Symbol('timed out')

export function createEventQueue(options: EventQueueOptions): EventQueue {
  const { clock, log, functionName } = options
  const settings: QueueSettings = { ...LAMBDA_SETTINGS, ...options.settings }
  const counts = {
    accepted: 0,
    delivered: 0,
    succeeded: 0,
    failed: 0,
    timedOut: 0,
    retried: 0,
    duplicated: 0,
    dead: 0,
    running: 0,
    maxRunning: 0,
  }
  const ready: Event[] = []
  /** events that wait for their time, or whose dead letter is on its way */
  let pending = 0
  const stopped = new AbortController()
  const whenIdle: (() => void)[] = []

  const idle = () => ready.length === 0 && pending === 0 && counts.running === 0

  function wakeIdle(): void {
    if (idle()) for (const wake of whenIdle.splice(0)) wake()
  }

  /** Puts the event in line after `ms`; through the clock even for 0, so that no caller's stack is used. */
  async function later(event: Event, ms: number): Promise<void> {
    pending++
    await clock.sleep(ms, stopped.signal)
    pending--
    if (!stopped.signal.aborted) ready.push(event)
    pump()
  }

  function pump(): void {
    while (counts.running < settings.concurrency && ready.length > 0) void run(ready.shift()!)
    wakeIdle()
  }

  async function run(event: Event): Promise<void> {
    if (tooOld(event, clock.now())) return bury(event, 'EventAgeExceeded')
    event.n++
    counts.delivered++
    counts.running++
    counts.maxRunning = Math.max(counts.maxRunning, counts.running)
    const error = await attempt(event)
    counts.running--
    if (error === undefined) counts.succeeded++
    else failed(event, error)
    pump()
  }

  /** One delivery. Resolves with what went wrong; after its deadline nothing that it still says matters. */
  async function attempt(event: Event): Promise<Error | undefined> {
    const deadlineAt = clock.now() + settings.timeoutMs
    const over = new AbortController()
    try {
      const outcome = await Promise.race([
        options.deliver(JSON.parse(event.payload), { requestId: event.requestId, n: event.n, deadlineAt }),
        clock.sleep(settings.timeoutMs, over.signal).then(() => TIMED_OUT),
      ])
      if (outcome !== TIMED_OUT) return undefined
      counts.timedOut++
      return new Error(`Task timed out after ${settings.timeoutMs / 1000} seconds`)
    } catch (e) {
      return e instanceof Error ? e : new Error(String(e))
    } finally {
      over.abort()
    }
  }

  function failed(event: Event, error: Error): void {
    counts.failed++
    const delay = settings.retryDelaysMs[event.n - 1]
    log.warn('invocation failed', {
      function: functionName,
      requestId: event.requestId,
      delivery: event.n,
      error: error.message,
      retryInMs: delay ?? null,
    })
    if (stopped.signal.aborted) return
    if (delay === undefined) return void bury(event, 'RetriesExhausted', error)
    if (tooOld(event, clock.now() + delay)) return void bury(event, 'EventAgeExceeded', error)
    counts.retried++
    void later(event, delay)
  }

  const tooOld = (event: Event, at: number) => at - event.acceptedAt > settings.maxEventAgeMs

  async function bury(
    event: Event,
    condition: DeadLetter['requestContext']['condition'],
    error?: Error,
  ): Promise<void> {
    counts.dead++
    pending++
    const letter: DeadLetter = {
      version: '1.0',
      timestamp: new Date(clock.now()).toISOString(),
      requestContext: {
        requestId: event.requestId,
        functionArn: functionName,
        condition,
        approximateInvokeCount: event.n,
      },
      requestPayload: JSON.parse(event.payload),
      ...(error && { responsePayload: { errorType: error.name, errorMessage: error.message } }),
    }
    try {
      await options.onDeadLetter?.(letter)
    } catch (e) {
      log.error('dead letter lost', { function: functionName, requestId: event.requestId, error: e })
    }
    pending--
    wakeIdle()
  }

  return {
    send(payload) {
      if (stopped.signal.aborted)
        throw new Error(`The event queue of ${functionName} is closed: nothing is invoked any more`)
      counts.accepted++
      const event = { payload, requestId: randomUUID(), acceptedAt: clock.now(), n: 0 }
      void later(event, 0)
      if (!options.duplicate?.()) return
      counts.duplicated++
      void later({ ...event }, 0)
    },
    counts: () => ({ ...counts, waiting: ready.length + pending }),
    async drain() {
      if (!idle()) await new Promise<void>((resolve) => whenIdle.push(resolve))
    },
    async close(graceMs = 0) {
      stopped.abort()
      ready.length = 0
      const over = new AbortController()
      const grace = clock.sleep(graceMs, over.signal)
      await Promise.race([idle() ? undefined : new Promise<void>((resolve) => whenIdle.push(resolve)), grace])
      over.abort()
      return { abandoned: counts.running }
    },
  }
}
