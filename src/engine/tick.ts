import { ERRORS, SubledgerError } from '../domain/errors.ts'
import {
  lastTime,
  type QueuedTick,
  readSchedule,
  type Schedule,
  type ScheduleState,
  type Tick,
} from '../domain/schedule.ts'
import { isTerminal } from '../domain/session.ts'
import type { ScheduleRef } from '../ports/schedule-store.ts'
import type { EngineContext, Invocation } from './context.ts'
import { lookUp } from './schedule.ts'
import { startRun } from './start-run.ts'

/** How long a tick is remembered: longer than the day for which EventBridge may repeat it. */
const KEPT_SECONDS = 2 * 86_400
/** A tick that is told later than this, or before its time, is nobody's. */
const OLDEST_MS = 86_400_000 + 3_600_000
const EARLY_MS = 5 * 60_000
/** A scheduled time that was missed is made up for so long. */
const MADE_UP_MS = 86_400_000
/** Ticks that may wait for the run before them; what comes beyond is skipped. */
const MOST_QUEUED = 100
/** Ticks that a schedule tells of. */
const SHOWN_TICKS = 20
/** How often a queue is looked at. */
const LOOK_MS = 60_000
const PAGE = 50
const LAST_MS = 10_000

type Ctx = EngineContext

/**
 * One tick of a schedule: it starts one run, whatever is repeated, or waits behind the run before it, or is skipped, as
 * the schedule's overlap says; all of that is written down. The schedule is looked up by its id.
 * @param at the scheduled time, epoch ms
 * @param outside who ticks a schedule of the API is not the timer here
 * @throws SubledgerError unknown_schedule, bad_request, and what `startRun` throws
 */
export async function tick(ctx: Ctx, ref: ScheduleRef, at: number, outside = false): Promise<Tick> {
  const now = ctx.clock.now()
  if (!(at <= now + EARLY_MS && at >= now - OLDEST_MS))
    throw new SubledgerError('bad_request', 'The scheduled time is not within the last day: the tick is not taken.')
  const once = { tenant: ref.tenant, route: `schedule ${ref.id}`, key: new Date(at).toISOString() }
  // the run's id is decided first, so that whoever repeats the tick starts the same run
  const record = {
    bodyHash: '',
    token: ctx.ids.runId(now),
    createdAt: now,
    expiresAt: Math.floor(now / 1000) + KEPT_SECONDS,
  }
  const put = await ctx.store.putOnce(once, record, now)
  const found = put === 'written' ? undefined : await ctx.store.getOnce(once, now)
  if (found?.answer) return JSON.parse(found.answer.body) as Tick
  const ticked = await decideOnce(ctx, ref, { at, runId: found?.token ?? record.token }, outside)
  const answer = { status: 200, location: null, body: JSON.stringify(ticked) }
  await ctx.store.answerOnce(once, found ?? record, answer, ctx.ids.nonce())
  return ticked
}

async function decideOnce(ctx: Ctx, ref: ScheduleRef, { at, runId }: QueuedTick, outside: boolean): Promise<Tick> {
  for (;;) {
    const { schedule, state: found } = await find(ctx, ref)
    // a tick from outside proves that there is somebody, also where his maker died before he could say so
    const state = outside ? { ...found, outside } : found
    const told = state.ticks.find((t) => t.at === at)
    if (told) {
      return state.starting?.at === at ? begin(ctx, ref, schedule, state) : told
    }
    if (state.starting) {
      // whoever decided that has died behind it, or is at it: starting a run twice is starting it once
      await begin(ctx, ref, schedule, state)
      continue
    }
    const decided = await decide(ctx, ref, schedule, state, { at, runId })
    const { v, ...to } = decided
    if ((await ctx.store.moveSchedule(ref, v, to)) === 'already') continue
    return to.starting ? begin(ctx, ref, schedule, { ...to, v: v + 1 }) : to.ticks[0]!
  }
}

/** What becomes of a tick; `v` is that of the state it was decided on. */
async function decide(
  ctx: Ctx,
  ref: ScheduleRef,
  schedule: Schedule,
  state: ScheduleState,
  { at, runId }: QueuedTick,
): Promise<ScheduleState> {
  const told = (t: Tick) => [t, ...state.ticks].slice(0, SHOWN_TICKS)
  const busy = schedule.overlap !== 'allow' && ((await goesOn(ctx, ref, state.runId)) || state.queued.length > 0)
  if (!busy)
    return {
      ...state,
      ticks: told({ at, outcome: 'started', runId }),
      runId,
      starting: { at, runId },
      dueAt: dueOf(ctx, state),
    }
  if (schedule.overlap === 'queue' && state.queued.length < MOST_QUEUED) {
    const queued = [...state.queued, { at, runId }]
    return { ...state, ticks: told({ at, outcome: 'queued', runId }), queued, dueAt: dueOf(ctx, state) }
  }
  return { ...state, ticks: told({ at, outcome: 'skipped', runId: null }), skipped: state.skipped + 1 }
}

/** Something is left to do: the timer looks at it within a minute. */
const dueOf = (ctx: Ctx, state: ScheduleState): number => {
  const soon = ctx.clock.now() + LOOK_MS
  return state.dueAt === null ? soon : Math.min(state.dueAt, soon)
}

async function goesOn(ctx: Ctx, { tenant }: ScheduleRef, runId: string | null): Promise<boolean> {
  if (runId === null) return false
  const run = await ctx.store.getRun({ tenant, runId }, { consistent: true })
  return run !== undefined && !isTerminal(run)
}

/** Starts what was decided, and writes down that it is done. A run that cannot be started is no run, and nobody waits for it. */
async function begin(ctx: Ctx, ref: ScheduleRef, schedule: Schedule, state: ScheduleState): Promise<Tick> {
  const { at, runId } = state.starting!
  let tick: Tick = { at, outcome: 'started', runId }
  try {
    await startRun(ctx, { ...schedule.run, tenant: ref.tenant, runId })
  } catch (e) {
    // what may go well later is tried again: it stays decided
    if (!SubledgerError.is(e) || ERRORS[e.code].retryable) throw e
    ctx.log.error('a scheduled run could not be started', { ...ref, at, error: e.message })
    tick = { at, outcome: 'failed', runId: null }
  }
  const { v, ...to } = state
  const ticks = state.ticks.map((t) => (t.at === at ? tick : t))
  await ctx.store.moveSchedule(ref, v, { ...to, ticks, starting: null })
  return tick
}

async function find(ctx: Ctx, ref: ScheduleRef): Promise<{ schedule: Schedule; state: ScheduleState }> {
  const { schedule, state } = await lookUp(ctx, ref)
  if (!schedule) throw new SubledgerError('unknown_schedule', `There is no schedule "${ref.id.slice(0, 64)}".`)
  return { schedule, state }
}

/**
 * It is not in the file, perhaps only while that is saved: what it had queued waits for a day, and is started by nobody
 * then.
 */
async function dropQueue(ctx: Ctx, ref: ScheduleRef, state: ScheduleState): Promise<void> {
  const isOld = (t: QueuedTick) => t.at < ctx.clock.now() - MADE_UP_MS
  const { v, starting, ...rest } = state
  const begun =
    starting !== null && (await ctx.store.getRun({ tenant: ref.tenant, runId: starting.runId })) !== undefined
  const dropped = [...state.queued, ...(starting && !begun ? [starting] : [])].filter(isOld)
  if (dropped.length === 0 && !begun) return putOff(ctx, ref)
  const gone = new Set(dropped.map((t) => t.at))
  const ticks = state.ticks.map((t) => (gone.has(t.at) ? { ...t, outcome: 'skipped' as const, runId: null } : t))
  const queued = state.queued.filter((t) => !gone.has(t.at))
  const still = starting && !begun && !gone.has(starting.at) ? starting : null
  if (dropped.length > 0)
    ctx.log.warn('a schedule is gone; its ticks that waited are skipped', { ...ref, ticks: dropped.length })
  const dueAt = queued.length > 0 || still ? ctx.clock.now() + LOOK_MS : null
  const skipped = state.skipped + dropped.length
  await ctx.store.moveSchedule(ref, v, { ...rest, ticks, skipped, queued, starting: still, dueAt })
}

/** Ticks every schedule whose time has come, and starts what waits behind runs that have ended. */
export async function runDueSchedules(ctx: Ctx, invocation: Invocation): Promise<{ started: number; failed: number }> {
  const report = { started: 0, failed: 0 }
  let after: string | undefined
  do {
    const page = await ctx.store.dueSchedules(ctx.clock.now(), { limit: PAGE, ...(after !== undefined && { after }) })
    for (const ref of page.items) {
      if (invocation.deadlineAt - ctx.clock.now() < LAST_MS) return report
      try {
        if (await look(ctx, ref)) report.started++
      } catch (fault) {
        // one schedule that cannot start its run must not keep the others waiting
        ctx.log.error('a schedule could not be run', { ...ref, fault: String(fault) })
        report.failed++
        await putOff(ctx, ref, true).catch((e) =>
          ctx.log.error('a schedule was not put off', { ...ref, fault: String(e) }),
        )
      }
    }
    after = page.next
  } while (after !== undefined)
  return report
}

async function look(ctx: Ctx, ref: ScheduleRef): Promise<boolean> {
  const found = await lookUp(ctx, ref)
  if (!found.schedule) {
    await dropQueue(ctx, ref, found.state)
    return false
  }
  const { schedule, state } = found
  const now = ctx.clock.now()
  if (state.starting) {
    await begin(ctx, ref, schedule, state)
    return true
  }
  const [first, ...queued] = state.queued
  if (first && !(await goesOn(ctx, ref, state.runId))) {
    const { v, ...rest } = state
    const ticks = state.ticks.map((t) => (t.at === first.at ? { ...t, outcome: 'started' as const } : t))
    const to = { ...rest, ticks, runId: first.runId, starting: first, queued, dueAt: now + LOOK_MS }
    if ((await ctx.store.moveSchedule(ref, v, to)) === 'already') return false
    await begin(ctx, ref, schedule, { ...to, v: v + 1 })
    return true
  }
  // the timer here never says when those of a file tick, and those of the API until somebody outside does
  const due = found.source === 'api' && !state.outside ? missedTime(schedule, state, now) : undefined
  const ticked = due === undefined ? undefined : await tick(ctx, ref, due)
  await putOff(ctx, ref)
  return ticked?.outcome === 'started'
}

/** The latest scheduled time that has come since the last tick: those that were missed come once. */
function missedTime(schedule: Schedule, state: ScheduleState, now: number): number | undefined {
  const since = Math.max(state.ticks[0]?.at ?? schedule.createdAt, now - MADE_UP_MS)
  return lastTime(readSchedule(schedule.expression, schedule.timezone, schedule.createdAt), since, now)
}

/**
 * Moves the due time to the next moment at which there is something to do.
 * @param again what is due now was not done
 */
async function putOff(ctx: Ctx, ref: ScheduleRef, again = false): Promise<void> {
  for (;;) {
    const stored = await ctx.store.getSchedule(ref)
    if (!stored) return
    const now = ctx.clock.now()
    const { v, ...state } = stored.state
    const { schedule } = stored
    const timed = schedule && !state.outside
    const next = timed ? readSchedule(schedule.expression, schedule.timezone, schedule.createdAt)(now) : undefined
    const soon = again || state.queued.length > 0 || state.starting ? now + LOOK_MS : undefined
    const times = [next, soon].filter((t) => t !== undefined)
    const dueAt = times.length > 0 ? Math.min(...times) : null
    if ((await ctx.store.moveSchedule(ref, v, { ...state, dueAt })) === 'written') return
  }
}

/**
 * Ticks the schedules of the file whose time has come, where nobody outside does it. Those that were missed come once, and
 * one that could not be ticked is tried again each time, for a day.
 * @param began what was scheduled up to this time is not made up for, epoch ms
 * @returns to be called again and again
 */
export function fileTicks(ctx: Ctx, tenant: string, began: number): () => Promise<void> {
  let since = began
  const behind = new Map<string, number>()
  return async () => {
    const now = ctx.clock.now()
    for (const schedule of (await ctx.schedules?.list(tenant)) ?? []) {
      const from = Math.max(behind.get(schedule.id) ?? since, now - MADE_UP_MS)
      try {
        const last = lastTime(readSchedule(schedule.expression, schedule.timezone, schedule.createdAt), from, now)
        if (last !== undefined) await tick(ctx, { tenant, id: schedule.id }, last)
        behind.delete(schedule.id)
      } catch (fault) {
        ctx.log.error('a schedule could not be run', { tenant, id: schedule.id, fault: String(fault) })
        behind.set(schedule.id, from)
      }
    }
    since = now
  }
}
