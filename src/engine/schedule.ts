import { SubledgerError } from '../domain/errors.ts'
import { NO_STATE, readSchedule, type Schedule, type ScheduleState } from '../domain/schedule.ts'
import type { ScheduleRef } from '../ports/schedule-store.ts'
import type { ScheduleTimer } from '../ports/schedule-timer.ts'
import type { Clock, Logger, Store } from '../ports.ts'
import type { EngineContext } from './context.ts'

interface Ctx {
  readonly store: Pick<Store, 'putSchedule' | 'getSchedule' | 'moveSchedule' | 'deleteSchedule'>
  readonly clock: Clock
  readonly log: Logger
  readonly scheduleTimer?: ScheduleTimer
}

/** What is known of a schedule: of one of the API the item says what it is, of one of the file its state alone. */
export interface KnownSchedule {
  /** undefined: there is none, or none any more */
  readonly schedule: Schedule | undefined
  readonly state: ScheduleState
  readonly source: 'api' | 'file'
}

export async function lookUp(
  ctx: { readonly store: Pick<Store, 'getSchedule'> } & Pick<EngineContext, 'schedules'>,
  ref: ScheduleRef,
): Promise<KnownSchedule> {
  const stored = await ctx.store.getSchedule(ref)
  const state = stored?.state ?? NO_STATE
  if (stored?.schedule) return { schedule: stored.schedule, state, source: 'api' }
  return { schedule: await ctx.schedules?.get(ref), state, source: 'file' }
}

/**
 * Makes a schedule: its item first, due at its first time, so that the timer of the table ticks it until the one outside
 * does; then the timer outside; then the item says so. Whoever dies in between leaves one that ticks, and is there. Again
 * under the same id: what is left of it is done.
 * @param first epoch ms of its first tick
 * @returns the schedule as it is stored, and its state
 * @throws SubledgerError bad_request, when the timer outside does not take it
 */
export async function makeSchedule(
  ctx: Ctx,
  tenant: string,
  draft: Schedule,
  first: number,
): Promise<{ schedule: Schedule; state: ScheduleState }> {
  const ref = { tenant, id: draft.id }
  await ctx.store.putSchedule(tenant, draft, first)
  for (;;) {
    const stored = await ctx.store.getSchedule(ref)
    if (!stored?.schedule) {
      // it was deleted meanwhile, perhaps before it was there outside
      await ctx.scheduleTimer?.stop(ref)
      return { schedule: draft, state: NO_STATE }
    }
    const { schedule, state } = stored
    if (!ctx.scheduleTimer || state.outside) return { schedule, state }
    try {
      await ctx.scheduleTimer.start(tenant, schedule, nextOf(schedule, ctx.clock.now()) ?? first)
    } catch (e) {
      if (SubledgerError.is(e)) await ctx.store.deleteSchedule(ref)
      throw e
    }
    const { v, ...seen } = state
    // what it has to do otherwise is still looked at
    const dueAt = seen.starting || seen.queued.length > 0 ? ctx.clock.now() : null
    if ((await ctx.store.moveSchedule(ref, v, { ...seen, outside: true, dueAt })) === 'written')
      return { schedule, state: { ...seen, outside: true, dueAt, v: v + 1 } }
  }
}

/** Ends a schedule: outside first, so that nothing ticks without its item. Whoever dies in between can do it again. */
export async function removeSchedule(ctx: Ctx, ref: ScheduleRef): Promise<void> {
  await ctx.scheduleTimer?.stop(ref)
  await ctx.store.deleteSchedule(ref)
}

const nextOf = (s: Schedule, now: number): number | undefined =>
  readSchedule(s.expression, s.timezone, s.createdAt)(now)
