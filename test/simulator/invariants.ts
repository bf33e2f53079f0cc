/**
 * The ten invariants of docs/design.md, in its order. Those that can break in one step are looked at at every applied
 * write and every call; the others at rest, when nothing is going on any more and the sweep finds nothing to do.
 *
 * Everything is computed from the items of the table and from what the provider has billed, never from what the engine
 * says of itself.
 */
import { awaitsApproval } from '../../src/domain/approval.ts'
import { SubledgerError } from '../../src/domain/errors.ts'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import { type Amount, add, UNLIMITED } from '../../src/domain/money.ts'
import { effectiveLimit } from '../../src/domain/outer-limit.ts'
import type { Run, SessionRef } from '../../src/domain/run.ts'
import { isTask, isTerminal, MONEY, mayRun, type SessionHeader } from '../../src/domain/session.ts'
import type { ResponseSlot } from '../../src/domain/turn.ts'
import type { SharedLimit } from '../../src/ports/limit-store.ts'
import type { ModelRequest } from '../../src/ports.ts'
import { decodeHeader } from '../../src/store/header-codec.ts'
import { decodeLimit } from '../../src/store/limit-writes.ts'
import { A } from '../../src/store/table.ts'
import type { Item } from '../../src/store/table-client.ts'
import { checkBill } from './bill.ts'
import type { Change } from './mirror.ts'
import { conversationFault, resultsMissingFor, sessionFault } from './transcripts.ts'
import { addAll, amountOf, byOutcome, difference, type Sums, sumOfBooks, sumOfItems, sumOfRows } from './truth.ts'
import { Injected, type Invocation, type World } from './world.ts'

const CANCEL_MS = 2_000
const NOTICED_MS = 180_000

type Written<K extends Change['kind']> = Extract<Change, { kind: K }>

/** What a call takes out of a budget: its hold until its outcome is there, its bound while that is unknown. */
function chargeOf(hold: Amount, r: ResponseSlot | undefined): Amount {
  if (!r) return hold
  if (r.outcome === 'none') return { usd: 0n, tok: 0n }
  if (r.outcome === 'unknown') return r.bound?.hold ?? hold
  return { usd: r.cost ?? 0n, tok: BigInt(r.usage.inputTokens + r.usage.outputTokens) }
}

export class Invariants {
  readonly #world: World
  /** ordinals by `session/ordinal` */
  readonly #given = new Set<string>()
  readonly #settled = new Set<string>()
  readonly #called = new Set<string>()
  /** what each conversation looked like when it was last sent */
  readonly #sent = new Map<string, string[]>()
  readonly #sawStop = new Map<Invocation, string>()
  readonly #stoppedAt = new Map<string, number>()
  readonly #invokedAt = new Map<string, number>()
  /** sessions that have woken by a time-out while children were pending */
  readonly #timedOut = new Set<string>()
  #cancelled: { at: number; by: Invocation; round: number } | undefined
  #sweepLostAt = Number.NEGATIVE_INFINITY
  /** limits outside of the run, by tenant, period and name */
  readonly #limits = new Map<string, SharedLimit>()
  /** headers as each sweep has seen them, and the sweeps that have changed something, or were forestalled */
  readonly #seenBySweep = new Map<Invocation, Map<string, SessionHeader[]>>()
  readonly #acted = new Set<Invocation>()

  constructor(world: World) {
    this.#world = world
  }

  #fail(message: string): void {
    this.#world.fail(message)
  }

  #name = (s: string): string => this.#world.nameOf(s)

  // ------------------------------------------------------------------ at every step

  /** Looks at one applied write. */
  written(inv: Invocation, change: Change, how: 'put' | 'update'): void {
    this.#acted.add(inv)
    if (change.kind === 'body') return
    this.#onceOnly(change, how)
    if (change.kind === 'run') this.#runWritten(inv, change)
    if (change.kind === 'header') this.#headerWritten(change)
    if (change.kind === 'request') this.#requestWritten(change)
    if (change.kind === 'response') this.#responseWritten(change)
    if (change.kind === 'result') this.#spendFirst(change.s, change.after.n, 'a tool result is written')
  }

  /** 1. A child is a fact before it is invoked. */
  invokes(inv: Invocation, ref: SessionRef): void {
    const { headers, run } = this.#world.mirror
    if (!headers.has(ref.sessionId)) this.#fail(`1: ${this.#name(ref.sessionId)} is invoked before its header is put`)
    if (!run) this.#fail('1: a session is invoked before its run is written')
    if (inv.kind === 'sweep' || inv.kind === 'dead letter') this.#sweepInvokes(inv, ref)
  }

  /** 1. Its id is derived from parent and ordinal, and its parent has given the ordinal away. */
  #childPut(h: SessionHeader): void {
    if (h.parentId === null) {
      if (h.sessionId !== rootSessionId(h.runId)) this.#fail(`1: ${h.sessionId} has no parent and is not the root`)
      this.#world.names.set(h.sessionId, 'root')
      return
    }
    this.#world.names.set(h.sessionId, `${this.#name(h.parentId)}.${h.ordinal}`)
    if (h.sessionId !== childSessionId(h.parentId, h.ordinal)) this.#fail(`1: ${h.sessionId} has an id of its own`)
    if (!this.#given.has(`${h.parentId}/${h.ordinal}`)) this.#fail(`1: ${this.#name(h.sessionId)} is nobody's child`)
    if (!isTask(h)) return
    const tries = [...this.#world.mirror.headers.values()].filter((t) => t.via.index === h.via.index && isTask(t))
    const done = tries.find((t) => t.status === 'completed' || (t.round === h.round && t.sessionId !== h.sessionId))
    if (done) this.#fail(`4: task ${h.via.index} is begun again, and ${this.#name(done.sessionId)} is ${done.status}`)
  }

  /** 2. Spend is a fact before anything is done with it. */
  #spendFirst(s: string, n: number, what: string): void {
    const answer = this.#world.mirror.log(s).responses.get(n)
    if (answer?.outcome !== 'accepted') this.#fail(`2: ${what} before answer ${n} of ${this.#name(s)} is on record`)
  }

  /** 3. No call is invisible: its intent is on record, and it is made once. */
  calls(inv: Invocation, request: ModelRequest): void {
    const { sessionId: s, n, driver } = request.call
    const { mirror } = this.#world
    const mine = mirror.intents(s).find((i) => i.n === n && i.driver === driver)
    const what = `call ${n} of ${this.#name(s)}`
    if (!mine) this.#fail(`3: ${what} is made without an intent on record`)
    const key = `${s}/${n}/${driver}`
    if (this.#called.has(key)) this.#fail(`3: ${what} is made twice on one intent`)
    this.#called.add(key)
    // who was overtaken while it stood still is beside the count
    if (mirror.headers.get(s)?.driver === driver) this.#concurrency(s)
    this.#stopObeyed(inv, s, n)
    this.#budget()
    this.#conversation(s, n, request)
  }

  /** 4. Once: what is there is never put again, and only an unknown outcome is replaced. */
  #onceOnly(change: Exclude<Change, { kind: 'body' }>, how: 'put' | 'update'): void {
    if (how === 'put' && change.before) {
      this.#fail(
        `4: a ${change.kind} is put over one that is there${'s' in change ? ` (${this.#name(change.s)})` : ''}`,
      )
    }
    if (how === 'update' && !change.before) this.#fail(`4: an update makes a ${change.kind}`)
    if (how === 'update' && change.kind === 'response') {
      const { before, after, s } = change
      if (before?.outcome !== 'unknown') this.#fail(`4: outcome ${after.n} of ${this.#name(s)} is replaced`)
      if (before?.of !== after.of) this.#fail(`4: outcome ${after.n} of ${this.#name(s)} changes hands`)
    }
  }

  /** 4. A child is given its ordinal once and settles once, when it has ended. */
  #children(before: SessionHeader, h: SessionHeader): void {
    for (const o of h.pending) {
      if (before.pending.has(o)) continue
      const key = `${h.sessionId}/${o}`
      if (this.#given.has(key)) this.#fail(`4: ordinal ${o} of ${this.#name(h.sessionId)} is given twice`)
      if (o < before.next || o >= h.next)
        this.#fail(`4: ordinal ${o} of ${this.#name(h.sessionId)} is beside the watermark`)
      this.#given.add(key)
    }
    for (const o of before.pending) {
      if (h.pending.has(o)) continue
      const key = `${h.sessionId}/${o}`
      const child = this.#world.mirror.headers.get(childSessionId(h.sessionId, o))
      if (this.#settled.has(key)) this.#fail(`4: ${this.#name(h.sessionId)}.${o} settles twice`)
      if (!child || !isTerminal(child)) this.#fail(`4: ${this.#name(h.sessionId)}.${o} settles before it has ended`)
      this.#settled.add(key)
    }
  }

  /** 5. Nothing is settled into a session that has reported its own totals already. */
  #partsBeforeTheWhole(before: SessionHeader, h: SessionHeader): void {
    if (isTerminal(h) && h.pending.size > 0) this.#fail(`5: ${this.#name(h.sessionId)} ends while children are pending`)
    if (isTerminal(before) && before.round === h.round && before.settled !== h.settled) {
      this.#fail(`5: a child settles into ${this.#name(h.sessionId)} after its end`)
    }
  }

  /** 6. Never above the budget: with what is open at its hold and what is unknown at its bound, the calls fit in it. */
  #budget(): void {
    const { mirror } = this.#world
    const budget = effectiveLimit(mirror.run!)
    let [usd, tok] = [0n, 0n]
    for (const s of mirror.headers.keys()) {
      const { responses } = mirror.log(s)
      for (const i of mirror.intents(s)) {
        const charge = chargeOf(i.hold, responses.get(i.n))
        usd += charge.usd
        tok += charge.tok
      }
    }
    if (usd > budget.usd) this.#fail(`6: spent and held are ${usd} pico-USD of ${budget.usd}`)
    if (tok > budget.tok) this.#fail(`6: spent and held are ${tok} tokens of ${budget.tok}`)
  }

  /** 6. Nor above a limit outside: what is spent and held of it together, at every write; and what is granted is held. */
  limitWritten(item: Item): void {
    const limit = decodeLimit(item)
    const where = `${item[A.pk]} ${item[A.name]}`
    const before = this.#limits.get(where)
    this.#limits.set(where, limit)
    // what was held under a limit may be more than a lower one says, but nobody holds more then
    const lowered =
      before !== undefined &&
      (['usd', 'tok'] as const).some((k) => before.avail[k] < 0n || limit.limit[k] < before.limit[k])
    for (const k of ['usd', 'tok'] as const) {
      const held = Object.values(limit.held).reduce((sum, h) => sum + h[k], 0n)
      const all = limit.spent[k] + held
      if (all > limit.limit[k] && !lowered)
        this.#fail(`6: spent and held of ${where} (${k}) are ${all} of ${limit.limit[k]}`)
      if (all + limit.avail[k] !== limit.limit[k]) this.#fail(`6: ${where} (${k}) does not add up`)
    }
  }

  /** 6. What is granted to a run and not spent by it in earlier rounds is held of every limit. */
  #granted(run: Run): void {
    if (!run.granted) return
    for (const { name } of this.#world.outer) {
      const mine = run.grants.filter((g) => g.name === name)
      if (mine.length === 0) continue
      const from = mine[0]!.from
      for (const k of ['usd', 'tok'] as const) {
        if (run.granted[k] >= UNLIMITED) continue
        const held = mine.reduce((sum, g) => {
          const limit = this.#limits.get(`T#${run.tenant}#LIMIT#${g.period} ${g.name}`)
          return sum + (limit?.held[run.runId]?.[k] ?? 0n)
        }, from[k])
        if (held < run.granted[k])
          this.#fail(`6: the run is granted ${run.granted[k]} (${k}) and holds ${held} of ${name}`)
      }
    }
  }

  /** 6. Nobody gives away more than it has. */
  #money(h: SessionHeader): void {
    for (const pot of ['own', 'avail'] as const) {
      if (h[pot].usd < 0n || h[pot].tok < 0n) this.#fail(`6: ${pot} of ${this.#name(h.sessionId)} is below zero`)
    }
  }

  /** 7. A terminal state is final in its round. */
  #final(what: string, before: { status: string; round: number }, after: { status: string; round: number }): void {
    if (!isTerminal(before) || before.status === after.status) return
    if (after.round === before.round) this.#fail(`7: ${what} was ${before.status} and becomes ${after.status}`)
    else if (after.round !== before.round + 1)
      this.#fail(`7: ${what} goes from round ${before.round} to ${after.round}`)
  }

  /** 7. A log is closed before its header becomes terminal, and no call begins after that. */
  #closedFirst(before: SessionHeader | undefined, h: SessionHeader): void {
    if (!isTerminal(h) || (before && isTerminal(before))) return
    if (h.attempt > 0 && !this.#world.mirror.isClosed(h)) {
      this.#fail(`7: ${this.#name(h.sessionId)} ends and its log is open`)
    }
  }

  #openIntent(s: string, n: number): void {
    const h = this.#world.mirror.headers.get(s)
    if (h && isTerminal(h)) this.#fail(`7: an intent of call ${n} is put after ${this.#name(s)} has ended`)
  }

  /** 7. Who has seen that its session should stop calls no model again; and within 2 s nobody does. */
  #stopObeyed(inv: Invocation, s: string, n: number): void {
    const { mirror, now } = this.#world
    const what = `call ${n} of ${this.#name(s)}`
    const run = mirror.run!
    const h = mirror.headers.get(s)!
    if (this.#sawStop.get(inv) === `${run.round}/${h.round}`)
      this.#fail(`7: ${what} is made after its driver saw the stop`)
    // an invocation that was held up cannot know
    const held = (since: number) => (inv.hurtAt ?? 0) > since
    const stopped = this.#stoppedAt.get(s)
    if (h.stop && stopped !== undefined && now > stopped + CANCEL_MS && !held(stopped)) {
      this.#fail(`7: ${what} begins ${now - stopped} ms after it was asked to stop`)
    }
    const c = this.#cancelled
    if (!c || c.round !== run.round || held(c.at)) return
    const within = c.by.hurtAt === undefined ? CANCEL_MS : Math.max(c.at, this.#sweepLostAt) - c.at + NOTICED_MS
    if (now > c.at + within) this.#fail(`7: ${what} begins ${now - c.at} ms after the run was cancelled`)
  }

  /** 8. Nothing waits while paid: who has laid its session down does not sleep. */
  sleeps(inv: Invocation, ms: number): void {
    const h = inv.ref && this.#world.mirror.headers.get(inv.ref.sessionId)
    if (ms > 0 && h?.status === 'waiting' && (inv.hurtAt ?? 0) === 0 && h.attempt === 1 && inv.state === 'running') {
      this.#fail(`8: a driver of ${this.#name(h.sessionId)} sleeps while its session waits`)
    }
  }

  /** No more sessions call a model at once than the run allows. */
  #concurrency(s: string): void {
    const { mirror, provider } = this.#world
    const calling = new Set([s])
    for (const bill of provider.underway()) {
      const h = mirror.headers.get(bill.sessionId)
      if (h?.status === 'running' && h.driver === bill.driver) calling.add(bill.sessionId)
    }
    // the one exception: a session that has its place to itself and woke by a time-out, beside the child it had let in
    for (const c of [...calling]) {
      for (let p = mirror.headers.get(c)!.parentId; p !== null; p = mirror.headers.get(p)!.parentId) {
        if (this.#timedOut.has(p) && mirror.headers.get(p)!.width === 1) calling.delete(p)
      }
    }
    const most = mirror.run!.maxConcurrency
    if (calling.size > most) {
      this.#fail(`concurrency: ${[...calling].map(this.#name).join(', ')} call models at once, at most ${most} may`)
    }
  }

  /** 10. A transcript can always be sent again: it is well formed, and what was sent once is never changed. */
  #conversation(s: string, n: number, request: ModelRequest): void {
    const fault = conversationFault(request.messages)
    if (fault) this.#fail(`10: call ${n} of ${this.#name(s)} sends a broken transcript: ${fault}`)
    const before = this.#sent.get(s) ?? []
    const now = request.messages.map((m) => JSON.stringify(m))
    // a driver that was overtaken may still send the shorter one
    const i = before.findIndex((text, at) => at < now.length && text !== now[at])
    if (i >= 0) this.#fail(`10: message ${i} of ${this.#name(s)} was ${before[i]} and is ${now[i]}`)
    if (now.length > before.length) this.#sent.set(s, now)
  }

  #runWritten(inv: Invocation, { before, after }: Written<'run'>): void {
    if (before) this.#final('the run', before, after)
    const root = this.#world.mirror.headers.get(rootSessionId(after.runId))
    if (isTerminal(after) && !(before && isTerminal(before)) && !(root && isTerminal(root))) {
      this.#fail('5: the run ends before its root')
    }
    if (after.status === 'running') this.#granted(after)
    if (after.stop && !before?.stop) this.#cancelled = { at: this.#world.now, by: inv, round: after.round }
  }

  #headerWritten({ before, after }: Written<'header'>): void {
    if (!before) this.#childPut(after)
    else {
      this.#children(before, after)
      this.#partsBeforeTheWhole(before, after)
      for (const kind of ['usd', 'tok'] as const) {
        const back = after.given[kind] - before.given[kind]
        if (after.own[kind] < before.own[kind] - back) this.#fail(`6: what ${this.#name(after.sessionId)} owns shrinks`)
      }
      this.#final(this.#name(after.sessionId), before, after)
      if (after.deleg.turn > before.deleg.turn && after.agent !== null) {
        this.#spendFirst(after.sessionId, after.deleg.turn, 'children are made')
      }
    }
    if (
      before?.status === 'waiting' &&
      after.status === 'running' &&
      before.wakeAt !== null &&
      after.pending.size > 0
    ) {
      this.#timedOut.add(after.sessionId)
    }
    if (after.first && !before?.first) this.#openIntent(after.sessionId, 0)
    this.#money(after)
    this.#closedFirst(before, after)
    if (after.stop && !before?.stop) this.#stoppedAt.set(after.sessionId, this.#world.now)
  }

  #requestWritten({ s, after }: Written<'request'>): void {
    if (!after.intent) return
    this.#openIntent(s, after.n)
    const missing = resultsMissingFor(this.#world.mirror.log(s), after.n)
    if (missing) this.#fail(`10: request ${after.n} of ${this.#name(s)}: ${missing}`)
  }

  #responseWritten({ s, before, after }: Written<'response'>): void {
    if (!before && after.next) this.#openIntent(s, after.n + 1)
  }

  // ------------------------------------------------------------------ what the sweep owes

  /** Whose change was made already cannot tell whether its own write was, nor whether the rest of it was seen to. */
  refused(inv: Invocation): void {
    this.#acted.add(inv)
  }

  /** What an invocation gets to read: a driver sees a stop, a sweep sees headers. */
  read(inv: Invocation, items: readonly Item[]): void {
    if (inv.kind === 'worker') {
      for (const item of items) {
        if (item[A.stop] === undefined) continue
        const [run, h] = [this.#world.mirror.run!, this.#world.mirror.headers.get(inv.ref!.sessionId)]
        const round = Number(item[A.round])
        const sk = String(item[A.sk])
        if (sk === 'RUN' && run.round === round) this.#sawStop.set(inv, `${round}/${h?.round}`)
        if (sk === `SESSION#${inv.ref!.sessionId}` && h?.round === round) {
          this.#sawStop.set(inv, `${run.round}/${round}`)
        }
      }
      return
    }
    if (inv.kind !== 'sweep' && inv.kind !== 'dead letter') return
    const seen = this.#seenBySweep.get(inv) ?? new Map<string, SessionHeader[]>()
    this.#seenBySweep.set(inv, seen)
    for (const item of items) {
      if (!String(item[A.sk]).startsWith('SESSION#')) continue
      const h = decodeHeader(item)
      seen.set(h.sessionId, [...(seen.get(h.sessionId) ?? []), h])
    }
  }

  /** A live or ended session is never swept needlessly: at one of its looks at least it wanted an event. */
  #sweepInvokes(inv: Invocation, ref: SessionRef): void {
    const seen = this.#seenBySweep.get(inv)?.get(ref.sessionId)
    if (!seen) return // it has put the header itself
    const needless = seen.map((h) => this.#needless(inv, h))
    if (needless.every((why) => why !== undefined)) {
      this.#fail(`sweep: ${this.#name(ref.sessionId)} is invoked needlessly: ${needless.at(-1)}`)
    }
  }

  /** Why a sweep that saw this header need not send an event. */
  #needless(inv: Invocation, h: SessionHeader): string | undefined {
    const now = this.#world.now + inv.skew
    const reopened = h.parentId === null && this.#world.mirror.run!.round > h.round
    if (isTerminal(h)) return reopened ? undefined : `it is ${h.status}`
    if (h.status === 'running') return h.lease !== null && h.lease >= now ? `its driver's lease stands` : undefined
    if (h.asks.has(MONEY)) return undefined // who finds some takes the question off himself
    if (awaitsApproval(h)) return undefined // who finds it decided likewise
    if (this.#world.mirror.headers.get(h.parentId ?? '')?.needs.has(h.ordinal)) return undefined
    if (h.status === 'waiting') {
      const over = h.wakeAt !== null && h.wakeAt < now
      return !over && this.#waitsForSomething(h) ? 'it waits for something' : undefined
    }
    // one that has been asked to stop may be told as often as anybody likes
    const young = h.stop === null && h.updatedAt + this.#world.options.eventAgeMs > now + 2_000
    return young && !this.#acted.has(inv) ? `its event is only ${now - h.updatedAt} ms old` : undefined
  }

  /** Lambda has taken an event for it. */
  accepted(ref: SessionRef): void {
    this.#invokedAt.set(ref.sessionId, this.#world.now)
  }

  /** A sweep was lost, or held up until then. */
  sweepLost(at = this.#world.now): void {
    this.#sweepLostAt = Math.max(this.#sweepLostAt, at)
  }

  /** A lost event is noticed within 3 minutes of virtual time. */
  eventLost(ref: SessionRef): void {
    const { mirror, scheduler } = this.#world
    const lostAt = this.#world.now
    this.accepted(ref) // somebody has noticed what was lost before
    const { attempt } = mirror.headers.get(ref.sessionId)!
    const look = () => {
      const h = mirror.headers.get(ref.sessionId)!
      const noticed = (this.#invokedAt.get(ref.sessionId) ?? 0) > lostAt || h.attempt > attempt || isTerminal(h)
      if (noticed || !this.#wantsEvent(h) || !mirror.run || isTerminal(mirror.run)) return
      const since = Math.max(lostAt, this.#sweepLostAt, h.updatedAt)
      if (this.#world.now < since + NOTICED_MS) scheduler.after(since + NOTICED_MS - this.#world.now, look)
      else this.#fail(`9: an event of ${this.#name(ref.sessionId)} was lost and nobody has noticed for 3 minutes`)
    }
    scheduler.after(NOTICED_MS, look)
  }

  #waitsForSomething = (h: SessionHeader): boolean =>
    h.asks.size > 0 || h.waitingOn.size > 0 || (h.waitAll && h.pending.size > 0)

  /** Nobody drives it and somebody should. */
  #wantsEvent(h: SessionHeader): boolean {
    if (h.status === 'running') return h.lease !== null && h.lease < this.#world.now
    if (h.status === 'waiting') return !this.#waitsForSomething(h)
    const parent = h.parentId === null ? undefined : this.#world.mirror.headers.get(h.parentId)
    return !parent || h.stop !== null || mayRun(parent, h.width).includes(h.ordinal)
  }

  // ------------------------------------------------------------------ faults of the engine's own

  /** Who is not hit by a fault does not throw. */
  threw(inv: Invocation, error: unknown): void {
    if (error instanceof Injected) return
    const goesOn = inv.kind === 'input' || inv.kind === 'retry'
    if (SubledgerError.is(error) && goesOn && error.code === 'run_active') return
    if (SubledgerError.is(error) && inv.kind === 'retry' && error.code === 'nothing_to_retry') return
    const asked = goesOn || inv.kind === 'cancel' || inv.kind === 'budget' || inv.kind === 'approval'
    // two people may say two things about the same call
    if (SubledgerError.is(error) && inv.kind === 'approval' && error.code === 'approval_closed') return
    if (SubledgerError.is(error) && asked && error.code === 'unknown_run') return
    this.#fail(`an invocation throws by itself: ${error instanceof Error ? (error.stack ?? error.message) : error}`)
  }

  /** An error in the log is a fault of the engine's, unless it was the simulator's: then that sweep is lost. */
  loggedError(message: string, fields: object | undefined): void {
    const injected = String((fields as { fault?: unknown })?.fault ?? '').startsWith('Injected')
    if (injected) this.sweepLost()
    else this.#fail(`an error is logged: ${message} ${JSON.stringify(fields)}`)
  }

  // ------------------------------------------------------------------ at rest

  /** Nothing is going on any more, nobody will come by again. */
  atRest(): void {
    const { run, headers } = this.#world.mirror
    if (!run) return
    this.#nothingStuck(run)
    if (this.#world.broken !== undefined) return
    const root = rootSessionId(run.runId)
    const { sums, sessions } = this.#subtree(root)
    const totals = difference(sumOfBooks(run.books), byOutcome(sums))
    if (totals) this.#fail(`5: the run's totals are not those of its calls: ${totals}`)
    if (run.sessions !== sessions) this.#fail(`5: the run counts ${run.sessions} sessions, there are ${sessions}`)
    const known = this.#reached.size
    if (known !== headers.size) this.#fail(`1: ${headers.size - known} sessions are nobody's children`)
    for (const s of headers.keys()) {
      const fault = sessionFault(this.#world.mirror, s)
      if (fault) this.#fail(`10: ${this.#name(s)}: ${fault}`)
    }
    this.#givenBack(run, sums)
    checkBill(this.#world, (message) => this.#fail(message))
  }

  /** 6. After the end nothing is held outside, and what was spent counts there. */
  #givenBack(run: Run, sums: Sums): void {
    if (run.grants.length > 0)
      this.#fail(`6: the run still says that it holds ${JSON.stringify(run.grants.length)} grants`)
    const spent = new Map<string, Amount>()
    for (const [where, limit] of this.#limits) {
      if (limit.held[run.runId]) this.#fail(`6: after the end something is held of ${where}`)
      const name = where.slice(where.indexOf(' ') + 1)
      spent.set(name, add(spent.get(name) ?? { usd: 0n, tok: 0n }, limit.spent))
    }
    const all = amountOf(sums)
    for (const k of ['usd', 'tok'] as const) {
      if (!run.granted || run.granted[k] >= UNLIMITED) continue
      for (const [name, amount] of spent)
        if (amount[k] < all[k]) this.#fail(`6: the run has spent ${all[k]} (${k}), but ${name} counts ${amount[k]}`)
    }
  }

  /** 9. Nothing is stuck: the run has ended, and so has every session of it. */
  #nothingStuck(run: Run): void {
    const { headers } = this.#world.mirror
    const live = [...headers.values()]
      .filter((h) => !isTerminal(h))
      .map((h) => `${this.#name(h.sessionId)} ${h.status}`)
    if (!isTerminal(run))
      this.#fail(`9: stuck: the run is ${run.status}; ${live.join(', ') || 'all sessions have ended'}`)
    else if (live.length > 0) this.#fail(`9: the run is ${run.status}, and ${live.join(', ')}`)
    const root = headers.get(rootSessionId(run.runId))!
    const gaveUp = run.status === 'cancelled' && root.status === 'failed' && root.stopReason === 'budget'
    if (isTerminal(run) && ((root.status !== run.status && !gaveUp) || root.round !== run.round)) {
      this.#fail(`9: the run is ${run.status} in round ${run.round}, its root ${root.status} in ${root.round}`)
    }
  }

  readonly #reached = new Set<string>()

  /** 4, 5, 6. The parts are the whole: items = own rows, settled children = kids, and money is neither made nor lost. */
  #subtree(s: string): { sums: Sums; sessions: number } {
    const { mirror } = this.#world
    const h = mirror.headers.get(s)
    const name = this.#name(s)
    if (!h) {
      this.#fail(`1: a pending ordinal has no header: ${name}`)
      return { sums: new Map(), sessions: 0 }
    }
    this.#reached.add(s)
    const own = sumOfItems(mirror, s)
    const rows = difference(sumOfRows(h), own)
    if (rows) this.#fail(`5: the rows of ${name} are not its calls: ${rows}`)
    for (const i of mirror.intents(s)) {
      if (!mirror.log(s).responses.has(i.n)) this.#fail(`3: call ${i.n} of ${name} has no outcome`)
    }
    const kids: Sums = new Map()
    let sessions = h.kind === 'group' ? 0 : 1
    for (let o = 0; o < h.next; o++) {
      if (!this.#settled.has(`${s}/${o}`)) this.#fail(`4: ${name}.${o} has not settled`)
      const child = this.#subtree(childSessionId(s, o))
      addAll(kids, child.sums)
      sessions += child.sessions
    }
    const below = difference(sumOfBooks(h.kids), byOutcome(kids))
    if (below) this.#fail(`5: what was settled into ${name} is not what its children spent: ${below}`)
    if (Object.keys(h.lent).length > 0) this.#fail(`6: ${name} has lent to children that have settled`)
    if (h.needs.size + h.wants.size > 0) this.#fail(`6: somebody below ${name} still waits for money`)
    const out = amountOf(kids)
    for (const kind of ['usd', 'tok'] as const) {
      const [has, got] = [h.own[kind] + h.avail[kind] + out[kind], h.share[kind] + h.taken[kind] - h.given[kind]]
      if (has !== got) this.#fail(`6: money of ${name} (${kind}): ${has} owned, available and settled, ${got} received`)
      const spent = amountOf(own)[kind]
      if (spent > h.own[kind]) this.#fail(`6: ${name} has spent ${spent} (${kind}) of ${h.own[kind]}`)
    }
    return { sums: addAll(kids, own), sessions }
  }
}
