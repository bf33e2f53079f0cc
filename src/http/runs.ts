import type { Context } from 'hono'
import { SubledgerError } from '../domain/errors.ts'
import { rootSessionId } from '../domain/ids.ts'
import type { Run, RunRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import { addInput } from '../engine/add-input.ts'
import { cancelRun } from '../engine/cancel-run.ts'
import { changeBudget } from '../engine/change-budget.ts'
import { definitionOf } from '../engine/definition.ts'
import { deleteRun } from '../engine/delete-run.ts'
import { estimateRun } from '../engine/estimate-run.ts'
import { unpricedModels } from '../engine/freeze-prices.ts'
import { retryRun } from '../engine/retry-run.ts'
import { type StartRun, startRun } from '../engine/start-run.ts'
import { type ApiContext, findRun, type Route, runRef } from './api.ts'
import { readJson, readNothing, readOptionalJson } from './body.ts'
import { sumCalls } from './calls.ts'
import { cursorScope, decodeCursor, encodeCursor } from './cursor.ts'
import { once } from './idempotency.ts'
import { collect } from './paging.ts'
import {
  budgetBody,
  checkBody,
  checkQuery,
  createRunBody,
  inputBody,
  listRunsQuery,
  noQuery,
  retryBody,
  runQuery,
  startQuery,
} from './schemas.ts'
import { estimateView } from './views/estimate.ts'
import { type RunView, runView } from './views/run.ts'

export const runRoutes = (ctx: ApiContext): Route[] => [
  {
    path: '/v1/runs',
    methods: {
      POST: (c, tenant) => createRun(ctx, c, tenant),
      GET: (c, tenant) => listRuns(ctx, c, tenant),
    },
  },
  {
    path: '/v1/runs/:runId',
    methods: { GET: (c, tenant) => getRun(ctx, c, tenant), DELETE: (c, tenant) => remove(ctx, c, tenant) },
  },
  { path: '/v1/runs/:runId/input', methods: { POST: (c, tenant) => input(ctx, c, tenant) } },
  { path: '/v1/runs/:runId/retry', methods: { POST: (c, tenant) => retry(ctx, c, tenant) } },
  { path: '/v1/runs/:runId/budget', methods: { PUT: (c, tenant) => budget(ctx, c, tenant) } },
  { path: '/v1/runs/:runId/cancel', methods: { POST: (c, tenant) => cancel(ctx, c, tenant) } },
]

async function createRun(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  const { dryRun } = checkQuery(startQuery, c.req.url)
  const value = await readJson(c.req.raw, ctx.settings.limits?.bodyBytes)
  refuseFields(value, { webhook: 'A webhook' })
  const body = checkBody(createRunBody, value)
  if (dryRun === 'true') return c.json(estimateView(await estimateRun(ctx, { ...body, tenant }), body.agent))
  return once(ctx, c, tenant, body, {
    token: () => ctx.ids.runId(ctx.clock.now()),
    stands: (runId) => findRun(ctx, { tenant, runId }),
    work: (runId) => start(ctx, c, { ...body, tenant, runId }),
  })
}

async function start(ctx: ApiContext, c: Context, request: StartRun): Promise<Response> {
  const { tenant } = request
  const run = await startRun(ctx, request)
  // read consistently: a moment later the root is in the books, but an ordinary read may not see it yet
  const root = await ctx.store.getHeader(
    { tenant, runId: run.runId, sessionId: rootSessionId(run.runId) },
    { consistent: true },
  )
  return accepted(c, {
    ...(await view(ctx, run, root ? [root] : [], { texts: false })),
    input: request.input ?? null,
    warnings: await warningsOf(ctx, run),
  })
}

/** What a run of the team will not be able to say. */
async function warningsOf(ctx: ApiContext, run: Run): Promise<string[]> {
  return unpricedModels(await definitionOf(ctx, run)).map(
    (name) => `No price of the model "${name}" is known: its calls will be booked without a cost.`,
  )
}

async function listRuns(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  const query = checkQuery(listRunsQuery, c.req.url)
  const scope = cursorScope('runs', tenant, query.status, query.team)
  const filter = {
    ...(query.status !== undefined && { status: query.status }),
    ...(query.team !== undefined && { team: query.team }),
  }
  const page = await collect({ limit: query.limit, after: decodeCursor(scope, query.cursor) }, (options) =>
    ctx.store.listRuns(tenant, { ...options, ...filter }),
  )
  const leaseMs = ctx.settings.leaseMs
  return c.json({
    runs: page.items.map((run) => runView(run, { headers: null, input: null, output: null, leaseMs })),
    next: page.next === undefined ? null : encodeCursor(scope, page.next),
  })
}

async function getRun(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  const { exact } = checkQuery(runQuery, c.req.url)
  const ref = runRef(c, tenant)
  const { run, headers } = await readTree(ctx, ref)
  return c.json(await view(ctx, run, headers, { texts: true, exact: exact === 'true' }))
}

async function remove(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  await deleteRun(ctx, runRef(c, tenant))
  return c.body(null, 204)
}

async function input(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const ref = runRef(c, tenant)
  const body = checkBody(inputBody, await readJson(c.req.raw, ctx.settings.limits?.bodyBytes))
  const token = async () => `${(await findRun(ctx, ref)).round}.${ctx.ids.nonce()}`
  return once(ctx, c, tenant, body, {
    token,
    work: async (name) => {
      const [seenRound, inputRef] = name?.split('.') ?? []
      const run = await addInput(
        ctx,
        ref,
        body.input,
        inputRef ? { seenRound: Number(seenRound), inputRef } : undefined,
      )
      const { headers } = await readTree(ctx, ref)
      return accepted(c, { ...(await view(ctx, run, headers, { texts: false })), input: body.input })
    },
  })
}

async function retry(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const ref = runRef(c, tenant)
  const body = checkBody(retryBody, await readOptionalJson(c.req.raw, ctx.settings.limits?.bodyBytes))
  const token = async () => `${(await findRun(ctx, ref)).round}.${ctx.ids.nonce()}`
  return once(ctx, c, tenant, body, {
    token,
    work: async (name) => {
      const [seenRound, retryRef] = name?.split('.') ?? []
      const sent = retryRef ? { seenRound: Number(seenRound), retryRef } : undefined
      const run = await retryRun(ctx, ref, body.sessions, sent)
      const { headers } = await readTree(ctx, ref)
      return accepted(c, await view(ctx, run, headers, { texts: true }))
    },
  })
}

async function budget(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const ref = runRef(c, tenant)
  const body = checkBody(budgetBody, await readJson(c.req.raw))
  const run = await changeBudget(ctx, ref, body)
  const { headers } = await readTree(ctx, ref)
  return c.json(await view(ctx, run, headers, { texts: true }))
}

async function cancel(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const ref = runRef(c, tenant)
  await readNothing(c.req.raw)
  const token = async () => `${(await findRun(ctx, ref)).round}`
  return once(
    ctx,
    c,
    tenant,
    {},
    {
      token,
      work: async (round) => {
        const seen = round === undefined ? undefined : await findRun(ctx, ref)
        // the round that was to be cancelled has ended since, and another one is nobody's to stop
        const over = seen !== undefined && seen.round !== Number(round)
        return acceptRun(ctx, c, over ? seen : await cancelRun(ctx, ref))
      },
    },
  )
}

/** The answer of what changes a run: 202, and the run as it is then. */
export async function acceptRun(ctx: ApiContext, c: Context, run: Run): Promise<Response> {
  const { headers } = await readTree(ctx, run)
  return accepted(c, await view(ctx, run, headers, { texts: true }))
}

function accepted(c: Context, run: RunView): Response {
  c.header('Location', `/v1/runs/${run.runId}`)
  return c.json(run, 202)
}

/** RUN and all headers: one query. Only a run that it does not see is looked for once more, consistently. */
async function readTree(ctx: ApiContext, ref: RunRef): Promise<{ run: Run; headers: readonly SessionHeader[] }> {
  const { run, headers } = await ctx.store.getRunWithSessions(ref)
  return { run: run ?? (await findRun(ctx, ref)), headers }
}

/** While a run goes on, this takes one read beside the tree's (its input), or none for a list of tasks. */
async function view(
  ctx: ApiContext,
  run: Run,
  headers: readonly SessionHeader[],
  options: { texts: boolean; exact?: boolean },
): Promise<RunView> {
  const texts = options.texts
    ? { input: await inputOf(ctx, run), output: await outputOf(ctx, run, headers) }
    : { input: null, output: null }
  const at = ctx.clock.now()
  const exact = options.exact ? { books: await sumCalls(ctx.store, run), at } : undefined
  return runView(run, { headers, ...texts, leaseMs: ctx.settings.leaseMs, ...(exact && { exact }) })
}

async function inputOf(ctx: ApiContext, run: Run): Promise<string | null> {
  if (run.tasks !== null) return null
  const stored = await ctx.store.getInput(run, run.inputRound, run.inputRef)
  return stored && 'input' in stored ? stored.input : null
}

async function outputOf(ctx: ApiContext, run: Run, headers: readonly SessionHeader[]): Promise<string | null> {
  if (run.status === 'running' || run.status === 'waiting') return null
  const root = headers.find((h) => h.parentId === null)
  if (!root || root.finalTurn === null) return null
  const answer = await ctx.store.getResponse({ ...run, sessionId: root.sessionId }, root.finalTurn)
  return answer?.message?.content ?? null
}

/** What this version does not know must not be taken in silence: the caller relies on it. */
function refuseFields(body: unknown, fields: { readonly [name: string]: string }): void {
  if (body === null || typeof body !== 'object') return
  for (const [name, what] of Object.entries(fields)) {
    if (!Object.hasOwn(body, name)) continue
    throw new SubledgerError('not_supported', `${what} is not supported by this version: leave "${name}" out.`, {
      issues: [{ path: `/${name}`, message: 'is not supported by this version' }],
    })
  }
}
