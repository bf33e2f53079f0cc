import type { Context } from 'hono'
import { type Approval, approvalIdOf } from '../domain/approval.ts'
import type { SessionRef } from '../domain/run.ts'
import { decideApproval } from '../engine/approve.ts'
import { type ApiContext, findRun, type Route, runRef } from './api.ts'
import { readJson } from './body.ts'
import { cursorScope, decodeCursor, encodeCursor } from './cursor.ts'
import { once } from './idempotency.ts'
import { bytesOf, collect } from './paging.ts'
import { acceptRun } from './runs.ts'
import { approvalBody, checkBody, checkQuery, noQuery, pageQuery } from './schemas.ts'
import type { Answer, approval } from './shapes.ts'
import { time } from './views/figures.ts'

export type ApprovalView = Answer<typeof approval>

/** Approvals that are shown with their session, the last ones, and bytes that they take in its answer. */
const MOST_SHOWN = 100
const MOST_BYTES = 1_000_000

export const approvalRoutes = (ctx: ApiContext): Route[] => [
  { path: '/v1/runs/:runId/approvals', methods: { GET: (c, tenant) => list(ctx, c, tenant) } },
  {
    path: '/v1/runs/:runId/approvals/:approvalId',
    methods: { POST: (c, tenant, by) => decide(ctx, c, tenant, by) },
  },
]

async function list(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  const query = checkQuery(pageQuery, c.req.url)
  const ref = runRef(c, tenant)
  const scope = cursorScope('approvals', tenant, ref.runId)
  const after = decodeCursor(scope, query.cursor)
  await findRun(ctx, ref)
  const page = await collect({ limit: query.limit, after }, async (options) => {
    const { items, next } = await ctx.store.listRunApprovals(ref, options)
    const answers = answersOf(ctx)
    const views: ApprovalView[] = []
    for (const a of items)
      if (a.askedAt !== null) views.push(await view(answers, { ...ref, sessionId: a.sessionId }, a))
    return { items: views, ...(next !== undefined && { next }) }
  })
  return c.json({
    approvals: page.items,
    next: page.next === undefined ? null : encodeCursor(scope, page.next),
  })
}

async function decide(ctx: ApiContext, c: Context, tenant: string, by: string | null): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const ref = runRef(c, tenant)
  const approvalId = c.req.param('approvalId') ?? ''
  const body = checkBody(approvalBody, await readJson(c.req.raw, ctx.settings.limits?.bodyBytes))
  return once(ctx, c, tenant, body, {
    // the decision stands by itself: a retry needs no name to find it
    token: () => 'approval',
    stands: () => findRun(ctx, ref),
    work: async () => acceptRun(ctx, c, await decideApproval(ctx, ref, approvalId, { ...body, by })),
  })
}

/** What a session has asked people about. */
export async function sessionApprovals(ctx: ApiContext, ref: SessionRef): Promise<ApprovalView[]> {
  const all = (await ctx.store.listApprovals(ref)).filter((a) => a.askedAt !== null)
  const answers = answersOf(ctx)
  const shown: ApprovalView[] = []
  let bytes = 0
  for (const a of all.slice(-MOST_SHOWN).reverse()) {
    const one = await view(answers, ref, a)
    bytes += bytesOf(one)
    if (bytes > MOST_BYTES && shown.length > 0) break
    shown.unshift(one)
  }
  return shown
}

type Answers = (ref: SessionRef, n: number) => ReturnType<ApiContext['store']['getResponse']>

/** Answers of models, each read once. */
function answersOf(ctx: ApiContext): Answers {
  const read = new Map<string, ReturnType<Answers>>()
  return (ref, n) => {
    const name = `${ref.sessionId} ${n}`
    const answer = read.get(name) ?? ctx.store.getResponse(ref, n)
    read.set(name, answer)
    return answer
  }
}

async function view(answers: Answers, ref: SessionRef, a: Approval): Promise<ApprovalView> {
  const call = (await answers(ref, a.n))?.message?.toolCalls[a.index]
  if (!call) throw new Error(`call ${a.index} of answer ${a.n} of session ${ref.sessionId} is not in the table`)
  return {
    approvalId: approvalIdOf({ sessionId: ref.sessionId, n: a.n, index: a.index }),
    sessionId: ref.sessionId,
    tool: a.tool,
    arguments: call.arguments,
    askedAt: time(a.askedAt!),
    decision: a.decision && { ...a.decision, at: time(a.decision.at) },
  }
}
