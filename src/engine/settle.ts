import { childSessionId } from '../domain/ids.ts'
import { totalsOf } from '../domain/log.ts'
import { add, isZero, sub, ZERO } from '../domain/money.ts'
import { type SessionRef, wasRaised } from '../domain/run.ts'
import {
  isOutOfBudget,
  isTerminal,
  mayRun,
  type SessionHeader,
  subtreeBooks,
  subtreeSessions,
  type TerminalStatus,
} from '../domain/session.ts'
import type { ResponseSlot } from '../domain/turn.ts'
import { addRow, amountOf, type BookRow, NO_TOTALS, subBooks, subTotals, unknown } from '../domain/usage.ts'
import { resumeRun } from './change-budget.ts'
import type { EngineContext } from './context.ts'
import { dueAfter, expiryOf } from './due-times.ts'
import { giveBack } from './give-back.ts'
import { headerOf } from './header-of.ts'
import { reportUsage } from './usage-item.ts'
import { wake } from './wake.ts'
import { wakeNeedy } from './wake-needy.ts'
import { warnBudget } from './warn-budget.ts'

type Ctx = Pick<
  EngineContext,
  'store' | 'teams' | 'invoker' | 'clock' | 'ids' | 'log' | 'metrics' | 'settings' | 'outerLimits'
>

/**
 * Reports an ended session to its parent (or its run), once, and wakes whoever waited for it. Repeating it is safe.
 * @param ended its header as just written; read here otherwise
 */
export async function settleUp(ctx: Ctx, ref: SessionRef, ended?: SessionHeader): Promise<void> {
  const { store, clock } = ctx
  let refused = false
  for (;;) {
    // totals of an ended session change only by corrections of unknown calls: without one there is nothing to look at
    const h = ended && unknown(subtreeBooks(ended)).calls === 0 ? ended : await recheck(ctx, ref)
    if (!isTerminal(h)) return // the root, in its next round by now
    const books = subtreeBooks(h)
    const mayChange = unknown(books).calls > 0
    if (h.parentId === null) {
      await finishRun(ctx, h)
      return push(ctx, ref)
    }
    const parentRef = { ...ref, sessionId: h.parentId }
    // who has just written the end need not look first: what it took is what was lent, or else the write is refused
    const parent = ended && !refused ? undefined : await headerOf(ctx, parentRef)
    if (parent && !parent.pending.has(h.ordinal)) {
      // settled already, perhaps by a write whose answer was lost, or by somebody who died before the wake
      await wake(ctx, parentRef, parent)
      if (refused) {
        await startQueued(ctx, parentRef, parent, h)
        await wakeNeedy(ctx, parentRef, parent)
      }
      return push(ctx, ref)
    }
    const lent = parent ? (parent.lent[h.ordinal] ?? null) : isZero(h.taken) ? null : h.taken
    const returned = parent ? (parent.returned[h.ordinal] ?? null) : isZero(h.given) ? null : h.given
    const back = sub(sub(add(h.share, lent ?? ZERO), returned ?? ZERO), amountOf(books))
    const seen = mayChange ? { v: h.v, books } : null
    const settlement = { ordinal: h.ordinal, books, sessions: subtreeSessions(h), lent, returned, back, seen }
    const settled = await store.settle(parentRef, settlement, clock.now())
    if (!settled.written) {
      refused = true
      continue
    }
    await wake(ctx, parentRef, settled.item)
    await startNext(ctx, parentRef, settled.item, h)
    await wakeNeedy(ctx, parentRef, settled.item)
    if (settled.item.parentId === null) await warnBudget(ctx, settled.item, amountOf(subtreeBooks(settled.item)))
    if (mayChange) await push(ctx, ref)
    return
  }
}

/** A settlement frees a place: the next child that was held back for width may start. */
async function startNext(ctx: Ctx, parentRef: SessionRef, parent: SessionHeader, child: SessionHeader): Promise<void> {
  if (isTerminal(parent) || parent.stop) return
  const last = mayRun(parent, child.width).at(-1)
  // a child that had no place itself (it was stopped before it began) leaves none
  if (last === undefined || last < child.ordinal) return
  const before = mayRun({ ...parent, pending: new Set([...parent.pending, child.ordinal]) }, child.width)
  if (before.includes(last)) return
  const next = { ...parentRef, sessionId: childSessionId(parentRef.sessionId, last) }
  // the parent may still be putting headers: whom it has not put yet it lets in itself, afterwards
  if ((await ctx.store.getHeader(next))?.status === 'queued') await ctx.invoker.invoke(next)
}

/**
 * The same where the settlement was written, but its answer was lost: whom it let in cannot be told any more, so every
 * child behind this one that may run and was never claimed gets an event.
 */
async function startQueued(
  ctx: Ctx,
  parentRef: SessionRef,
  parent: SessionHeader,
  child: SessionHeader,
): Promise<void> {
  if (isTerminal(parent) || parent.stop) return
  for (const o of mayRun(parent, child.width).filter((o) => o > child.ordinal)) {
    const ref = { ...parentRef, sessionId: childSessionId(parentRef.sessionId, o) }
    const h = await ctx.store.getHeader(ref)
    if (h?.status === 'queued' && h.attempt === 0) await ctx.invoker.invoke(ref)
  }
}

/** The root has ended: so does the run, with the root's totals. */
async function finishRun(ctx: Ctx, root: SessionHeader): Promise<void> {
  const run = await ctx.store.getRun(root, { consistent: true })
  if (run?.status !== 'running' || run.round !== root.round) return giveBack(ctx, root)
  const spent = await reportUsage(ctx, run, root)
  const now = ctx.clock.now()
  const books = subtreeBooks(root)
  await warnBudget(ctx, root, amountOf(books), run)
  // out of money is no end: the run waits for some days, in case its limit is raised
  const waits = isOutOfBudget(root) && !run.stop
  const status = waits ? 'waiting' : (root.status as TerminalStatus)
  // one that waits is kept, whatever its age
  const expiresAt = waits ? undefined : expiryOf(ctx.settings.retentionMs, now)
  const due = dueAfter({ ...run, status, books, expiresAt: expiresAt ?? null, reportedAt: now }, now)
  const raised = wasRaised({ ...run, status })
  const finished = await ctx.store.finishRun(root, {
    round: root.round,
    status,
    stopReason: root.stopReason!,
    error: root.error,
    books,
    sessions: subtreeSessions(root),
    v: root.v,
    reportedAt: root.finishedAt!,
    // who holds something of the limits outside gives it back right afterwards, and the sweep does where he dies before
    dueAt: run.grants.length > 0 || raised ? now + ctx.settings.eventAgeMs : due,
    ...(expiresAt !== undefined && { expiresAt }),
    ...((run.granted || waits) && { seenLimitSeq: run.limitSeq }),
    now,
  })
  // it was cancelled meanwhile: then it ends; or what it holds, or its limit, has changed
  if (!finished.written) return waits || run.granted ? finishRun(ctx, root) : undefined
  ctx.metrics?.roundFinished({ tenant: run.tenant, team: run.team, rows: spent, at: now })
  await giveBack(ctx, root)
  if (raised) {
    const waiting = await ctx.store.getRun(root, { consistent: true })
    if (waiting && wasRaised(waiting)) await resumeRun(ctx, waiting)
  }
}

/** Looks whether an ended session's unknown calls have become known since, and takes what they say. */
async function recheck(ctx: Ctx, ref: SessionRef): Promise<SessionHeader> {
  for (;;) {
    const h = await headerOf(ctx, ref)
    if (!isTerminal(h)) return h
    const found = await firstKnown(ctx, ref, h)
    if (!found) return h
    await ctx.store.correctOwn(ref, h.v, found.n, correctedRows(h.rows, found), ctx.clock.now())
  }
}

async function firstKnown(ctx: Ctx, ref: SessionRef, h: SessionHeader): Promise<ResponseSlot | undefined> {
  for (const n of Object.keys(h.unknowns)) {
    const slot = await ctx.store.getResponse(ref, Number(n))
    if (slot && slot.outcome !== 'unknown') return slot
  }
  return undefined
}

/** Own rows with one unknown call taken out at its bound and put in as what it became. */
function correctedRows(rows: readonly BookRow[], slot: ResponseSlot): BookRow[] {
  const { hold, estimate, cap } = slot.bound!
  const i = rows.findIndex((r) => r.agent === slot.agent && r.model === slot.model && r.outcome === 'unknown')
  const row = rows[i]
  if (!row) throw new Error(`call ${slot.n} is listed as unknown, but the books have no unknown call of ${slot.model}`)
  const priced = row.totals.unpricedCalls === 0
  const bound = {
    ...NO_TOTALS,
    calls: 1,
    inputTokens: estimate,
    outputTokens: cap,
    cost: priced ? hold.usd : 0n,
    unpricedCalls: priced ? 0 : 1,
  }
  const rest = { ...row, totals: subTotals(row.totals, bound) }
  const without = rest.totals.calls === 0 ? rows.toSpliced(i, 1) : rows.with(i, rest)
  if (slot.outcome === 'none') return [...without]
  return addRow(without, { agent: slot.agent, model: slot.model, outcome: slot.outcome, totals: totalsOf(slot) })
}

/** Brings every level above up to what is known below. Compared, never counted: doing it twice changes nothing. */
async function push(ctx: Ctx, from: SessionRef): Promise<void> {
  let ref = from
  for (;;) {
    const h = await ctx.store.getHeader(ref)
    if (!h || !isTerminal(h)) return
    if (h.parentId === null) {
      if (await correctRun(ctx, h)) return
      continue
    }
    const parentRef = { ...ref, sessionId: h.parentId }
    const parent = await headerOf(ctx, parentRef)
    const old = parent.seen[h.ordinal]
    if (!old) return // not settled yet (it will take the right total by itself), or settled without unknowns
    if (old.v < h.v) {
      const books = subtreeBooks(h)
      const corrected = await ctx.store.correctParent(parentRef, h.ordinal, old.v, {
        seen: { v: h.v, books },
        difference: subBooks(books, old.books),
        back: sub(amountOf(old.books), amountOf(books)),
        now: ctx.clock.now(),
      })
      if (corrected.written) await wakeNeedy(ctx, parentRef, corrected.item)
      continue
    }
    ref = parentRef
  }
}

/** True: the run says what its root says, or is not for us to correct. */
async function correctRun(ctx: Ctx, root: SessionHeader): Promise<boolean> {
  // also one that was deleted: what is spent is spent
  const run = await ctx.store.getRun(root, { consistent: true, gone: true })
  if (!run || run.status === 'running' || run.v >= root.v) return true
  if (run.round !== root.round) return false // a round has ended since the root was read
  await reportUsage(ctx, run, root)
  await ctx.store.correctRun(root, run.v, { v: root.v, books: subtreeBooks(root), now: ctx.clock.now() })
  return false
}

/** After a late answer: corrects an ended session and everything above it. */
export async function repair(ctx: Ctx, ref: SessionRef): Promise<void> {
  await recheck(ctx, ref)
  await push(ctx, ref)
}
