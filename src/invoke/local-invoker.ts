import type { SessionRef } from '../domain/run.ts'
import type { Clock, Invoker, Logger } from '../ports.ts'
import { createEventQueue, type DeadLetter, type Delivery, type EventQueue, type QueueSettings } from './event-queue.ts'
import { parseWorkerEvent, workerPayload } from './worker-event.ts'

export interface LocalInvoker extends Invoker, Omit<EventQueue, 'send'> {}

export interface LocalInvokerOptions {
  readonly clock: Clock
  readonly log: Logger
  /** the worker: what it throws is an error of the invocation, and the event is delivered again */
  readonly worker: (ref: SessionRef, delivery: Delivery) => Promise<void>
  /** gets the session whose event was given up */
  readonly onDeadLetter?: (ref: SessionRef, letter: DeadLetter) => Promise<void>
  readonly settings?: Partial<QueueSettings>
  readonly duplicate?: () => boolean
}

/**
 * Workers in this process, with the manners of Lambda's asynchronous invocation: `invoke` resolves at once, the event
 * goes through JSON, and the worker runs in a stack of its own, at least once, until a deadline.
 */
export function createLocalInvoker(options: LocalInvokerOptions): LocalInvoker {
  const { worker, onDeadLetter, ...rest } = options
  const { send, ...queue } = createEventQueue({
    ...rest,
    functionName: 'worker',
    deliver: (payload, delivery) => worker(parseWorkerEvent(payload), delivery),
    ...(onDeadLetter && { onDeadLetter: (letter) => onDeadLetter(parseWorkerEvent(letter.requestPayload), letter) }),
  })
  return { ...queue, invoke: async (ref) => send(workerPayload(ref)) }
}
