import { expect, test } from 'vitest'
import type { SessionRef } from '../../src/domain/run.ts'
import type { Invoker } from '../../src/ports.ts'
import { REF, refOf } from './fixtures.ts'

export interface InvokerHarness {
  readonly invoker: Invoker
  /** resolves when everything that was accepted has been delivered and has ended */
  settled(): Promise<void>
  close(): Promise<void>
}

/** What the engine may rely on, whatever invokes its workers. `create` gets the worker: the event as it arrived. */
export function invokerContract(create: (worker: (event: unknown) => Promise<void>) => Promise<InvokerHarness>): void {
  async function using(worker: (event: unknown) => Promise<void>, body: (h: InvokerHarness) => Promise<void>) {
    const harness = await create(worker)
    try {
      await body(harness)
    } finally {
      await harness.close()
    }
  }

  test('the worker gets tenant, run and session, and nothing else', async () => {
    const events: unknown[] = []
    await using(
      async (event) => void events.push(event),
      async ({ invoker, settled }) => {
        await invoker.invoke({ ...REF, more: 'than ids' } as SessionRef)
        await settled()
        expect(events).toEqual([REF])
      },
    )
  })

  test('the event is a copy: what the caller changes later does not reach the worker', async () => {
    const events: unknown[] = []
    await using(
      async (event) => void events.push(event),
      async ({ invoker, settled }) => {
        const mine: { -readonly [K in keyof SessionRef]: SessionRef[K] } = { ...REF }
        const accepted = invoker.invoke(mine)
        mine.sessionId = refOf(1).sessionId
        await accepted
        await settled()
        expect(events).toEqual([REF])
        expect(events[0]).not.toBe(mine)
      },
    )
  })

  test('invoke does not wait for the worker', async () => {
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    let ended = false
    await using(
      async () => {
        await gate
        ended = true
      },
      async ({ invoker, settled }) => {
        await invoker.invoke(REF)
        expect(ended).toBe(false)
        release()
        await settled()
        expect(ended).toBe(true)
      },
    )
  })

  test('the worker does not run in the stack of its caller', async () => {
    let inCaller = true
    const seen: boolean[] = []
    await using(
      async () => void seen.push(inCaller),
      async ({ invoker, settled }) => {
        const accepted = invoker.invoke(REF)
        inCaller = false
        await accepted
        await settled()
        expect(seen).toEqual([false])
      },
    )
  })

  test('a worker that throws is no error of the caller', async () => {
    let calls = 0
    await using(
      async () => {
        calls++
        throw new Error('the worker broke')
      },
      async ({ invoker, settled }) => {
        await expect(invoker.invoke(REF)).resolves.toBeUndefined()
        await settled()
        expect(calls).toBeGreaterThanOrEqual(1)
      },
    )
  })

  test('of many events at once each is delivered', async () => {
    const seen = new Set<string>()
    await using(
      async (event) => void seen.add((event as SessionRef).sessionId),
      async ({ invoker, settled }) => {
        const refs = Array.from({ length: 50 }, (_, i) => refOf(i))
        await Promise.all(refs.map((ref) => invoker.invoke(ref)))
        await settled()
        expect([...seen].sort()).toEqual(refs.map((r) => r.sessionId).sort())
      },
    )
  })
}
