import { timeOf } from '../../engine/take-place.ts'
import type { ApiContext } from '../api.ts'

/** No answer waits for so long, whatever has become of its process. */
const OVER_MS = 60_000

/** Counts answers of a tenant that wait for something to tell, or are streams. */
export interface Polls {
  /** @returns how it is given back; undefined: there are as many as there may be */
  take(tenant: string): Promise<(() => Promise<void>) | undefined>
}

/** @param most of each tenant, where one process has them all */
export function pollsOfProcess(most: number): Polls {
  const open = new Map<string, number>()
  return {
    async take(tenant) {
      const count = open.get(tenant) ?? 0
      if (count >= most) return undefined
      open.set(tenant, count + 1)
      return async () => {
        const left = open.get(tenant)! - 1
        if (left > 0) open.set(tenant, left)
        else open.delete(tenant)
      }
    },
  }
}

/**
 * Counted in the table, where each answer has a process of its own. Nobody is refused for want of the count: an answer that
 * cannot be counted does not wait.
 * @param most of each tenant
 */
export function pollsOfTable(ctx: Pick<ApiContext, 'store' | 'clock' | 'ids' | 'log'>, most: number): Polls {
  const { store, clock, ids, log } = ctx

  /** Takes those away whose process was lost. @returns whether there were any */
  async function clear(tenant: string, polls: readonly string[]): Promise<boolean> {
    const over = polls.filter((id) => clock.now() - timeOf(id) > OVER_MS)
    await Promise.all(over.map((id) => store.givePollBack(tenant, id)))
    return over.length > 0
  }

  return {
    async take(tenant) {
      const id = ids.runId(clock.now())
      try {
        const first = await store.takePoll(tenant, id, most)
        const taken =
          first.taken || ((await clear(tenant, first.polls)) && (await store.takePoll(tenant, id, most)).taken)
        if (!taken) return undefined
      } catch (fault) {
        log.warn('an answer does not wait: it could not be counted', { tenant, fault: String(fault) })
        return undefined
      }
      return async () => {
        try {
          await store.givePollBack(tenant, id)
        } catch (fault) {
          log.warn('the place of an answer that has waited is given back later', { tenant, fault: String(fault) })
        }
      }
    },
  }
}
