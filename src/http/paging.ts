import type { Page } from '../ports.ts'

/** Reads of one request at most: a filter that fits nothing must not read a whole table; the client goes on by cursor. */
const MAX_READS = 20

/**
 * Fills a page from reads that may bring less than asked for, because some items are hidden or filtered out. A short
 * page with `next` is not the end.
 */
export async function collect<T>(
  options: { limit: number; after: string | undefined },
  read: (options: { limit: number; after?: string }) => Promise<Page<T>>,
  shown: (item: T) => boolean = () => true,
): Promise<Page<T>> {
  const items: T[] = []
  let after = options.after
  for (let i = 0; i < MAX_READS; i++) {
    const page = await read({ limit: options.limit - items.length, ...(after !== undefined && { after }) })
    items.push(...page.items.filter(shown))
    after = page.next
    if (after === undefined) return { items }
    if (items.length >= options.limit) break
  }
  return { items, ...(after !== undefined && { next: after }) }
}
