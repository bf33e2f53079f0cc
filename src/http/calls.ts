import type { Context } from 'hono'
import { totalsOf } from '../domain/log.ts'
import type { RunRef } from '../domain/run.ts'
import { addBooks, type Books } from '../domain/usage.ts'
import { definitionOf } from '../engine/definition.ts'
import type { Store } from '../ports.ts'
import { type ApiContext, findRun, type Route, runRef, unknownRun } from './api.ts'
import { cursorScope, decodeCursor, encodeCursor } from './cursor.ts'
import { collect } from './paging.ts'
import { checkQuery, noQuery, pageQuery } from './schemas.ts'
import { callView, isCall } from './views/call.ts'
import { usageReport } from './views/usage.ts'

export const bookRoutes = (ctx: ApiContext): Route[] => [
  { path: '/v1/runs/:runId/calls', methods: { GET: (c, tenant) => listCalls(ctx, c, tenant) } },
  { path: '/v1/runs/:runId/usage', methods: { GET: (c, tenant) => usage(ctx, c, tenant) } },
]

async function listCalls(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  const query = checkQuery(pageQuery, c.req.url)
  const ref = runRef(c, tenant)
  const scope = cursorScope('calls', tenant, ref.runId)
  const after = decodeCursor(scope, query.cursor)
  const team = await definitionOf(ctx, await findRun(ctx, ref))
  const page = await collect({ limit: query.limit, after }, (options) => ctx.store.listCalls(ref, options), isCall)
  return c.json({
    calls: page.items.map((slot) => callView(slot, team)),
    next: page.next === undefined ? null : encodeCursor(scope, page.next),
  })
}

async function usage(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const ref = runRef(c, tenant)
  const { run, headers } = await ctx.store.getRunWithSessions(ref)
  if (!run) throw unknownRun(ref.runId)
  return c.json(usageReport(headers, await definitionOf(ctx, run)))
}

/** Calls read at once when all are summed. */
const CALLS_PER_READ = 500

/** The books of a run from its calls themselves, not from the headers' summaries. */
export async function sumCalls(store: Pick<Store, 'listCalls'>, ref: RunRef): Promise<Books> {
  let books: Books = {}
  let after: string | undefined
  do {
    const page = await store.listCalls(ref, { limit: CALLS_PER_READ, ...(after !== undefined && { after }) })
    for (const slot of page.items) {
      if (slot.outcome !== 'none') books = addBooks(books, { [slot.outcome]: totalsOf(slot) })
    }
    after = page.next
  } while (after !== undefined)
  return books
}
