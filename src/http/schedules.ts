import type { Context } from 'hono'
import { SubledgerError } from '../domain/errors.ts'
import { SCHEDULE_ID } from '../domain/ids.ts'
import { MAX_SCHEDULE_BYTES, MAX_SCHEDULES, PREVIEW_BYTES } from '../domain/limits.ts'
import { NO_STATE, readSchedule, type Schedule, type ScheduleState } from '../domain/schedule.ts'
import { byteLength, cutBytes } from '../domain/text.ts'
import { lookUp, makeSchedule, removeSchedule } from '../engine/schedule.ts'
import { checkStart } from '../engine/start-run.ts'
import type { ApiContext, Route } from './api.ts'
import { readJson } from './body.ts'
import { once } from './idempotency.ts'
import { checkBody, checkQuery, noQuery, type ScheduleBody, scheduleBody } from './schemas.ts'
import type { Answer, schedule as shape } from './shapes.ts'
import { time, timeOrNull } from './views/figures.ts'

export const scheduleRoutes = (ctx: ApiContext): Route[] => [
  {
    path: '/v1/schedules',
    methods: { GET: (c, tenant) => list(ctx, c, tenant), POST: (c, tenant) => create(ctx, c, tenant) },
  },
  {
    path: '/v1/schedules/:id',
    methods: { GET: (c, tenant) => get(ctx, c, tenant), DELETE: (c, tenant) => remove(ctx, c, tenant) },
  },
]

async function list(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const stored = await ctx.store.listSchedules(tenant)
  const states = new Map(stored.map(({ id, state }) => [id, state]))
  const now = ctx.clock.now()
  const inFile = (await ctx.schedules?.list(tenant)) ?? []
  return c.json({
    schedules: [
      ...inFile.map((s) => view(s, states.get(s.id) ?? NO_STATE, 'file', now)),
      ...stored.flatMap(({ schedule, state }) => (schedule ? [view(schedule, state, 'api', now)] : [])),
    ],
  })
}

async function get(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const id = c.req.param('id') ?? ''
  const found = SCHEDULE_ID.test(id) ? await lookUp(ctx, { tenant, id }) : undefined
  if (!found?.schedule)
    throw new SubledgerError('unknown_schedule', 'There is no such schedule. GET /v1/schedules lists all of them.')
  return c.json(view(found.schedule, found.state, found.source, ctx.clock.now()))
}

async function create(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const body = checkBody(scheduleBody, await readJson(c.req.raw, ctx.settings.limits?.bodyBytes))
  const now = ctx.clock.now()
  const draft = readBody(body, '', now)
  if (byteLength(JSON.stringify(draft)) > MAX_SCHEDULE_BYTES)
    throw new SubledgerError('too_large', `A schedule may have at most ${MAX_SCHEDULE_BYTES} bytes.`)
  return once(ctx, c, tenant, body, {
    token: ctx.ids.nonce,
    stands: (id) => findSchedule(ctx, tenant, id),
    work: async (name) => {
      const id = name ?? ctx.ids.nonce()
      const made = (await ctx.store.listSchedules(tenant)).filter((s) => s.schedule)
      // a retry finds its own among them: what may be refused by now was looked at when it was made
      const begun = made.find((s) => s.id === id)
      const first = begun ? (begun.state.dueAt ?? now) : await firstTick(ctx, tenant, draft, made.length, now)
      const { schedule, state } = await makeSchedule(ctx, tenant, { ...draft, id }, first)
      c.header('Location', `/v1/schedules/${id}`)
      return c.json(view(schedule, state, 'api', now), 201)
    },
  })
}

/** @throws SubledgerError when it cannot be made now: what could never start is refused here, and not when nobody looks */
async function firstTick(
  ctx: ApiContext,
  tenant: string,
  { run, expression, timezone }: Schedule,
  others: number,
  now: number,
): Promise<number> {
  await checkStart(ctx, { ...run, tenant })
  const first = readSchedule(expression, timezone, now)(now)
  if (first === undefined) throw invalid('/cron', 'does not come again')
  if (others >= MAX_SCHEDULES)
    throw new SubledgerError('bad_request', `There are ${MAX_SCHEDULES} schedules already: delete one first.`)
  return first
}

async function remove(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const { id } = await findSchedule(ctx, tenant, c.req.param('id') ?? '')
  await removeSchedule(ctx, { tenant, id })
  return c.body(null, 204)
}

/** One that was made over the API. @throws SubledgerError unknown_schedule */
async function findSchedule(ctx: ApiContext, tenant: string, id: string): Promise<{ id: string }> {
  const found = SCHEDULE_ID.test(id) ? await ctx.store.getSchedule({ tenant, id }) : undefined
  if (found?.schedule) return { id }
  throw new SubledgerError(
    'unknown_schedule',
    'There is no such schedule that was made over the API. GET /v1/schedules lists them; one of a file is ended there.',
  )
}

/** @throws SubledgerError bad_request when it tells no time */
export function readBody(body: ScheduleBody, id: string, createdAt: number): Schedule {
  const { cron, rate, timezone = 'UTC', overlap = 'skip', ...run } = body
  const expression = cron === undefined ? `rate(${rate})` : `cron(${cron})`
  try {
    readSchedule(expression, timezone, createdAt)
  } catch (e) {
    if (!(e instanceof RangeError)) throw e
    throw invalid(/time zone/.test(e.message) ? '/timezone' : cron === undefined ? '/rate' : '/cron', e.message)
  }
  return { id, expression, timezone, overlap, run, createdAt }
}

const invalid = (path: string, message: string): SubledgerError =>
  new SubledgerError('bad_request', `The body: ${path} ${message}.`, { issues: [{ path, message }] })

function view(s: Schedule, state: ScheduleState, source: 'api' | 'file', now: number): Answer<typeof shape> {
  const { team, agent = null, input, tasks, budget, maxConcurrency = null, tags = {} } = s.run
  const next = readSchedule(s.expression, s.timezone, s.createdAt)(now)
  return {
    scheduleId: s.id,
    source,
    expression: s.expression,
    timezone: s.timezone,
    overlap: s.overlap,
    team,
    agent,
    input: input === undefined ? null : cutBytes(input, PREVIEW_BYTES),
    tasks: tasks?.length ?? null,
    budget: budget ? { usd: budget.usd ?? null, tokens: budget.tokens ?? null } : null,
    maxConcurrency,
    tags,
    createdAt: source === 'file' ? null : time(s.createdAt),
    nextAt: timeOrNull(next ?? null),
    queued: state.queued.length,
    skipped: state.skipped,
    lastTicks: state.ticks.map((t) => ({ scheduledAt: time(t.at), outcome: t.outcome, runId: t.runId })),
  }
}
