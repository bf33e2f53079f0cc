import { dayStart, HOUR_MS, HOURS, type ReportRow, reportRows, sumReport, type UsageDayRef } from '../domain/report.ts'
import type { EngineContext, Invocation } from './context.ts'

type Ctx = Pick<EngineContext, 'store' | 'ids'>

/** What came of the folds of one sweep. */
export interface FoldReport {
  /** hours folded */
  readonly hours: number
  /** days that could not be looked at; the next sweep tries again */
  readonly failed: number
}

/** An hour is folded so long after its end: what comes later than that counts beside the fold, and costs more to read. */
const FOLD_AFTER_MS = HOUR_MS
/** A sweep begins no further day when less than this is left of its invocation. */
const LAST_DAY_MS = 10_000
const PAGE = 50

/** When the hour that follows `folded` hours of a day may be folded, epoch ms. */
export const foldTime = (ref: UsageDayRef, folded: number): number =>
  dayStart(ref.day) + (folded + 1) * HOUR_MS + FOLD_AFTER_MS

/** Folds every hour of every tenant that is over. May run at any time and beside itself. */
export async function foldUsage(
  ctx: Ctx & Pick<EngineContext, 'clock' | 'log'>,
  invocation: Invocation,
): Promise<FoldReport> {
  let [hours, failed] = [0, 0]
  let after: string | undefined
  do {
    const page = await ctx.store.dueUsageDays(ctx.clock.now(), { limit: PAGE, ...(after !== undefined && { after }) })
    for (const ref of page.items) {
      if (invocation.deadlineAt - ctx.clock.now() < LAST_DAY_MS) return { hours, failed }
      try {
        hours += await foldDay(ctx, ref, ctx.clock.now())
      } catch (fault) {
        ctx.log.error('could not fold a day of usage', { ...ref, fault: String(fault) })
        failed++
      }
    }
    after = page.next
  } while (after !== undefined)
  return { hours, failed }
}

/**
 * Folds the hours of a day that are over, in their order. Each step is a put that happens once or a mark that only moves
 * forward, so whoever finds it half done goes on.
 * @returns how many hours it moved on
 */
export async function foldDay(ctx: Ctx, ref: UsageDayRef, now: number): Promise<number> {
  const { store } = ctx
  const day = await store.getUsageDay(ref)
  if (!day) return 0
  const until = Math.min(HOURS, Math.floor((now - FOLD_AFTER_MS - dayStart(ref.day)) / HOUR_MS))
  if (until <= day.folded) return 0
  // announced before the items are read: who puts one later sees it, and looks for it in the fold
  if (day.closing < until) await store.closeUsageHours(ref, until)
  for (let hour = day.folded; hour < until; hour++) await foldHour(ctx, ref, hour)
  if (until === HOURS) await store.putUsageDay(ref, sumReport(await store.readUsageHours(ref, HOURS)), ctx.ids.nonce())
  const dueAt = until === HOURS ? null : foldTime(ref, until)
  const moved = await store.moveUsageFolded(ref, { folded: until, dueAt })
  return moved.written ? until - day.folded : 0
}

/** Decides what is in the fold of an hour, unless somebody has. The hour has been closed before. */
export async function foldHour(ctx: Ctx, ref: UsageDayRef, hour: number): Promise<void> {
  if (await ctx.store.hasUsageHour(ref, hour)) return
  const items = await ctx.store.listUsage(ref, hour)
  const rows: ReportRow[] = sumReport(items.flatMap(reportRows))
  await ctx.store.putUsageHour(ref, hour, { rows, taken: items }, ctx.ids.nonce())
}
