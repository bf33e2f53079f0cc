/** Reads of runs and headers, and the lists. */
import { RUN_ID, SESSION_ID } from '../domain/ids.ts'
import { isGone, type Run, type RunRef, type RunStatus, type SessionRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { ResponseSlot } from '../domain/turn.ts'
import type { Page, Store } from '../ports.ts'
import { decodeHeader } from './header-codec.ts'
import { BadItemError } from './item-reader.ts'
import {
  parseRunPartition,
  parseTurnKey,
  RUN_SK,
  runKey,
  runPartition,
  runsPartition,
  SESSION_PREFIX,
  sessionKey,
  TURN_PREFIX,
} from './keys.ts'
import { badCursor, between, collect } from './log-reads.ts'
import { decodeRun } from './run-codec.ts'
import { decodeResponse } from './slot-codec.ts'
import { placeholders } from './statements.ts'
import { A, DUE_INDEX, RUNS_INDEX } from './table.ts'
import type { Item, QueryRequest, TableClient } from './table-client.ts'

type RunReads = Pick<
  Store,
  'getRun' | 'getRunWithSessions' | 'listRuns' | 'dueRuns' | 'getHeader' | 'listHeaders' | 'listCalls'
>

/** Pages of the table that one look for runs reads: a filter that fits nothing must not read everything at once. */
const MOST_PAGES = 4
/** Sorts behind every key that begins with the prefix: `~` follows all letters and digits. */
const END = '~'
/** Attributes of an outcome without its body: a row of the books. */
export const ROW_OF_BOOKS = [
  '#pk',
  '#sk',
  '#outcome',
  '#of',
  '#attempt',
  '#agent',
  '#model',
  '#cause',
  '#usage',
  '#usageSource',
  '#cost',
  '#price',
  '#bound',
  '#over',
  '#finishReason',
  '#responseId',
  '#answeredBy',
  '#startedAt',
  '#durationMs',
  '#nextIntent',
  '#end',
].join(', ')

/** @param now epoch ms: a run whose time is over is gone, whether or not the table has removed it */
export function runReads(table: TableClient, now: () => number): RunReads {
  /**
   * Fills a page of `limit` items from as many pages of the table as it takes, and looks one item further, so that `next`
   * is there only when there is more.
   * @param ahead how many items to look at for each that is wanted, where a filter drops some
   * @param options.mostPages gives up after so many pages of the table, with a `next` behind what was looked at: the page
   * may then be short, or empty
   */
  async function fill<T>(
    request: QueryRequest,
    limit: number,
    ahead: number,
    read: (item: Item) => T,
    cursor: (item: Item) => string,
    options: { shown?: (item: Item) => boolean; mostPages?: number } = {},
  ): Promise<Page<T>> {
    if (!Number.isSafeInteger(limit) || limit < 1) throw new RangeError(`limit ${limit} must be a whole number above 0`)
    const found: Item[] = []
    const { shown, mostPages = Number.POSITIVE_INFINITY } = options
    let startAfter = request.startAfter
    let pages = 0
    do {
      if (pages++ === mostPages) return { items: found.map(read), next: cursor(startAfter!) }
      const wanted = (limit + 1 - found.length) * ahead
      const page = await table.query({ ...request, limit: wanted, ...(startAfter && { startAfter }) })
      found.push(...(shown ? page.items.filter(shown) : page.items))
      startAfter = page.last
    } while (startAfter && found.length <= limit)
    const items = found.slice(0, limit)
    return { items: items.map(read), ...(found.length > limit && { next: cursor(items.at(-1)!) }) }
  }

  const text = (item: Item, name: string): string => {
    const value = item[name]
    if (typeof value !== 'string') throw new BadItemError(`an item of a list has no text in ${name}`)
    return value
  }

  return {
    async getRun(ref: RunRef, { consistent = true, gone = false } = {}): Promise<Run | undefined> {
      const { item } = await table.get({ key: runKey(ref), consistent })
      const run = item && decodeRun(item)
      return run && (gone || !isGone(run, now())) ? run : undefined
    },

    async getRunWithSessions(ref: RunRef) {
      // Nothing sorts between RUN and the headers, so one query reads both and nothing else.
      const items = await collect(table, between(runPartition(ref), RUN_SK, SESSION_PREFIX + END, false))
      const item = items.find((i) => i[A.sk] === RUN_SK)
      const run = item && decodeRun(item)
      if (run && isGone(run, now())) return { run: undefined, headers: [] }
      return { run, headers: items.filter((i) => i !== item).map(decodeHeader) }
    },

    listRuns(
      tenant: string,
      { limit, after, status, team }: { limit: number; after?: string; status?: RunStatus; team?: string },
    ): Promise<Page<Run>> {
      const keyCondition = '#runsTenant = :tenant'
      const filters = [...(status ? ['#status = :status'] : []), ...(team === undefined ? [] : ['#team = :team'])]
      const filter = filters.join(' AND ')
      const values = { ':tenant': runsPartition(tenant), ':status': status, ':team': team }
      return fill(
        {
          index: RUNS_INDEX,
          keyCondition,
          ...(filter && { filter }),
          ...placeholders([keyCondition, filter], { values }),
          backwards: true,
          consistent: false,
          ...(after !== undefined && { startAfter: afterRun(tenant, after) }),
        },
        limit,
        filter ? 4 : 1,
        decodeRun,
        (item) => text(item, A.runsId),
        { shown: (item) => !isGone(decodeRun(item), now()), mostPages: MOST_PAGES },
      )
    },

    dueRuns(shard: number, now: number, { limit, after }: { limit: number; after?: string }): Promise<Page<RunRef>> {
      const keyCondition = '#dueShard = :shard AND #dueAt <= :now'
      const values = { ':shard': shard, ':now': now }
      return fill(
        {
          index: DUE_INDEX,
          keyCondition,
          ...placeholders([keyCondition], { values }),
          consistent: false,
          ...(after !== undefined && { startAfter: afterDue(shard, after) }),
        },
        limit,
        1,
        (item) => parseRunPartition(text(item, A.pk)),
        (item) => JSON.stringify([item[A.dueAt], item[A.pk]]),
      )
    },

    async getHeader(ref: SessionRef, { consistent = true } = {}): Promise<SessionHeader | undefined> {
      const { item } = await table.get({ key: sessionKey(ref), consistent })
      return item && decodeHeader(item)
    },

    async listHeaders(ref: RunRef, { limit, after, consistent = true }): Promise<Page<SessionHeader>> {
      const pk = runPartition(ref)
      if (after !== undefined && !SESSION_ID.test(after)) throw badCursor()
      const request = {
        ...between(pk, SESSION_PREFIX, SESSION_PREFIX + END, consistent),
        ...(after !== undefined && { startAfter: { [A.pk]: pk, [A.sk]: SESSION_PREFIX + after } }),
      }
      if (limit === undefined) return { items: (await collect(table, request)).map(decodeHeader) }
      return fill(request, limit, 1, decodeHeader, (item) => text(item, A.sk).slice(SESSION_PREFIX.length))
    },

    async listCalls(ref: RunRef, { limit, after }): Promise<Page<ResponseSlot & { readonly sessionId: string }>> {
      const pk = runPartition(ref)
      if (after !== undefined && !isResponseKey(after)) throw badCursor()
      // Only outcomes have an `outcome`; one that is `none` is no call.
      const filter = 'attribute_exists(#outcome) AND #outcome <> :none'
      const keys = between(pk, TURN_PREFIX, TURN_PREFIX + END, false)
      return fill(
        {
          ...keys,
          ...placeholders([keys.keyCondition, filter, ROW_OF_BOOKS], { values: keys.values }),
          filter,
          projection: ROW_OF_BOOKS,
          ...(after !== undefined && { startAfter: { [A.pk]: pk, [A.sk]: after } }),
        },
        limit,
        4,
        (item) => {
          const place = parseTurnKey(text(item, A.sk))
          const slot = decodeResponse(item, place.n, undefined, `${pk} ${item[A.sk]}`)
          return { ...slot, sessionId: place.sessionId }
        },
        (item) => text(item, A.sk),
      )
    },
  }
}

/** The index key of a run, from its id alone. */
function afterRun(tenant: string, runId: string): Item {
  if (!RUN_ID.test(runId)) throw badCursor()
  const key = runKey({ tenant, runId })
  return { [A.pk]: key.pk, [A.sk]: key.sk, [A.runsTenant]: runsPartition(tenant), [A.runsId]: runId }
}

function afterDue(shard: number, cursor: string): Item {
  try {
    const [dueAt, pk] = JSON.parse(cursor)
    if (Number.isSafeInteger(dueAt) && typeof pk === 'string' && parseRunPartition(pk))
      return { [A.pk]: pk, [A.sk]: RUN_SK, [A.dueShard]: shard, [A.dueAt]: dueAt }
  } catch {
    // no cursor of ours
  }
  throw badCursor()
}

function isResponseKey(sk: string): boolean {
  try {
    return parseTurnKey(sk).slot === 'response'
  } catch {
    return false
  }
}
