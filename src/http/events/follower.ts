import type { Approval } from '../../domain/approval.ts'
import type { Run, RunRef } from '../../domain/run.ts'
import { isTerminal, type SessionHeader } from '../../domain/session.ts'
import type { TeamDefinition } from '../../domain/team.ts'
import type { LogSlots } from '../../domain/turn.ts'
import type { Store } from '../../ports.ts'
import { bytesOf } from '../paging.ts'
import { time } from '../views/figures.ts'
import { type ApprovalEvent, approvalEvents, mayAsk } from './approval-events.ts'
import { type EventView, followedEvents, needsLog, ownEvents, type Place, startOf } from './session-events.ts'
import type { Node, TreePlace } from './tree-place.ts'

/** Calls read at once. */
const CALLS_PER_READ = 40
/** Headers read at once, where the read is consistent. */
const HEADERS_PER_READ = 500
/** Headers of at most 1 KB in a read unit that is eventually consistent; half as many in one that is not. */
const HEADERS_PER_UNIT = 8
const BYTES_PER_UNIT = 4_096
const APPROVALS_PER_READ = 1_000
/** Read units that so many questions take at most, consistently: of some 200 bytes, and a note now and then. */
const unitsOf = (approvals: number): number => 1 + approvals / 20

/** An event that is to be told, and what is known behind it. */
interface News {
  /** null: it is the run's */
  readonly node: Node | null
  readonly event: EventView
  readonly place?: Place
  /** epoch ms, for the order among sessions */
  readonly at: number
}

/** What a look has read. */
interface Seen {
  readonly byParent: ReadonlyMap<string | null, readonly SessionHeader[]>
  /** by session */
  readonly approvals: ReadonlyMap<string, readonly Approval[]>
}

export interface FollowerOptions {
  readonly store: Store
  readonly ref: RunRef
  readonly team: TeamDefinition
  /** where the reader is; moved on with every event that it takes */
  readonly place: TreePlace
  /** the session whose turns are told */
  readonly watched: string | undefined
}

/**
 * Looks at a run again and again, and says what is new to one reader. Nothing is written for it. What is told of a session
 * is told in its order; among sessions events of one look are sorted by time, so far as their clocks agree.
 */
export class Follower {
  readonly #o: FollowerOptions
  #news: News[] = []
  #taken = 0
  /** the run as of the last look; undefined: it is not there, or not seen yet */
  run: Run | undefined
  /** read units that the last look took, at most */
  units = 0

  constructor(options: FollowerOptions) {
    this.#o = options
  }

  /**
   * @param consistent sees everything that has happened by now; twice as dear
   * @returns how many events are new
   */
  async look(consistent = false): Promise<number> {
    const headers = consistent ? await this.#readConsistently() : await this.#read()
    this.units = 1 + headers.length / (consistent ? HEADERS_PER_UNIT / 2 : HEADERS_PER_UNIT)
    this.#news = []
    this.#taken = 0
    this.#tellWarning()
    const byParent = Map.groupBy(headers, (h) => h.parentId)
    const root = byParent.get(null)?.[0]
    const approvals = mayAsk(this.#o.team) ? await this.#approvals(headers, byParent) : new Map()
    if (root) await this.#visit(root, this.#o.place.root, 0, { byParent, approvals })
    this.#news.sort((a, b) => a.at - b.at)
    return this.#news.length
  }

  async #read(): Promise<readonly SessionHeader[]> {
    const { run, headers } = await this.#o.store.getRunWithSessions(this.#o.ref)
    this.run = run
    return headers
  }

  async #readConsistently(): Promise<readonly SessionHeader[]> {
    const { store, ref } = this.#o
    this.run = await store.getRun(ref, { consistent: true })
    const headers: SessionHeader[] = []
    let after: string | undefined
    do {
      const options = { consistent: true, limit: HEADERS_PER_READ, ...(after !== undefined && { after }) }
      const page = await store.listHeaders(ref, options)
      headers.push(...page.items)
      after = page.next
    } while (after !== undefined)
    return headers
  }

  /** A session and all below it. One whose parent was not seen waits for a later look. */
  async #visit(h: SessionHeader, node: Node, notBefore: number, seen: Seen): Promise<void> {
    const { place, watched } = this.#o
    let at = notBefore
    const tell = (event: EventView, behind?: Place) => {
      at = Math.max(at, event.at === null ? 0 : Date.parse(event.at))
      this.#news.push({ node, event, at, ...(behind && { place: behind }) })
      if (event.type === 'session.created') notBefore = at
    }
    if (h.sessionId === watched) node.place ??= startOf(h.round)
    const approvals = approvalEvents(h.sessionId, seen.approvals.get(h.sessionId) ?? [])
    if (node.place) for (const [event, behind] of await this.#followed(h, node.place, approvals)) tell(event, behind)
    else if (h.kind !== 'group') for (const event of ownEvents(h, node.told, approvals, node.asked)) tell(event)
    const children = (seen.byParent.get(h.sessionId) ?? []).toSorted((a, b) => a.ordinal - b.ordinal)
    for (const child of children) await this.#visit(child, place.child(node, child.ordinal), notBefore, seen)
  }

  async #followed(
    h: SessionHeader,
    place: Place,
    seen: readonly ApprovalEvent[],
  ): Promise<(readonly [EventView, Place])[]> {
    const { team, watched, store } = this.#o
    const turns = h.sessionId === watched
    const slots = needsLog(h, place, turns) ? await this.#readLog(h, Math.max(0, place.n - 1)) : undefined
    let approvals = seen
    if (slots && mayAsk(team)) {
      // behind the log: what it says has come to an end is final
      const all = await store.listApprovals(h)
      this.units += unitsOf(all.length)
      approvals = approvalEvents(h.sessionId, all)
    }
    return [...followedEvents(h, slots, place, { team, turns, approvals })]
  }

  /** Once for each limit; one that was replaced before anybody looked is not told. */
  #tellWarning(): void {
    const warned = this.run?.budgetWarned
    if (!warned || warned.budgetSeq < this.#o.place.warned) return
    const { at, budgetSeq } = warned
    this.#news.push({
      node: null,
      event: { type: 'budget.warning', sessionId: null, at: time(at), budgetSeq },
      at,
    })
  }

  /** All questions of sessions, read behind the headers and consistently: of one that has ended none is missing. */
  async #approvals(headers: readonly SessionHeader[], byParent: Seen['byParent']): Promise<Seen['approvals']> {
    const { store, ref, place } = this.#o
    const meet = (h: SessionHeader, node: Node) => {
      for (const child of byParent.get(h.sessionId) ?? []) meet(child, place.child(node, child.ordinal))
    }
    for (const root of byParent.get(null) ?? []) meet(root, place.root)
    const found: (Approval & { sessionId: string })[] = []
    const told = (h: SessionHeader) => {
      const node = place.find(h.sessionId)
      if (!node) return false
      return node.place ? node.place.closed === 1 && node.place.round === h.round : node.told > 2
    }
    if (headers.some((h) => h.startedAt !== null && h.agent !== null && !told(h))) {
      for (let after: string | undefined, more = true; more; more = after !== undefined) {
        const options = { limit: APPROVALS_PER_READ, consistent: true, ...(after !== undefined && { after }) }
        const page = await store.listRunApprovals(ref, options)
        found.push(...page.items)
        this.units += unitsOf(page.items.length)
        after = page.next
      }
    }
    return Map.groupBy(found, (a) => a.sessionId)
  }

  /** After the header, and consistently: what the header says has happened is in it. */
  async #readLog(h: SessionHeader, first: number): Promise<LogSlots> {
    const requests = new Map<number, NonNullable<ReturnType<LogSlots['requests']['get']>>>()
    const responses = new Map<number, NonNullable<ReturnType<LogSlots['responses']['get']>>>()
    for (let from: number | undefined = first; from !== undefined; ) {
      const page: { slots: LogSlots; nextTurn?: number } = await this.#o.store.listSlots(h, {
        from,
        limit: CALLS_PER_READ,
        consistent: true,
      })
      for (const [n, slot] of page.slots.requests) requests.set(n, slot)
      for (const [n, slot] of page.slots.responses) responses.set(n, slot)
      this.units += 2 + bytesOf([...page.slots.requests.values(), ...page.slots.responses.values()]) / BYTES_PER_UNIT
      from = page.nextTurn
    }
    return { requests, responses, results: new Map() }
  }

  /** Takes the next event that is new, with the cursor behind it. */
  next(): { event: EventView; cursor: string } | undefined {
    const news = this.#news[this.#taken]
    if (!news) return undefined
    this.#taken++
    const { place } = this.#o
    const { event } = news
    if (event.type === 'budget.warning') place.tellWarning(event.budgetSeq)
    else if (news.node) place.tell(news.node, news.place, event.type.startsWith('approval.'))
    return { event, cursor: this.cursor() }
  }

  /** @throws Error when more than some fifteen thousand sessions are under way at once */
  cursor(): string {
    const cursor = this.#o.place.cursor()
    if (cursor === undefined) throw new Error('more sessions are under way at once than a cursor can say')
    return cursor
  }

  /** The run has been deleted. A look that does not see it may only be too early. */
  async isGone(): Promise<boolean> {
    return !this.run && !(await this.#o.store.getRun(this.#o.ref, { consistent: true }))
  }

  /** Nothing goes on in the run: its round has ended, or it waits for its budget. As of the last look. */
  get rests(): boolean {
    return this.run !== undefined && (isTerminal(this.run) || this.run.status === 'waiting')
  }

  /** The end of the run's round was told: nothing can come any more but a new round. */
  get toldAll(): boolean {
    const { place } = this.#o.place.root
    return this.rests && this.#taken === this.#news.length && place?.closed === 1 && place.round === this.run!.round
  }
}
