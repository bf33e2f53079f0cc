import { expect, test } from 'vitest'
import { collect } from '../../src/http/paging.ts'
import { readTranscript } from '../../src/http/transcript.ts'
import type { MessageView } from '../../src/http/views/message.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import { aRequest, aResponse, DRIVER, rootRef, T0 } from '../support/builders.ts'

/** A list of numbers in pages of at most `size`. */
const pagesOf = (numbers: readonly number[], size: number) => {
  let reads = 0
  const read = async ({ limit, after }: { limit: number; after?: string }) => {
    reads++
    const start = after === undefined ? 0 : Number(after)
    const end = Math.min(start + Math.min(limit, size), numbers.length)
    return { items: numbers.slice(start, end), ...(end < numbers.length && { next: String(end) }) }
  }
  return { read, reads: () => reads }
}
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

test('a page is filled although some items are hidden', async () => {
  const { read } = pagesOf(upTo(50), 100)
  const page = await collect({ limit: 5, after: undefined }, read, (n) => n % 3 === 0)
  expect(page.items).toEqual([0, 3, 6, 9, 12])
  const rest = await collect({ limit: 100, after: page.next }, read, (n) => n % 3 === 0)
  expect(rest).toEqual({ items: [15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48] })
})

test('a page is filled although each read brings less than asked for', async () => {
  const { read } = pagesOf(upTo(10), 2)
  expect(await collect({ limit: 5, after: undefined }, read)).toEqual({ items: [0, 1, 2, 3, 4], next: '5' })
})

test('what fits nothing reads a bounded part of the list and says where to go on', async () => {
  const { read, reads } = pagesOf(upTo(10_000), 1)
  const page = await collect({ limit: 100, after: undefined }, read, () => false)
  expect(page.items).toEqual([])
  expect(reads()).toBe(20)
  expect(page.next).toBe('20')
})

test('a page ends by bytes too, and every item comes once', async () => {
  const texts = ['a'.repeat(40), 'b'.repeat(40), 'c'.repeat(500), 'd'.repeat(40), 'e'.repeat(90), 'f']
  for (const size of [1, 2, 100]) {
    const read = async ({ limit, after }: { limit: number; after?: string }) => {
      const start = Number(after ?? 0)
      const end = Math.min(start + Math.min(limit, size), texts.length)
      return { items: texts.slice(start, end), ...(end < texts.length && { next: String(end) }) }
    }
    const pages: (readonly string[])[] = []
    let after: string | undefined
    do {
      const page = await collect({ limit: 10, after, maxBytes: 100 }, read)
      pages.push(page.items)
      after = page.next
    } while (after !== undefined)
    expect(pages.flat()).toEqual(texts)
    for (const page of pages) expect(page.length === 1 || page.join('""').length + 2 <= 100).toBe(true)
    expect(pages.every((page) => page.length > 0)).toBe(true)
  }
})

test('messages: a page ends by bytes too, with one message on it at least', async () => {
  const store = createStore(memoryTable())
  const content = (n: number) => `${n}`.repeat(n === 2 ? 5_000 : 300)
  for (let n = 0; n < 5; n++) {
    await store.putRequest(rootRef(), aRequest(n, { messages: [{ role: 'user', content: content(n) }] }), DRIVER)
    await store.putResponse(rootRef(), aResponse(n), DRIVER)
  }
  const opening = async () => ({ system: 'You are root.', task: undefined, at: T0 })
  const read = (after: string | undefined, maxBytes?: number) =>
    readTranscript(store, rootRef(), { limit: 100, after, ...(maxBytes && { maxBytes }) }, opening)
  const whole = await read(undefined)
  expect(whole.next).toBeUndefined()
  const pages: (readonly MessageView[])[] = []
  let after: string | undefined
  do {
    const page = await read(after, 1_000)
    pages.push(page.items)
    after = page.next
  } while (after !== undefined)
  expect(pages.flat()).toEqual(whole.items)
  for (const page of pages) expect(page.length === 1 || JSON.stringify(page).length <= 1_000 + page.length).toBe(true)
  expect(Math.max(...pages.map((page) => page.length))).toBeGreaterThan(1)
})
