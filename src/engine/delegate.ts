import { isBlocked, isUnlimited, sharesFor } from '../domain/budget.ts'
import { childSessionId } from '../domain/ids.ts'
import { MAX_PENDING, PREVIEW_BYTES } from '../domain/limits.ts'
import { type Amount, covers, missing, times, ZERO } from '../domain/money.ts'
import { effectiveLimit } from '../domain/outer-limit.ts'
import { type Delegation, isTerminal, mayRun, type SessionKind } from '../domain/session.ts'
import { findAgent } from '../domain/team.ts'
import { cutBytes } from '../domain/text.ts'
import { type Drive, now, refresh, reload } from './drive.ts'
import { holdFor } from './estimate.ts'
import { askGrant } from './grants.ts'
import { borrow } from './money.ts'
import { newHeader } from './new-header.ts'
import { wakeNeedy } from './wake-needy.ts'
import { childWidth } from './width.ts'

/** A child to be: who, and where its task stands. */
export interface Kid {
  /** null: a group */
  readonly agent: string | null
  readonly kind: SessionKind
  readonly via: { readonly turn: number | null; readonly index: number }
  /** sessions with a model that it stands for: 1, or the size of a group */
  readonly weight: number
  readonly task: string | null
}

/** Children that may be pending at once. Groups and lists of tasks are bounded by their size alone. */
export const widthOf = (d: Pick<Drive, 'agent' | 'team'>): number =>
  d.agent === null ? MAX_PENDING : (d.team.limits?.width ?? MAX_PENDING)

/** Headers put and events sent at once. */
const AT_ONCE = 25

/**
 * Gives ordinals and money to children in one write, puts their headers, and only then invokes them. What was decided
 * stands in the header, so repeating it after a crash makes the same children. Where the money does not reach for all of
 * them, the others are born with nothing and wait for what comes back. Fewer than asked for are made where the header has
 * no room: the first `count` of them.
 */
export async function delegate(d: Drive, turn: number, kids: readonly Kid[]): Promise<Delegation | 'again' | 'gone'> {
  while (d.header.deleg.turn < turn) {
    const h = d.header
    const count = isBlocked(d.run.limit) ? 0 : Math.min(kids.length, Math.max(0, widthOf(d) - h.pending.size))
    const { share, funded } = await shares(d, kids.slice(0, count))
    if (d.header !== h && d.header.deleg.turn >= turn) break
    const from = d.header.next
    // those that cannot be funded are held back, but for groups: they call no model, their children wait in them
    const needs = kids.slice(0, count).flatMap((kid, i) => (i >= funded && kid.agent !== null ? [from + i] : []))
    // where none can be made, the same write with no children decides that once and for all
    const to = { round: h.round, turn, from, count, share, funded, needs, now: now(d) }
    const written = await d.ctx.store.delegate(d.ref, to)
    if (written.written) {
      d.header = written.item
      continue
    }
    const g = await refresh(d)
    if (g.deleg.turn >= turn) break
    if (isTerminal(g) || g.attempt !== d.attempt || g.round !== h.round) return 'gone'
    if (g.stop) return 'again'
  }
  const { deleg } = d.header
  if (deleg.turn > turn) {
    await reload(d) // the log has moved on without us
    return 'again'
  }
  if (d.childrenPut < turn) {
    await putChildren(d, deleg, kids)
    d.childrenPut = turn
  }
  return deleg
}

async function shares(d: Drive, kids: readonly Kid[]): Promise<{ share: Amount; funded: number }> {
  if (kids.length === 0) return { share: ZERO, funded: 0 }
  const limit = effectiveLimit(d.run)
  const weight = Math.max(...kids.map((k) => k.weight))
  const hold = dearestHold(d, kids)
  if (!isUnlimited(limit) && (d.header.parentId !== null || d.run.granted)) await stockUp(d, hold, weight * kids.length)
  return sharesFor(d.header.avail, kids.length, { limit, hold, weight })
}

/** Tries to have enough to give: where money is short, for no more of them than can work at once. */
async function stockUp(d: Drive, hold: Amount, count: number): Promise<void> {
  for (let some = Math.min(count, 2 * d.header.width); some > 0; some = Math.floor(some / 2)) {
    const need = times(hold, some)
    for (;;) {
      const { avail } = await refresh(d)
      if (covers(avail, need)) return
      if ((await borrow(d.ctx, d.ref, 'avail', missing(avail, need))) === 'ok') continue
      if (!d.run.granted || (await askGrant(d.ctx, d.ref, missing(avail, need))) !== 'granted') break
    }
  }
}

/** What one call of the dearest agent among the children may cost; groups count as any agent of the team. */
function dearestHold(d: Drive, kids: readonly Kid[]): Amount {
  const names = kids.some((k) => k.agent === null) ? d.team.agents.map((a) => a.name) : kids.map((k) => k.agent!)
  const at = now(d)
  return [...new Set(names)]
    .map((name) => holdFor(d.team, findAgent(d.team, name)!, at))
    .reduce((a, b) => ({ usd: a.usd > b.usd ? a.usd : b.usd, tok: a.tok > b.tok ? a.tok : b.tok }), ZERO)
}

async function putChildren(d: Drive, deleg: Delegation, kids: readonly Kid[]): Promise<void> {
  const width = childWidth(d)
  const { store, invoker } = d.ctx
  const at = now(d)
  const children = kids.slice(0, deleg.count).map((kid, i) => ({
    ordinal: deleg.from + i,
    ref: { ...d.ref, sessionId: childSessionId(d.ref.sessionId, deleg.from + i) },
    header: newHeader(d.run, d.team, {
      sessionId: childSessionId(d.ref.sessionId, deleg.from + i),
      parentId: d.ref.sessionId,
      ordinal: deleg.from + i,
      agent: kid.agent,
      kind: kid.kind,
      // a group is no level of its own: its tasks are one below the root
      depth: kid.kind === 'group' ? d.header.depth : d.header.depth + 1,
      round: d.header.round,
      via: kid.via,
      width,
      share: i < deleg.funded ? deleg.share : ZERO,
      taskPreview: kid.task === null ? null : cutBytes(kid.task, PREVIEW_BYTES),
      now: at,
    }),
  }))
  await inBatches(children, (c) => store.putHeader(c.header))
  // read again: while headers were put, settlements may have let more children in
  const h = await refresh(d)
  const allowed = new Set(mayRun(h, width))
  await inBatches(
    children.filter((c) => allowed.has(c.ordinal)),
    (c) => invoker.invoke(c.ref),
  )
  await wakeNeedy(d.ctx, d.ref, h)
}

async function inBatches<T>(all: readonly T[], each: (one: T) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < all.length; i += AT_ONCE) await Promise.all(all.slice(i, i + AT_ONCE).map(each))
}
