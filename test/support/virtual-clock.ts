import type { Clock } from '../../src/ports.ts'

export interface VirtualClock extends Clock {
  /** lets `ms` pass: wakes sleepers in the order of their time, and lets what they start run in between */
  advance(ms: number): Promise<void>
}

/** Time that passes only when a test says so. */
export function createVirtualClock(start = Date.UTC(2026, 0, 1)): VirtualClock {
  let now = start
  let sleepers: { at: number; wake: () => void }[] = []
  /** lets everything that is ready run, timers of the machine excepted */
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        const sleeper = { at: now + ms, wake: resolve }
        sleepers.push(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers = sleepers.filter((s) => s !== sleeper)
          resolve()
        })
      }),
    async advance(ms) {
      const until = now + ms
      await settle()
      for (;;) {
        const next = sleepers.filter((s) => s.at <= until).sort((a, b) => a.at - b.at)[0]
        if (!next) break
        sleepers = sleepers.filter((s) => s !== next)
        now = next.at
        next.wake()
        await settle()
      }
      now = until
    },
  }
}
