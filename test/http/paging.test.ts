import { expect, test } from 'vitest'
import { collect } from '../../src/http/paging.ts'

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
