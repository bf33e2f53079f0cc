/** What the parts of a run's books must say of each other, level by level: each number is held against those below it. */
import { childSessionId } from '../domain/ids.ts'
import { chargeOf, totalsOf } from '../domain/log.ts'
import { type Amount, add, formatUsd, sub, ZERO } from '../domain/money.ts'
import { costOf } from '../domain/pricing.ts'
import type { Run } from '../domain/run.ts'
import { isTerminal, type SessionHeader, subtreeBooks, subtreeSessions } from '../domain/session.ts'
import type { ResponseSlot } from '../domain/turn.ts'
import {
  addBooks,
  amountOf,
  type BookRow,
  type Books,
  booksOf,
  CALL_OUTCOMES,
  COUNTS,
  NO_TOTALS,
  type Totals,
} from '../domain/usage.ts'

/** One number that is not what others say it should be. */
export interface AuditDifference {
  /** null: the run as a whole */
  readonly sessionId: string | null
  /** the number of the call, where it is about one */
  readonly turn: number | null
  /** what is compared: `rows[worker, mini].accepted.cost`, `kids.failed.calls`, `own + available + settled` */
  readonly field: string
  /** as it stands in the table; money in USD */
  readonly found: string
  /** as the others come to */
  readonly expected: string
  /** both in a sentence that names them */
  readonly message: string
}

/** Everything of a session that is looked at. */
export interface AuditedSession {
  readonly header: SessionHeader
  readonly responses: ReadonlyMap<number, ResponseSlot>
  /** numbers of the calls that have an intent */
  readonly intents: ReadonlySet<number>
}

type Of = Pick<AuditDifference, 'sessionId'> & { readonly turn?: number; readonly name: string }
type Value = number | bigint | string | null

/** Collects what differs. */
export class Findings {
  readonly differences: AuditDifference[] = []

  /** @param why what `expected` comes from: `its calls` */
  equal(of: Of, field: string, found: Value, expected: Value, why: string, show: (v: Value) => string = String): void {
    if (found === expected) return
    const [has, should] = [show(found), show(expected)]
    this.add(of, field, has, should, `${of.name}: ${field} is ${has}, but by ${why} it is ${should}`)
  }

  add(of: Of, field: string, found: string, expected: string, message: string): void {
    this.differences.push({ sessionId: of.sessionId, turn: of.turn ?? null, field, found, expected, message })
  }

  totals(of: Of, field: string, found: Totals, expected: Totals, why: string): void {
    for (const count of COUNTS) this.equal(of, `${field}.${count}`, found[count], expected[count], why)
    this.equal(of, `${field}.cost`, found.cost, expected.cost, why, usd)
  }

  books(of: Of, field: string, found: Books, expected: Books, why: string): void {
    for (const o of CALL_OUTCOMES)
      this.totals(of, `${field}.${o}`, found[o] ?? NO_TOTALS, expected[o] ?? NO_TOTALS, why)
  }

  rows(of: Of, field: string, found: readonly BookRow[], expected: readonly BookRow[], why: string): void {
    const key = (row: BookRow) => `${field}[${row.agent}, ${row.model}].${row.outcome}`
    const all = new Map([...expected, ...found].map((row) => [key(row), row]))
    const sum = (rows: readonly BookRow[], name: string): Totals =>
      booksOf(rows.filter((row) => key(row) === name))[all.get(name)!.outcome] ?? NO_TOTALS
    for (const name of all.keys()) this.totals(of, name, sum(found, name), sum(expected, name), why)
  }

  amount(of: Of, field: string, found: Amount, expected: Amount, why: string): void {
    this.equal(of, `${field}, USD`, found.usd, expected.usd, why, usd)
    this.equal(of, `${field}, tokens`, found.tok, expected.tok, why)
  }
}

const usd = (v: Value): string => (typeof v === 'bigint' ? `$${formatUsd(v)}` : String(v))

export const nameOf = (h: SessionHeader): string =>
  `session ${h.sessionId} (${h.agent ?? (h.kind === 'group' ? 'group' : 'list of tasks')})`

/** A call's cost is its usage at its price; one that is unknown stands at its bound. */
export function checkCalls(f: Findings, { header, responses }: AuditedSession): void {
  for (const r of responses.values()) {
    const of = { sessionId: header.sessionId, turn: r.n, name: `call ${r.n} of ${nameOf(header)}` }
    if (r.outcome === 'unknown' && r.bound) {
      f.equal(of, 'inputTokens', r.usage.inputTokens, r.bound.estimate, 'its bound')
      f.equal(of, 'outputTokens', r.usage.outputTokens, r.bound.cap, 'its bound')
      if (r.cost !== null) f.equal(of, 'cost', r.cost, r.bound.hold.usd, 'its hold', usd)
    } else if (r.price) f.equal(of, 'cost', r.cost, costOf(r.usage, r.price), 'its tokens at its price', usd)
    else if (r.cost !== null && r.cost !== 0n)
      f.add(of, 'cost', usd(r.cost), 'null', `${of.name}: cost is ${usd(r.cost)}, but it has no price`)
  }
}

/** Calls → own rows. No call is without an outcome when its session has ended. */
export function checkOwn(f: Findings, s: AuditedSession): void {
  const { header } = s
  const of = { sessionId: header.sessionId, name: nameOf(header) }
  f.rows(of, 'rows', header.rows, rowsOfCalls(s), 'its calls')
  for (const n of s.intents) {
    if (s.responses.has(n)) continue
    const message = `call ${n} of ${of.name}: it has an intent and no outcome, but the session is ${header.status}`
    f.add({ ...of, turn: n }, 'outcome', 'missing', 'an outcome', message)
  }
  const unknown = [...s.responses.values()].filter((r) => r.outcome === 'unknown')
  for (const n of new Set([...Object.keys(header.unknowns), ...unknown.map((r) => String(r.n))])) {
    const call = unknown.find((r) => String(r.n) === n)
    const charge = call ? chargeOf(call) : ZERO
    f.amount(of, `unknowns[${n}]`, header.unknowns[n] ?? ZERO, charge, `the bound of call ${n}`)
  }
}

export const rowsOfCalls = ({ responses }: AuditedSession): BookRow[] =>
  [...responses.values()].flatMap((r) =>
    r.outcome === 'none' ? [] : [{ agent: r.agent, model: r.model, outcome: r.outcome, totals: totalsOf(r) }],
  )

/** Children's subtrees → what has settled into their parent; and none of them is missing. */
export function checkChildren(f: Findings, h: SessionHeader, all: ReadonlyMap<string, AuditedSession>): void {
  const of = { sessionId: h.sessionId, name: nameOf(h) }
  let [kids, sessions]: [Books, number] = [{}, 0]
  for (let ordinal = 0; ordinal < h.next; ordinal++) {
    const id = childSessionId(h.sessionId, ordinal)
    const child = all.get(id)?.header
    if (!child) {
      const message = `${of.name}: its child ${ordinal}, session ${id}, is missing`
      f.add(of, `children[${ordinal}]`, 'missing', id, message)
      continue
    }
    if (h.pending.has(ordinal)) {
      const message = `${of.name}: it is ${h.status}, and its child ${ordinal}, session ${id}, has not settled`
      f.add(of, `children[${ordinal}]`, 'pending', 'settled', message)
      continue
    }
    kids = addBooks(kids, subtreeBooks(child))
    sessions += subtreeSessions(child)
    const seen = h.seen[ordinal]
    if (!seen) continue
    f.equal(of, `seen[${ordinal}].v`, seen.v, child.v, `the totals of child ${ordinal}`)
    f.books(of, `seen[${ordinal}]`, seen.books, subtreeBooks(child), `the totals of child ${ordinal}`)
  }
  f.books(of, 'kids', h.kids, kids, 'its children')
  f.equal(of, 'kidsSessions', h.kidsSessions, sessions, 'its children')
  f.equal(of, 'settled', h.settled, h.next - h.pending.size, 'the ordinals that it has given away')
  for (const [ordinal, lent] of Object.entries(h.lent)) f.amount(of, `lent[${ordinal}]`, lent, ZERO, 'ended children')
}

/**
 * Money is neither made nor lost: what an ended session owns, may give and has passed on is what it was given. A root under
 * limits from outside has what it was granted and has not given up.
 */
export function checkMoney(f: Findings, s: AuditedSession, limit: Amount, granted: boolean): void {
  const h = s.header
  const of = { sessionId: h.sessionId, name: nameOf(h) }
  const given = h.parentId === null && !granted ? limit : sub(add(h.share, h.taken), h.given)
  f.amount(of, 'own + available + settled', add(add(h.own, h.avail), amountOf(h.kids)), given, 'what it was given')
}

/** Somebody's child, each of them, and the root's tree is all there is. */
export function checkPlaces(f: Findings, rootId: string, all: ReadonlyMap<string, AuditedSession>): void {
  for (const { header: h } of all.values()) {
    if (h.sessionId === rootId) continue
    const parent = h.parentId === null ? undefined : all.get(h.parentId)?.header
    const isChild = parent && h.ordinal < parent.next && h.sessionId === childSessionId(parent.sessionId, h.ordinal)
    if (isChild) continue
    const message = `${nameOf(h)}: no session has given away its place (parent ${h.parentId}, ordinal ${h.ordinal})`
    f.add({ sessionId: h.sessionId, name: nameOf(h) }, 'parent', String(h.parentId), 'a parent', message)
  }
}

/** Root → run; and the run against the calls themselves, over all levels at once. */
export function checkRun(f: Findings, run: Run, root: SessionHeader, all: readonly AuditedSession[]): void {
  const of = { sessionId: null, name: 'the run' }
  // a run whose root ran out of budget waits for more, and may be cancelled then
  const outOfBudget = root.status === 'failed' && root.stopReason === 'budget'
  const others = outOfBudget && (run.status === 'waiting' || run.status === 'cancelled')
  if (!others) f.equal(of, 'status', run.status, root.status, 'its root')
  f.equal(of, 'v', run.v, root.v, 'its root')
  f.equal(of, 'sessions', run.sessions, all.filter((s) => s.header.kind !== 'group').length, 'the headers')
  f.books(of, 'totals', run.books, subtreeBooks(root), 'its root')
  f.books(of, 'totals', run.books, booksOf(all.flatMap(rowsOfCalls)), 'all calls')
}

export const hasEnded = (s: AuditedSession): boolean => isTerminal(s.header)
