import { hourOf, rowsBeyond, sumRows, type UsageItem, type UsageItemRef, usageDayOf } from '../domain/report.ts'
import type { Run } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import { modelName, type TeamDefinition } from '../domain/team.ts'
import type { BookRow } from '../domain/usage.ts'
import type { EngineContext } from './context.ts'
import { findDefinition } from './definition.ts'
import { foldHour, foldTime } from './fold-usage.ts'

type Ctx = Pick<EngineContext, 'store' | 'teams' | 'ids'>

/** The items of one round, as far as they have been put. */
export interface Chain {
  readonly own: UsageItem
  /** the last of them: the round's own, or a correction */
  readonly last: UsageItem
  /** all of them in order, without a seal */
  readonly items: readonly UsageItem[]
  /** a later round has taken over: nothing can follow any more */
  readonly sealed: boolean
}

/**
 * Puts what a round of a run has spent into the reports of the day on which its root ended: the difference to what the
 * run's items say already. Before W17, and before W23 for what became known later. It may be repeated at any time, by
 * anybody at once: an item's name is made of facts that never change, so a second writer finds it taken, goes on from
 * what it says, and adds the rest.
 * @returns what all items of the round say together
 */
export async function reportUsage(ctx: Ctx, run: Run, root: SessionHeader): Promise<readonly BookRow[]> {
  const place = { tenant: run.tenant, runId: run.runId, round: root.round, at: root.finishedAt! }
  // a run that has not ended in this round has seldom an item of it
  let chain = run.status === 'running' ? undefined : await readChain(ctx, place)
  for (;;) {
    if (chain) await seeThatItCounts(ctx, chain.last)
    if (chain && (chain.sealed || chain.last.v >= root.v)) return spentIn(chain)
    const spent = await spentRows(ctx, run, root)
    const base = chain ? cumulative(chain.last) : await reportedBefore(ctx, run, root)
    const item: UsageItem = {
      ...place,
      from: chain ? chain.last.v : null,
      v: root.v,
      team: run.team,
      tags: run.tags,
      rows: rowsBeyond(spent, base),
      base,
      before: chain || root.round === 1 ? null : run.reportedAt,
      seal: false,
    }
    if (chain && item.rows.length === 0) return spentIn(chain)
    const put = await ctx.store.putUsage(item, ctx.ids.nonce())
    chain =
      put === 'written'
        ? { own: chain?.own ?? item, last: item, items: [...(chain?.items ?? []), item], sealed: false }
        : await readChain(ctx, place)
  }
}

const cumulative = (item: UsageItem): BookRow[] => sumRows(item.base, item.rows)
const spentIn = (chain: Chain): BookRow[] => rowsBeyond(cumulative(chain.last), chain.own.base)

/** Follows the items of a round: each correction is named by the version that it goes on from. */
export async function readChain(
  ctx: Pick<EngineContext, 'store'>,
  place: Omit<UsageItemRef, 'from'>,
): Promise<Chain | undefined> {
  const own = await ctx.store.getUsage({ ...place, from: null })
  if (!own) return undefined
  const items = [own]
  for (;;) {
    const last = items.at(-1)!
    const next = await ctx.store.getUsage({ ...place, from: last.v })
    if (!next || next.seal) return { own, last, items, sealed: next !== undefined }
    items.push(next)
  }
}

/**
 * What the rounds before have reported. Their chain is sealed first: a late correction of them, by somebody who read the
 * run before this round began, would be counted here as well.
 */
async function reportedBefore(ctx: Ctx, run: Run, root: SessionHeader): Promise<readonly BookRow[]> {
  // runs that ended before there were usage items have reported nothing
  if (root.round === 1 || run.reportedAt === null) return []
  const place = { tenant: run.tenant, runId: run.runId, round: root.round - 1, at: run.reportedAt }
  for (;;) {
    const chain = await readChain(ctx, place)
    if (!chain) return []
    await seeThatItCounts(ctx, chain.last)
    if (chain.sealed) return cumulative(chain.last)
    const { v, team, tags } = chain.last
    const seal: UsageItem = { ...place, from: v, v, team, tags, rows: [], base: [], before: null, seal: true }
    if ((await ctx.store.putUsage(seal, ctx.ids.nonce())) === 'written') return cumulative(chain.last)
  }
}

/** All sessions' own rows, with models by the names that reports use. Read after the root, so they are no older. */
async function spentRows(ctx: Ctx, run: Run, root: SessionHeader): Promise<BookRow[]> {
  const team = await findDefinition(ctx, run)
  const headers = root.next === 0 ? [root] : await allHeaders(ctx, run)
  return sumRows(headers.flatMap((h) => namedRows(h.rows, team)))
}

export const namedRows = (rows: readonly BookRow[], team: TeamDefinition | undefined): BookRow[] =>
  rows.map((row) => ({ ...row, model: team ? modelName(team, row.model) : row.model }))

async function allHeaders(ctx: Ctx, run: Run): Promise<readonly SessionHeader[]> {
  const headers: SessionHeader[] = []
  let after: string | undefined
  do {
    const page = await ctx.store.listHeaders(run, { consistent: true, ...(after !== undefined && { after }) })
    headers.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return headers
}

/**
 * An item that has been put is either seen by the fold of its hour, or must count beside it. The look comes after the
 * put: a fold that begins later finds the item.
 */
async function seeThatItCounts(ctx: Ctx, item: UsageItem): Promise<void> {
  const ref = usageDayOf(item)
  const hour = hourOf(item.at)
  for (;;) {
    const day = await ctx.store.getUsageDay(ref)
    if (!day) {
      if ((await ctx.store.openUsageDay(ref, foldTime(ref, 0))) === 'written') return
      continue
    }
    if (hour >= day.closing) return
    // its hour is being folded, or has been
    await foldHour(ctx, ref, hour)
    if (!(await ctx.store.isUsageTaken(item))) await ctx.store.putLateUsage(item, ctx.ids.nonce())
    return
  }
}
