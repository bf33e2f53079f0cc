import { describe, expect, test } from 'vitest'
import { createLocalInvoker, type LocalInvokerOptions } from '../../src/invoke/local-invoker.ts'
import { systemClock } from '../../src/system.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'
import { invokerContract } from './contract.ts'
import { memoryLogger, REF, refOf } from './fixtures.ts'

describe('contract', () => {
  invokerContract(async (worker) => {
    const invoker = createLocalInvoker({
      clock: systemClock,
      log: memoryLogger(),
      worker: (ref) => worker(ref),
      settings: { retryDelaysMs: [1, 2] },
    })
    return { invoker, settled: invoker.drain, close: async () => void (await invoker.close()) }
  })
})

function virtual(options: Partial<LocalInvokerOptions> & Pick<LocalInvokerOptions, 'worker'>) {
  const clock: VirtualClock = createVirtualClock()
  const log = memoryLogger()
  return { clock, log, invoker: createLocalInvoker({ clock, log, ...options }) }
}

const forever = () => new Promise<void>(() => {})

test('a worker that fails is tried again after one and after two more minutes, then the letter is dead', async () => {
  const at: number[] = []
  const letters: unknown[] = []
  const { clock, invoker } = virtual({
    worker: async () => {
      at.push(clock.now() - began)
      throw new TypeError('the worker broke')
    },
    onDeadLetter: async (ref, letter) => void letters.push({ ref, letter }),
  })
  const began = clock.now()
  await invoker.invoke(REF)
  await clock.advance(59_999)
  expect(at).toEqual([0])
  await clock.advance(1)
  expect(at).toEqual([0, 60_000])
  await clock.advance(120_000)
  expect(at).toEqual([0, 60_000, 180_000])
  await clock.advance(10_000_000)
  expect(at).toHaveLength(3)
  expect(letters).toEqual([
    {
      ref: REF,
      letter: {
        version: '1.0',
        timestamp: '2026-01-01T00:03:00.000Z',
        requestContext: {
          requestId: expect.any(String),
          functionArn: 'worker',
          condition: 'RetriesExhausted',
          approximateInvokeCount: 3,
        },
        requestPayload: REF,
        responsePayload: { errorType: 'TypeError', errorMessage: 'the worker broke' },
      },
    },
  ])
  expect(invoker.counts()).toMatchObject({ accepted: 1, delivered: 3, failed: 3, retried: 2, dead: 1, waiting: 0 })
})

test('a retry that succeeds ends the matter, under the request id of the first delivery', async () => {
  const deliveries: { requestId: string; n: number }[] = []
  const { clock, invoker } = virtual({
    worker: async (_ref, { requestId, n }) => {
      deliveries.push({ requestId, n })
      if (n === 1) throw new Error('once')
    },
    onDeadLetter: async () => expect.unreachable(),
  })
  await invoker.invoke(REF)
  await clock.advance(10_000_000)
  expect(deliveries.map((d) => d.n)).toEqual([1, 2])
  expect(new Set(deliveries.map((d) => d.requestId)).size).toBe(1)
  expect(invoker.counts()).toMatchObject({ succeeded: 1, failed: 1, dead: 0 })
})

test('a worker over its deadline counts as failed, and what it says later is ignored', async () => {
  let finishLate = () => {}
  const deadlines: number[] = []
  const { clock, log, invoker } = virtual({
    worker: (_ref, { n, deadlineAt }) => {
      deadlines.push(deadlineAt - clock.now())
      return n === 1 ? new Promise<void>((resolve) => (finishLate = resolve)) : Promise.resolve()
    },
    settings: { timeoutMs: 10_000, retryDelaysMs: [5_000] },
  })
  await invoker.invoke(REF)
  await clock.advance(9_999)
  expect(invoker.counts()).toMatchObject({ running: 1, timedOut: 0 })
  await clock.advance(1)
  expect(invoker.counts()).toMatchObject({ running: 0, timedOut: 1, failed: 1, retried: 1 })
  expect(log.lines[0]?.fields).toMatchObject({ error: 'Task timed out after 10 seconds', delivery: 1 })
  finishLate()
  await clock.advance(5_000)
  expect(deadlines).toEqual([10_000, 10_000])
  expect(invoker.counts()).toMatchObject({ delivered: 2, succeeded: 1, failed: 1, dead: 0 })
})

test('an event that grew too old in the queue is not delivered any more', async () => {
  const conditions: string[] = []
  const { clock, invoker } = virtual({
    worker: forever,
    onDeadLetter: async (_ref, letter) => void conditions.push(letter.requestContext.condition),
    settings: { concurrency: 1, timeoutMs: 30_000, retryDelaysMs: [], maxEventAgeMs: 20_000 },
  })
  await invoker.invoke(refOf(1))
  await invoker.invoke(refOf(2))
  await clock.advance(30_000)
  expect(conditions.sort()).toEqual(['EventAgeExceeded', 'RetriesExhausted'])
  expect(invoker.counts()).toMatchObject({ delivered: 1, dead: 2 })
})

test('a retry that would come after the event age is not waited for', async () => {
  const conditions: string[] = []
  const { clock, invoker } = virtual({
    worker: () => Promise.reject(new Error('no')),
    onDeadLetter: async (_ref, letter) => void conditions.push(letter.requestContext.condition),
    settings: { maxEventAgeMs: 59_999 },
  })
  await invoker.invoke(REF)
  await clock.advance(0)
  expect(conditions).toEqual(['EventAgeExceeded'])
})

test('no more run at once than may; the others wait in their order', async () => {
  const order: string[] = []
  const { clock, invoker } = virtual({
    worker: async (ref) => {
      order.push(ref.sessionId)
      await clock.sleep(1_000)
    },
    settings: { concurrency: 3 },
  })
  const refs = Array.from({ length: 10 }, (_, i) => refOf(i))
  for (const ref of refs) await invoker.invoke(ref)
  await clock.advance(500)
  expect(invoker.counts()).toMatchObject({ running: 3, waiting: 7 })
  await clock.advance(10_000)
  expect(order).toEqual(refs.map((r) => r.sessionId))
  expect(invoker.counts()).toMatchObject({ succeeded: 10, maxRunning: 3, running: 0, waiting: 0 })
})

test('an event may be delivered twice without any error', async () => {
  let calls = 0
  const { clock, invoker } = virtual({ worker: async () => void calls++, duplicate: () => true })
  await invoker.invoke(REF)
  await clock.advance(0)
  expect(calls).toBe(2)
  expect(invoker.counts()).toMatchObject({ accepted: 1, duplicated: 1, succeeded: 2 })
})

test('after close nothing is accepted, and neither what waits nor a retry is delivered', async () => {
  let calls = 0
  const { clock, invoker } = virtual({
    worker: async () => {
      calls++
      throw new Error('again later')
    },
  })
  await invoker.invoke(REF)
  await clock.advance(0)
  expect(await invoker.close()).toEqual({ abandoned: 0 })
  await expect(invoker.invoke(REF)).rejects.toThrow('The event queue of worker is closed')
  await clock.advance(10_000_000)
  expect(calls).toBe(1)
})

test('close gives running workers their time and tells how many did not end', async () => {
  const { clock, invoker } = virtual({
    worker: (ref) => (ref.sessionId === refOf(1).sessionId ? forever() : clock.sleep(500)),
  })
  await invoker.invoke(refOf(1))
  await invoker.invoke(refOf(2))
  await clock.advance(0)
  const closed = invoker.close(1_000)
  await clock.advance(1_000)
  expect(await closed).toEqual({ abandoned: 1 })
})

test('a dead letter whose receiver fails is logged, and nothing else breaks', async () => {
  const { clock, log, invoker } = virtual({
    worker: () => Promise.reject(new Error('no')),
    onDeadLetter: () => Promise.reject(new Error('nor here')),
    settings: { retryDelaysMs: [] },
  })
  await invoker.invoke(REF)
  await clock.advance(0)
  await invoker.drain()
  expect(log.lines.map((l) => l.message)).toEqual(['invocation failed', 'dead letter lost'])
})
