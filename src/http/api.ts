import type { Context } from 'hono'
import { SubledgerError } from '../domain/errors.ts'
import { RUN_ID, SESSION_ID } from '../domain/ids.ts'
import type { Run, RunRef, SessionRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { addInput } from '../engine/add-input.ts'
import type { decideApproval } from '../engine/approve.ts'
import type { cancelRun } from '../engine/cancel-run.ts'
import type { changeBudget } from '../engine/change-budget.ts'
import type { retryRun } from '../engine/retry-run.ts'
import type { startRun } from '../engine/start-run.ts'
import type { ScheduleTimer } from '../ports/schedule-timer.ts'

/** What the API needs of the outside world: what the things that it does through the engine need. */
export type ApiContext = Parameters<typeof startRun>[0] &
  Parameters<typeof addInput>[0] &
  Parameters<typeof retryRun>[0] &
  Parameters<typeof cancelRun>[0] &
  Parameters<typeof changeBudget>[0] &
  Parameters<typeof decideApproval>[0] & {
    /** left out: schedules of the API are ticked by the timer that looks at the table */
    readonly scheduleTimer?: ScheduleTimer
  }

/** One route's answer. The tenant has been established; `by` is who asks, or null where nobody need say. */
export type Handler = (c: Context, tenant: string, by: string | null) => Response | Promise<Response>

export interface Route {
  /** Hono's path pattern */
  readonly path: string
  readonly methods: { readonly [method: string]: Handler }
}

export function runRef(c: Context, tenant: string): RunRef {
  const runId = c.req.param('runId') ?? ''
  if (!RUN_ID.test(runId)) throw unknownRun(runId)
  return { tenant, runId }
}

export function sessionRef(c: Context, tenant: string): SessionRef {
  const ref = runRef(c, tenant)
  const sessionId = c.req.param('sessionId') ?? ''
  if (!SESSION_ID.test(sessionId)) throw unknownSession({ ...ref, sessionId })
  return { ...ref, sessionId }
}

/** @throws SubledgerError unknown_run */
export async function findRun(ctx: ApiContext, ref: RunRef): Promise<Run> {
  const run = await ctx.store.getRun(ref)
  if (!run) throw unknownRun(ref.runId)
  return run
}

/** @throws SubledgerError unknown_session, also for a group, which is no session outside */
export async function findSession(ctx: ApiContext, ref: SessionRef): Promise<SessionHeader> {
  const header = await ctx.store.getHeader(ref)
  if (!header || header.kind === 'group') throw unknownSession(ref)
  return header
}

export const unknownRun = (runId: string): SubledgerError =>
  new SubledgerError('unknown_run', `There is no run ${shown(runId)}. GET /v1/runs lists them.`)

export const unknownSession = (ref: SessionRef): SubledgerError =>
  new SubledgerError(
    'unknown_session',
    `There is no session ${shown(ref.sessionId)} in run ${ref.runId}. GET /v1/runs/${ref.runId}/sessions lists them.`,
  )

/** An id as it came from outside, fit for a text. */
const shown = (id: string): string => JSON.stringify(id.length > 40 ? `${id.slice(0, 40)}…` : id)
