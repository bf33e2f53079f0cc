import type { ReportRow, UsageDay, UsageDayRef, UsageItem, UsageItemRef } from '../domain/report.ts'
import type { Page, Put, Written } from '../ports.ts'

/**
 * What tenants have spent, day by day: usage items beside the runs, and their folds. Every read is consistent.
 * A report counts each item once: in its hour's fold, or by itself while its hour is not folded, or as a late item where
 * its hour was folded without it.
 */
export interface UsageStore {
  /** W27. `nonce` names parts of an item that is larger than an item may be */
  putUsage(item: UsageItem, nonce: string): Promise<Put>
  getUsage(ref: UsageItemRef): Promise<UsageItem | undefined>
  /** W28: from now on the sweep finds the day */
  openUsageDay(ref: UsageDayRef, dueAt: number): Promise<Put>
  getUsageDay(ref: UsageDayRef): Promise<UsageDay | undefined>
  /** days with hours to fold, earliest first */
  dueUsageDays(now: number, options: { limit: number; after?: string }): Promise<Page<UsageDayRef>>
  /** W29: announces that the first `hours` hours are going to be folded */
  closeUsageHours(ref: UsageDayRef, hours: number): Promise<Written<UsageDay>>
  /** items of one hour of a day, folded or not, late ones included */
  listUsage(ref: UsageDayRef, hour: number): Promise<readonly UsageItem[]>
  /** W30: decides which items are in the hour's fold (`taken`, by their names), and what they come to */
  putUsageHour(
    ref: UsageDayRef,
    hour: number,
    fold: { rows: readonly ReportRow[]; taken: readonly UsageItemRef[] },
    nonce: string,
  ): Promise<Put>
  hasUsageHour(ref: UsageDayRef, hour: number): Promise<boolean>
  /** whether the item is in the fold of its hour; undefined: the hour has no fold */
  isUsageTaken(ref: UsageItemRef): Promise<boolean | undefined>
  /** W31: the fold of its hour is without it, so it counts beside the fold */
  putLateUsage(item: UsageItem, nonce: string): Promise<Put>
  hasLateUsage(ref: UsageItemRef): Promise<boolean>
  /** what the folds of the first `hours` hours come to. @throws when one of them is missing */
  readUsageHours(ref: UsageDayRef, hours: number): Promise<readonly ReportRow[]>
  /** W32 */
  putUsageDay(ref: UsageDayRef, rows: readonly ReportRow[], nonce: string): Promise<Put>
  /** W33 */
  moveUsageFolded(ref: UsageDayRef, to: { folded: number; dueAt: number | null }): Promise<Written<UsageDay>>
  /** everything that is reported of a day */
  readUsage(ref: UsageDayRef): Promise<readonly ReportRow[]>
}
