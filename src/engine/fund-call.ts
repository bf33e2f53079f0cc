import { isBlocked, isUnlimited, positive } from '../domain/budget.ts'
import type { LogState } from '../domain/log.ts'
import { type Amount, add, covers, formatUsd, isZero, missing, sub, ZERO } from '../domain/money.ts'
import { effectiveLimit } from '../domain/outer-limit.ts'
import type { SessionRef } from '../domain/run.ts'
import type { SessionHeader } from '../domain/session.ts'
import type { End } from '../domain/turn.ts'
import { type Drive, refresh } from './drive.ts'
import { type CallBound, leastHold, modelOf, shrinkCall } from './estimate.ts'
import { noteShortage } from './give-back.ts'
import { askGrant } from './grants.ts'
import { letIn } from './let-in.ts'
import { lookFor, NO_OUTER, type Outer } from './look-outer.ts'
import { mark } from './mark.ts'
import { haveOwn } from './money.ts'
import { restPots, wakeAtPots } from './pots.ts'
import { rest } from './rest-run.ts'
import { sleepForMoney } from './sleep-for-money.ts'
import { finishGiving, pathTo, survey } from './survey.ts'
import { takeOff } from './wake.ts'
import { wakeNeedy } from './wake-needy.ts'

/**
 * Sets money aside for a call, or else waits for some without holding an invocation. Where nothing can come back any
 * more, the call's output cap shrinks to what there is. What the run does not have is asked for of the limits outside.
 * @returns the call as it may be made · the end, where no budget covers it · what the driver should do instead
 */
export async function fundCall(
  d: Drive,
  state: LogState,
  call: CallBound,
  at: number,
): Promise<CallBound | End | 'again' | 'gone'> {
  if (isBlocked(d.run.limit)) return refusal(call, NO_OUTER)
  const path = await pathTo(d.ctx, d.header)
  const model = modelOf(d.team, d.agent!)
  let wanted = call
  let refused = false
  for (;;) {
    const funds = await haveOwn(d, add(state.spent, wanted.hold), wanted.hold)
    if (funds === 'gone') return 'gone'
    const nothing = isBlocked(effectiveLimit(d.run))
    if (funds === 'ok' && !nothing) {
      await passOn(d)
      return wanted
    }
    if (d.header.stop) return 'again'
    const back = await standBack(d, state)
    if (back !== 'done') return back
    const found = await survey(d.ctx, d.ref, path)
    d.header = found.header
    if (found.moved) {
      wanted = call
      continue
    }
    // what a call has cost above its hold is missing now
    const all = add(sub(found.header.own, state.spent), found.funds)
    let outside = false
    if (covers(all, wanted.hold) && !nothing) {
      if (found.place) continue
    } else {
      const outer = await askOutside(d, missing(all, wanted.hold))
      if (outer === 'granted') continue
      if (!found.live && outer.wait && !refused) {
        const rested = await rest(d, state, path, wanted.hold)
        if (rested === 'marked') return 'again'
        if (rested !== 'wait') {
          refused = rested === 'refused'
          continue
        }
        outside = true
      } else if (!found.live) {
        const smaller = nothing && !outer.some ? undefined : shrinkCall(model, call, add(all, outer.left), at)
        if (!smaller) {
          if (outer.resumeAt !== null) await noteShortage(d.ctx, d.ref, leastHold(model, call, at))
          return refusal(call, outer)
        }
        wanted = smaller
        continue
      }
    }
    // nor does it keep anything of its pots while it sleeps
    if ((await restPots(d, state)) === 'again') return 'again'
    return lieDown(d, state, { call: wanted, path, outside })
  }
}

/** More than the run has, of the limits outside of it; where there are none, nothing is left there. */
async function askOutside(d: Drive, lacks: Amount): Promise<'granted' | Outer> {
  if (!d.run.granted) return NO_OUTER
  const asked = await askGrant(d.ctx, d.ref, lacks)
  if (asked === 'granted') d.run = (await d.ctx.store.getRun(d.ref, { consistent: true })) ?? d.run
  return asked
}

function refusal({ hold }: CallBound, { short }: Outer): End {
  const what = `the next model call, which may cost up to USD ${formatUsd(hold.usd)} and ${hold.tok} tokens`
  const message =
    short.length === 0
      ? `The budget does not cover ${what}.`
      : `What is left of the limit of ${short.join(' and of ')} does not cover ${what}.`
  // `limit`: no larger budget helps, but time does
  return { status: 'failed', reason: 'budget', error: { code: short.length === 0 ? 'budget' : 'limit', message } }
}

const parentOf = (d: Drive): SessionRef | undefined =>
  d.header.parentId === null ? undefined : { ...d.ref, sessionId: d.header.parentId }

/** There may be more where this came from: one who has got some wakes the next. */
async function passOn(d: Drive): Promise<void> {
  const parentRef = parentOf(d)
  if (!parentRef || isUnlimited(effectiveLimit(d.run)) || isZero(d.header.taken)) return
  const parent = await d.ctx.store.getHeader(parentRef)
  if (parent && parent.needs.size > 0 && !isZero(positive(parent.avail))) await wakeNeedy(d.ctx, parentRef, parent)
}

/**
 * A session that cannot go on with what it has leaves it to the others, and is then held back: nobody waits for it any
 * more. Who stands between it and the root is told that there is somebody to wake.
 */
async function standBack(d: Drive, state: LogState): Promise<'done' | 'again' | 'gone'> {
  const parentRef = parentOf(d)
  if (!parentRef) return 'done'
  const h = d.header
  const unspent = positive(sub(h.own, state.spent))
  const idle = positive(h.avail)
  if (!isZero(unspent) || !isZero(idle)) {
    if (!isZero(unspent) && !(await mark(d, state))) return 'again'
    const given = add(h.given, add(unspent, idle))
    const own = isZero(unspent) ? null : { seen: h.own, to: sub(h.own, unspent), attempt: d.attempt }
    const written = await d.ctx.store.giveBack(d.ref, { seenGiven: h.given, given, avail: idle, own })
    if (!written.written) {
      await refresh(d)
      return 'again'
    }
    d.header = written.item
  }
  await register(d, parentRef)
  return 'done'
}

async function register(d: Drive, parentRef: SessionRef): Promise<void> {
  const { store } = d.ctx
  const into = d.header.pending.size > 0 ? 'wants' : 'needs'
  const { ordinal, given } = d.header
  const parent = await store.getHeader(parentRef)
  if (!parent?.pending.has(ordinal)) return
  const held = into === 'needs' && !parent.needs.has(ordinal)
  const change = { before: parent, after: parent, width: d.header.width }
  if (held) {
    const returned = parent.returned[ordinal] ?? null
    // more came back than this driver knows of: another one has the session, and says what it gives
    if (!covers(given, returned ?? ZERO)) return
    const written = isZero(sub(given, returned ?? ZERO))
      ? await store.need(parentRef, ordinal, into)
      : await store.takeBack(parentRef, ordinal, returned, given, true)
    if (!written.written) return register(d, parentRef)
    change.after = written.item
    // its place is free now: for those who have money, and then for others who wait for one
    await letIn(d.ctx, parentRef, change)
    await wakeNeedy(d.ctx, parentRef, change.after)
  } else await finishGiving(d.ctx, parent, d.header)
  await tellAbove(d, into === 'wants' ? d.header : change.after)
}

/** Each level learns that somebody below waits for money. */
async function tellAbove(d: Drive, from: SessionHeader): Promise<void> {
  for (let h: SessionHeader = from; h.parentId !== null; ) {
    const ref = { ...d.ref, sessionId: h.parentId }
    const parent = await d.ctx.store.getHeader(ref)
    if (!parent?.pending.has(h.ordinal)) return
    if (!parent.wants.has(h.ordinal)) await d.ctx.store.need(ref, h.ordinal, 'wants')
    h = parent
  }
}

/** Lies down until there is money, and then looks once more: what came between looking and lying down woke nobody. */
async function lieDown(
  d: Drive,
  state: LogState,
  { call, path, outside }: { call: CallBound; path: readonly string[]; outside: boolean },
): Promise<'again' | 'gone'> {
  const h = await sleepForMoney(d, state)
  if (!h) return 'again'
  await wakeAtPots(d)
  if (h.needs.size > 0) await wakeNeedy(d.ctx, d.ref, { ...h, asks: new Set() })
  const found = await survey(d.ctx, d.ref, path)
  const all = add(sub(h.own, state.spent), found.funds)
  const enough = covers(all, call.hold)
  const goOn = enough ? found.place : (!found.live && !outside) || (await isLeftOutside(d, missing(all, call.hold)))
  if (found.moved || goOn) {
    await takeOff(d.ctx, d.ref)
  }
  return 'gone'
}

async function isLeftOutside(d: Drive, lacks: Amount): Promise<boolean> {
  const run = d.run.granted && (await d.ctx.store.getRun(d.ref, { consistent: true }))
  return Boolean(run?.granted && (await lookFor(d.ctx, run, lacks)).enough)
}
