/** Removes what a run has written. */
import type { Run } from '../domain/run.ts'
import type { Store } from '../ports.ts'
import { RUN_SK, runKey, runPartition } from './keys.ts'
import { ttlOf } from './run-codec.ts'
import { placeholders } from './statements.ts'
import { A } from './table.ts'
import type { Item, TableClient } from './table-client.ts'

/** Items removed at once. */
const AT_ONCE = 25

export function purge(table: TableClient): Pick<Store, 'purgeRun'> {
  async function keysOf(run: Run, limit: number): Promise<string[]> {
    const keyCondition = '#pk = :pk'
    const projection = '#pk, #sk'
    const keys: string[] = []
    let startAfter: Item | undefined
    do {
      const page = await table.query({
        keyCondition,
        projection,
        ...placeholders([keyCondition, projection], { values: { ':pk': runPartition(run) } }),
        limit,
        consistent: true,
        ...(startAfter && { startAfter }),
      })
      keys.push(...page.items.map((item) => String(item[A.sk])).filter((sk) => sk !== RUN_SK))
      startAfter = page.last
    } while (startAfter && keys.length < limit)
    return keys.slice(0, limit)
  }

  return {
    async purgeRun(run, limit) {
      const pk = runPartition(run)
      const keys = await keysOf(run, limit)
      for (let i = 0; i < keys.length; i += AT_ONCE)
        await Promise.all(keys.slice(i, i + AT_ONCE).map((sk) => table.delete({ key: { pk, sk } })))
      if (keys.length === limit) return { removed: keys.length, done: false }
      // last, because it alone tells the sweep that there is something to remove
      const condition = '#expiresAt = :expiresAt'
      const values = { ':expiresAt': ttlOf(run.expiresAt!) }
      await table.delete({ key: runKey(run), condition, ...placeholders([condition], { values }) })
      return { removed: keys.length + 1, done: true }
    },
  }
}
