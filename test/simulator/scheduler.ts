/**
 * Virtual time. Everything that is going on is an entry with a time; the next one is the earliest, and among those of the
 * same time the one whose random lot comes first. Nothing here knows a real timer.
 */
import type { Random } from './random.ts'

export interface Entry {
  at: number
  /** decides among entries of the same time */
  readonly lot: number
  readonly run: () => void
  cancelled: boolean
}

export class Scheduler {
  now: number
  readonly #random: Random
  readonly #heap: Entry[] = []

  constructor(start: number, random: Random) {
    this.now = start
    this.#random = random
  }

  /** Puts an entry `ms` from now. */
  after(ms: number, run: () => void): Entry {
    const entry = { at: this.now + ms, lot: this.#random.next(), run, cancelled: false }
    this.#push(entry)
    return entry
  }

  /** The time of the next entry; undefined: there is none. */
  peek(): number | undefined {
    while (this.#heap[0]?.cancelled) this.#pop()
    return this.#heap[0]?.at
  }

  /** Runs the next entry and moves time to it. */
  step(): void {
    if (this.peek() === undefined) return
    const entry = this.#pop()!
    this.now = Math.max(this.now, entry.at)
    entry.run()
  }

  #push(entry: Entry): void {
    const heap = this.#heap
    let i = heap.push(entry) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!before(entry, heap[parent]!)) break
      heap[i] = heap[parent]!
      i = parent
    }
    heap[i] = entry
  }

  #pop(): Entry | undefined {
    const heap = this.#heap
    const top = heap[0]
    const last = heap.pop()
    if (!last || heap.length === 0) return top
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
      if (!before(heap[child]!, last)) break
      heap[i] = heap[child]!
      i = child
    }
    heap[i] = last
    return top
  }
}

const before = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.lot < b.lot)

/** Lets everything that is ready run: all promises that were answered go as far as they can. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
