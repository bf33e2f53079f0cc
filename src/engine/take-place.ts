import { SubledgerError } from '../domain/errors.ts'
import type { RunRef } from '../domain/run.ts'
import { isTerminal } from '../domain/session.ts'
import type { Place } from '../ports/place-store.ts'
import type { Clock, Store } from '../ports.ts'

/** Runs looked at with every start, so that the item keeps to runs that go on. */
const LOOKS = 4
/** Runs looked at before a start is refused. */
const LOOKS_WHEN_FULL = 50
/** With fewer places there is nothing to keep small. */
const FEW = 8
/** The item has at most so many places, whatever the limit. */
const MOST_PLACES = 1_000
/** A place whose run is not there after this belongs to a start that never came to its run. */
const ABANDONED_MS = 900_000

interface Context {
  readonly store: Pick<Store, 'takePlace' | 'givePlaceBack' | 'getRun'>
  readonly clock: Clock
}

/**
 * Takes the run's place among those of its tenant, before anything else is written. A run that has one keeps it. Nobody
 * gives a place back when its run ends: later starts look at some of the places and give back what is over, so that the end
 * of a run costs nothing and a crash leaves nothing behind.
 * @param sessions that the run may have at once
 * @param most of all runs of the tenant together
 * @throws SubledgerError too_many_runs
 */
export async function takePlace(ctx: Context, ref: RunRef, sessions: number, most: number): Promise<void> {
  const place: Place = { runId: ref.runId, sessions: Math.max(sessions, Math.ceil(most / MOST_PLACES)) }
  const first = await ctx.store.takePlace(ref.tenant, place, most)
  const others = first.places.filter((p) => p.runId !== ref.runId)
  if (first.taken) {
    if (others.length >= FEW) await clear(ctx, ref, others, LOOKS)
    return
  }
  if ((await clear(ctx, ref, others, LOOKS_WHEN_FULL)) > 0) {
    const second = await ctx.store.takePlace(ref.tenant, place, most)
    if (second.taken) return
  }
  throw new SubledgerError(
    'too_many_runs',
    `Runs that have not ended may have ${most} sessions at once together, and this one asks for ${sessions} more: ` +
      'wait for some of them, cancel some, or ask for less with maxConcurrency.',
  )
}

/** Gives places of ended runs back. @returns how many */
async function clear(
  ctx: Context,
  { tenant, runId }: RunRef,
  places: readonly Place[],
  looks: number,
): Promise<number> {
  // each start begins elsewhere, so that runs that take long do not hide those behind them
  const hash = [...runId].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 65_521, 7)
  // and each try of the same start
  const start = (hash + Math.floor(ctx.clock.now() / 1_000) * looks) % Math.max(1, places.length)
  const seen = [...places.slice(start), ...places.slice(0, start)].slice(0, looks)
  const over = await Promise.all(
    seen.map(async (place) => {
      if (!(await isOver(ctx, { tenant, runId: place.runId }))) return 0
      await ctx.store.givePlaceBack(tenant, place)
      return 1
    }),
  )
  return over.reduce<number>((sum, n) => sum + n, 0)
}

async function isOver(ctx: Context, ref: RunRef): Promise<boolean> {
  const run = await ctx.store.getRun(ref, { consistent: true })
  return run ? isTerminal(run) : ctx.clock.now() - timeOf(ref.runId) > ABANDONED_MS
}

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
/** A run id is a ULID: its first ten digits are the time, in epoch ms. */
export const timeOf = (runId: string): number => [...runId.slice(0, 10)].reduce((t, c) => t * 32 + DIGITS.indexOf(c), 0)
