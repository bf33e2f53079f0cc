import { PAGE_BYTES } from '../domain/limits.ts'
import { byteLength } from '../domain/text.ts'
import type { Page } from '../ports.ts'

/** Reads of one request at most: a filter that fits nothing must not read a whole table; the client goes on by cursor. */
const MAX_READS = 20

/**
 * How many bytes an item takes in an answer, or near enough: of what is stored, its views repeat most and add little.
 * Lambda sends an answer as a string in JSON, so what is escaped in it is escaped once more.
 */
export const bytesOf = (item: unknown): number => byteLength(JSON.stringify(JSON.stringify(item, plain) ?? ''))

const plain = (_name: string, value: unknown): unknown =>
  typeof value === 'bigint' ? String(value) : value instanceof Set ? [...value] : value

/**
 * Fills a page from reads that may bring less than asked for, because some items are hidden or filtered out. A short
 * page with `next` is not the end.
 * @param options.maxBytes after so many bytes the page ends; one item is on it at least, whatever its size
 */
export async function collect<T>(
  options: { limit: number; after: string | undefined; maxBytes?: number },
  read: (options: { limit: number; after?: string }) => Promise<Page<T>>,
  shown: (item: T) => boolean = () => true,
): Promise<Page<T>> {
  const items: T[] = []
  const maxBytes = options.maxBytes ?? PAGE_BYTES
  let after = options.after
  let bytes = 0
  for (let i = 0; i < MAX_READS; i++) {
    const cursor = after === undefined ? {} : { after }
    let page = await read({ limit: options.limit - items.length, ...cursor })
    let fits = fitting(page.items, shown, maxBytes - bytes)
    // a cursor stands only behind a whole read: what has no room is left to the next page, or read again without the rest
    if (fits.count < page.items.length && items.length > 0) return { items, next: after! }
    while (fits.count < page.items.length && page.items.length > 1) {
      page = await read({ limit: Math.max(1, fits.count), ...cursor })
      fits = fitting(page.items, shown, maxBytes)
    }
    items.push(...page.items.filter(shown))
    // one item that has no room even alone fills the page
    bytes += fits.count < page.items.length ? maxBytes : fits.bytes
    after = page.next
    if (after === undefined) return { items }
    if (items.length >= options.limit || bytes >= maxBytes) break
  }
  return { items, ...(after !== undefined && { next: after }) }
}

/** How many of the first items have room. */
function fitting<T>(items: readonly T[], shown: (item: T) => boolean, room: number): { count: number; bytes: number } {
  let bytes = 0
  for (const [count, item] of items.entries()) {
    const more = shown(item) ? bytesOf(item) : 0
    if (bytes + more > room) return { count, bytes }
    bytes += more
  }
  return { count: items.length, bytes }
}
