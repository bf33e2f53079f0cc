/**
 * Pots: limits of the team file that sessions of a run share. A session holds a part of each of its pots before it calls,
 * gives back what it does not need when it lies down, and settles with what it has really spent once its log is closed.
 *
 * Holders are sessions. One that waits for something to come back has a hold of nothing as well, under its id behind `~`:
 * whoever gives something back takes that away, and wakes it.
 */
import { isBlocked, positive, takeAhead } from '../domain/budget.ts'
import { chargeOf, type LogState } from '../domain/log.ts'
import { type Amount, add, covers, formatUsd, min, missing, same, sub, ZERO } from '../domain/money.ts'
import { msAmount, type Pot, potsOf, TEAM_BUDGET } from '../domain/pot.ts'
import { isClaimable, isTerminal, type SessionHeader, TIMER } from '../domain/session.ts'
import type { End, ResponseSlot } from '../domain/turn.ts'
import type { SharedLimit } from '../ports/limit-store.ts'
import { type Drive, now, refresh } from './drive.ts'
import { type CallBound, modelOf, shrinkCall } from './estimate.ts'
import { mark } from './mark.ts'
import { sleepForMoney } from './sleep-for-money.ts'
import { takeOff } from './wake.ts'

/** Working time that is held ahead at once, where there is plenty. */
const TIME_AHEAD: Amount = msAmount(60_000)
/** A call may begin while there is any time left. It is not broken off. */
const ANY_TIME: Amount = msAmount(1)
/** Sessions woken by one change. */
const AT_ONCE = 2

const WAITER = '~'
const waiterOf = (sessionId: string): string => WAITER + sessionId
const waitersIn = (limit: SharedLimit): string[] => Object.keys(limit.held).filter((h) => h.startsWith(WAITER))
const refOf = ({ ref }: Drive, pot: Pot) => ({ tenant: ref.tenant, runId: ref.runId, pot: pot.item })
const potsIn = (d: Drive): Pot[] => (d.agent ? potsOf(d.team, d.agent) : [])

/** What this round's calls of the session take out of a pot: each round is settled by itself. */
function spentIn(d: Drive, pot: Pot, more?: ResponseSlot): Amount {
  const { parentId, round } = d.header
  const begun = [...d.slots.requests.values()].filter((r) => r.round === round).map((r) => r.n)
  const first = parentId === null && round > 1 ? Math.min(...begun) : 0
  return [...d.slots.responses.values(), ...(more ? [more] : [])]
    .filter((r) => r.n >= first && r.outcome !== 'none')
    .reduce((sum, r) => add(sum, pot.kind === 'time' ? msAmount(r.durationMs) : chargeOf(r)), ZERO)
}

const needOf = (pot: Pot, spent: Amount, call: CallBound): Amount =>
  add(spent, pot.kind === 'time' ? ANY_TIME : call.hold)

/** Whether what the session is known to hold is enough for a call after this outcome: then nothing need be asked. */
export const potsCover = (d: Drive, outcome: ResponseSlot, next: CallBound): boolean =>
  potsIn(d).every((pot) => {
    const held = d.pots.get(pot.item)
    return held ? covers(held, needOf(pot, spentIn(d, pot, outcome), next)) : false
  })

/**
 * Sees that the session's hold in each of its pots covers what it has spent and the next call. Where too little is there
 * and others hold some that may come back, it waits without an invocation; where nothing can come back, the call's output
 * cap shrinks to what there is.
 * @returns the call as it may be made · the end of the session, where a pot does not cover it · what the driver should do
 */
export async function fundPots(
  d: Drive,
  state: LogState,
  call: CallBound,
  at: number,
): Promise<CallBound | End | 'again' | 'gone'> {
  let wanted = call
  for (const pot of potsIn(d)) {
    const funded = isBlocked(pot.limit) ? endBy(pot, wanted) : await fundFrom(d, state, pot, wanted, at)
    if (typeof funded === 'string' || 'status' in funded) return funded
    wanted = funded
  }
  return wanted
}

async function fundFrom(
  d: Drive,
  state: LogState,
  pot: Pot,
  call: CallBound,
  at: number,
): Promise<CallBound | End | 'again' | 'gone'> {
  const { store } = d.ctx
  const ref = refOf(d, pot)
  const waiter = waiterOf(d.ref.sessionId)
  const spent = spentIn(d, pot)
  let wanted = call
  for (;;) {
    const need = needOf(pot, spent, wanted)
    const known = d.pots.get(pot.item)
    if (known && covers(known, need)) return wanted
    const seen = await look(d, pot)
    if (typeof seen === 'string') return seen
    const mine = d.pots.get(pot.item) ?? null
    if (mine && covers(mine, need)) return wanted
    const more = missing(mine ?? ZERO, need)
    if (covers(seen.avail, more)) {
      if (seen.held[waiter]) await store.settleHold(ref, waiter, ZERO, ZERO)
      else await enlarge(d, pot, seen, takeAhead(more, pot.kind === 'time' ? TIME_AHEAD : wanted.hold, seen.avail))
      continue
    }
    const rested = await giveBack(d, state, pot, seen)
    if (rested === 'again') return 'again'
    if (rested === 'given') continue
    if (await anyLive(d, seen)) return lieDown(d, state, pot, more)
    // no single read covers more than one item: two looks must have seen the same
    const twice = await store.getLimit(ref)
    if (!twice || !isSame(seen, twice)) continue
    const funds = positive(sub(seen.avail, sub(spent, mine ?? ZERO)))
    const smaller = pot.kind === 'time' ? undefined : shrinkCall(modelOf(d.team, d.agent!), wanted, funds, at)
    if (!smaller) return endBy(pot, wanted)
    wanted = smaller
  }
}

const isSame = (a: SharedLimit, b: SharedLimit): boolean =>
  a.v === b.v && same(a.avail, b.avail) && Object.keys(a.held).sort().join() === Object.keys(b.held).sort().join()

/**
 * Reads a pot, and makes it where it is not there. The header is read behind it: whoever takes the session over later
 * settles after this read, and a hold that goes by it is then refused by the version.
 */
async function look(d: Drive, pot: Pot): Promise<SharedLimit | 'again' | 'gone'> {
  const ref = refOf(d, pot)
  let seen = await d.ctx.store.getLimit(ref)
  for (; !seen; seen = await d.ctx.store.getLimit(ref)) await d.ctx.store.putLimit(ref, pot.limit)
  const h = await refresh(d)
  if (isTerminal(h) || h.status !== 'running' || h.attempt !== d.attempt) return 'gone'
  if (h.stop) return 'again'
  d.pots.set(pot.item, seen.held[d.ref.sessionId] ?? null)
  return seen
}

async function enlarge(d: Drive, pot: Pot, seen: SharedLimit, more: Amount): Promise<void> {
  const mine = d.pots.get(pot.item) ?? null
  const hold = add(mine ?? ZERO, more)
  const written = await d.ctx.store.hold(refOf(d, pot), d.ref.sessionId, { hold: mine, v: seen.v }, hold)
  if (!written.written) return
  d.pots.set(pot.item, hold)
  // there may be enough for one more of those who wait
  if (covers(written.item.avail, more)) await wakeWaiters(d, pot, written.item, 1)
}

/** Gives back what the session holds beyond what it has spent. */
async function giveBack(
  d: Drive,
  state: LogState,
  pot: Pot,
  seen: SharedLimit,
): Promise<'given' | 'nothing' | 'again'> {
  const mine = d.pots.get(pot.item) ?? null
  const spent = spentIn(d, pot)
  if (mine === null || covers(spent, mine)) return 'nothing'
  // no older driver may put an intent against it any more
  if (!(await mark(d, state))) return 'again'
  const hold = min(mine, spent)
  const written = await d.ctx.store.hold(refOf(d, pot), d.ref.sessionId, { hold: mine, v: seen.v }, hold)
  if (written.written) d.pots.set(pot.item, hold)
  return 'given'
}

/** Before a session sleeps for anything: it keeps of its pots what it has spent, and nothing for later. */
export async function restPots(d: Drive, state: LogState): Promise<'done' | 'again'> {
  for (const pot of potsIn(d)) {
    for (;;) {
      const known = d.pots.get(pot.item)
      if (known === null || (known && covers(spentIn(d, pot), known))) break
      const seen = await look(d, pot)
      if (typeof seen === 'string') return 'again'
      const given = await giveBack(d, state, pot, seen)
      if (given === 'again') return 'again'
    }
  }
  return 'done'
}

/** After a session has gone to sleep: those who waited for what it had may know by now that there is nothing to wait for. */
export async function wakeAtPots(d: Drive): Promise<void> {
  for (const pot of potsIn(d)) {
    const seen = await d.ctx.store.getLimit(refOf(d, pot))
    if (seen) await wakeWaiters(d, pot, seen, AT_ONCE)
  }
}

/** Whether anybody holds what may come back: one who sleeps holds what it has spent, and nothing else. */
async function anyLive(d: Drive, seen: SharedLimit): Promise<boolean> {
  const others = Object.keys(seen.held).filter(
    (holder) => !holder.startsWith(WAITER) && holder !== d.ref.sessionId && !seen.held[waiterOf(holder)],
  )
  const headers = await Promise.all(others.map((sessionId) => d.ctx.store.getHeader({ ...d.ref, sessionId })))
  return headers.some((h) => !h || !isAsleep(h, now(d)))
}

/** Who waits for a time alone has kept what it holds. */
const isAsleep = (h: SessionHeader, at: number): boolean =>
  h.status === 'waiting' && !isClaimable(h, at) && !h.asks.has(TIMER)

/** Lies down until something comes back, and then looks once more: what came in between woke nobody. */
async function lieDown(d: Drive, state: LogState, pot: Pot, more: Amount): Promise<'again' | 'gone'> {
  const { store } = d.ctx
  const ref = refOf(d, pot)
  const waiter = waiterOf(d.ref.sessionId)
  // nothing of its other pots either
  if ((await restPots(d, state)) === 'again') return 'again'
  const seen = await store.getLimit(ref)
  if (!seen?.held[waiter]) {
    const waits = seen && (await store.hold(ref, waiter, { hold: null, v: seen.v }, ZERO))
    if (!waits?.written) return 'again'
  }
  if (!(await sleepForMoney(d, state))) return 'again'
  const after = await store.getLimit(ref)
  if (!after?.held[waiter] || covers(after.avail, more) || !(await anyLive(d, after))) {
    await takeOff(d.ctx, d.ref)
  }
  return 'gone'
}

/** Wakes some of those who wait at a pot. Of several at once each wakes others: who takes the sign away wakes. */
async function wakeWaiters(d: Drive, pot: Pot, seen: SharedLimit, most: number): Promise<void> {
  const waiters = waitersIn(seen)
    .filter((w) => w !== waiterOf(d.ref.sessionId))
    .sort()
  let woken = 0
  for (let i = 0; i < waiters.length && woken < most; i++) {
    const waiter = waiters[(seen.v + i) % waiters.length]!
    await d.ctx.store.settleHold(refOf(d, pot), waiter, ZERO, ZERO)
    // who has not lain down yet sees that its sign is gone, and looks again. Where it was gone already, that may be by
    // this very write, whose answer was lost
    if ((await takeOff(d.ctx, { ...d.ref, sessionId: waiter.slice(WAITER.length) })).woken) woken++
  }
}

/**
 * The log is closed: no call begins any more, and what is not spent goes back. Before the header is terminal, so that a
 * session that has ended holds nothing. May be repeated: a hold is settled once.
 */
export async function settlePots(d: Drive): Promise<void> {
  if (d.potsSettled) return
  for (const pot of potsIn(d)) await settlePot(d, pot)
  d.potsSettled = true
}

async function settlePot(d: Drive, pot: Pot): Promise<void> {
  const { store } = d.ctx
  const [ref, me] = [refOf(d, pot), d.ref.sessionId]
  let known = d.pots.get(pot.item)
  for (;;) {
    if (!known) {
      const seen = await store.getLimit(ref)
      if (!seen) return
      known = seen.held[me] ?? null
      const waiter = waiterOf(me)
      if (seen.held[waiter]) await store.settleHold(ref, waiter, ZERO, ZERO)
      // there is no older driver whose hold could come late; but it may have been settled by a write whose answer was lost
      if (known === null && d.attempt === 1) return wakeWaiters(d, pot, seen, AT_ONCE)
    }
    const settled = await store.settleHold(ref, me, known, known ? spentIn(d, pot) : ZERO)
    if (settled.written) return wakeWaiters(d, pot, settled.item, AT_ONCE)
    known = undefined
  }
}

function endBy(pot: Pot, { hold }: CallBound): End {
  const { path, limit } = pot
  if (pot.kind === 'time') {
    const message = `The team file's "${path}.max_time" of ${Number(limit.tok) / 1000} s is used up.`
    return { status: 'failed', reason: 'timeout', error: { code: TEAM_BUDGET, message } }
  }
  const message = `The team file's "${path}" does not cover the next model call, which may cost up to USD ${formatUsd(hold.usd)} and ${hold.tok} tokens.`
  return { status: 'failed', reason: 'budget', error: { code: TEAM_BUDGET, message } }
}
