import type { Context } from 'hono'
import type { Run } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import { findAgent } from '../domain/team.ts'
import { definitionOf } from '../engine/definition.ts'
import { systemMessage } from '../engine/prompt.ts'
import { taskMessage, taskOf } from '../engine/task-of.ts'
import { type ApiContext, findRun, findSession, type Route, runRef, sessionRef } from './api.ts'
import { sessionApprovals } from './approvals.ts'
import { cursorScope, decodeCursor, encodeCursor } from './cursor.ts'
import { collect } from './paging.ts'
import { checkQuery, noQuery, pageQuery } from './schemas.ts'
import { readTranscript } from './transcript.ts'
import { previews, type SessionTexts, sessionView, subtreeIsSettled } from './views/session.ts'

export const sessionRoutes = (ctx: ApiContext): Route[] => [
  { path: '/v1/runs/:runId/sessions', methods: { GET: (c, tenant) => listSessions(ctx, c, tenant) } },
  { path: '/v1/runs/:runId/sessions/:sessionId', methods: { GET: (c, tenant) => getSession(ctx, c, tenant) } },
  {
    path: '/v1/runs/:runId/sessions/:sessionId/messages',
    methods: { GET: (c, tenant) => listMessages(ctx, c, tenant) },
  },
]

async function listSessions(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  const query = checkQuery(pageQuery, c.req.url)
  const ref = runRef(c, tenant)
  const scope = cursorScope('sessions', tenant, ref.runId)
  const after = decodeCursor(scope, query.cursor)
  const run = await findRun(ctx, ref)
  const team = await definitionOf(ctx, run)
  const page = await collect(
    { limit: query.limit, after },
    (options) => ctx.store.listHeaders(ref, { ...options, consistent: false }),
    (h) => h.kind !== 'group',
  )
  const all = await treeFor(ctx, run, page.items)
  const leaseMs = ctx.settings.leaseMs
  return c.json({
    sessions: page.items.map((h) => sessionView(h, { team, texts: previews(h), leaseMs, ...(all && { all }) })),
    next: page.next === undefined ? null : encodeCursor(scope, page.next),
  })
}

async function getSession(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const ref = sessionRef(c, tenant)
  const run = await findRun(ctx, ref)
  const header = await findSession(ctx, ref)
  const team = await definitionOf(ctx, run)
  const all = await treeFor(ctx, run, [header])
  const texts = await textsOf(ctx, run, header)
  const approvals = await sessionApprovals(ctx, ref)
  return c.json(sessionView(header, { team, texts, approvals, leaseMs: ctx.settings.leaseMs, ...(all && { all }) }))
}

async function listMessages(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  const query = checkQuery(pageQuery, c.req.url)
  const ref = sessionRef(c, tenant)
  const scope = cursorScope('messages', tenant, ref.runId, ref.sessionId)
  const after = decodeCursor(scope, query.cursor)
  const run = await findRun(ctx, ref)
  const header = await findSession(ctx, ref)
  const team = await definitionOf(ctx, run)
  const agent = header.agent === null ? undefined : findAgent(team, header.agent)
  // a list of tasks has a root that calls no model: there is no conversation
  if (!agent) return c.json({ messages: [], next: null })
  const page = await readTranscript(ctx.store, ref, { limit: query.limit, after }, async (holdsTask) => {
    const task = holdsTask ? undefined : await taskOf(ctx.store, run, header)
    return { system: systemMessage(team, agent), task: task && taskMessage(task), at: header.createdAt }
  })
  return c.json({
    messages: page.items,
    next: page.next === undefined ? null : encodeCursor(scope, page.next),
  })
}

/** The whole tree, where the subtree of one of these sessions has not settled into its header yet. */
async function treeFor(
  ctx: ApiContext,
  run: Run,
  headers: readonly SessionHeader[],
): Promise<readonly SessionHeader[] | undefined> {
  if (headers.every(subtreeIsSettled)) return undefined
  return (await ctx.store.getRunWithSessions(run)).headers
}

async function textsOf(ctx: ApiContext, run: Run, header: SessionHeader): Promise<SessionTexts> {
  const task = await taskOf(ctx.store, run, header)
  const answer =
    header.finalTurn === null
      ? undefined
      : await ctx.store.getResponse({ ...run, sessionId: header.sessionId }, header.finalTurn)
  return {
    task: task?.task ?? null,
    ...(task?.expectedOutput !== undefined && { expectedOutput: task.expectedOutput }),
    output: answer?.message?.content ?? null,
  }
}
