import { type Amount, isZero, ZERO } from '../domain/money.ts'
import type { Delegation, Seen, SessionHeader, SessionKind, SessionStatus } from '../domain/session.ts'
import { type Books, CALL_OUTCOMES, type CallOutcome, COUNTS, NO_TOTALS, type Totals } from '../domain/usage.ts'
import { BadItemError, ItemReader, present } from './item-reader.ts'
import { parseRunPartition, parseSessionKey, sessionKey } from './keys.ts'
import { A, DELEG, ERROR, INTENT, ITEM_VERSION, kidsAttribute, OUTCOME, SEEN } from './table.ts'
import type { Attribute, Item } from './table-client.ts'
import {
  decodeAmounts,
  decodeBooks,
  decodeError,
  decodeIntent,
  decodeRows,
  encodeAmounts,
  encodeBooks,
  encodeError,
  encodeIntent,
  encodeRows,
  isNothing,
  mapReader,
  STOP_REASONS,
  whole,
} from './value-codecs.ts'

const STATUSES: readonly SessionStatus[] = ['queued', 'running', 'waiting', 'completed', 'failed', 'cancelled']
const KINDS: readonly SessionKind[] = ['root', 'transfer', 'background', 'task', 'group']

/** An empty set is no attribute. */
const set = <T extends string | number>(elements: ReadonlySet<T>): Attribute | null =>
  elements.size === 0 ? null : (new Set(elements) as Attribute)

/** The item of a session's header. */
export const encodeHeader = (h: SessionHeader): Item => ({
  ...sessionKey(h),
  ...present({
    [A.version]: ITEM_VERSION,
    [A.parentId]: h.parentId,
    [A.ordinal]: h.ordinal,
    [A.agent]: h.agent,
    [A.kind]: h.kind,
    [A.depth]: h.depth,
    [A.round]: h.round,
    [A.limitSeq]: h.limitSeq,
    [A.viaTurn]: h.via.turn,
    [A.viaIndex]: h.via.index,
    [A.status]: h.status,
    [A.stop]: h.stop,
    [A.stopReason]: h.stopReason,
    [A.error]: h.error && encodeError(h.error),
    [A.attempt]: h.attempt,
    [A.driver]: h.driver,
    [A.lease]: h.lease,
    [A.continuations]: h.continuations,
    [A.continuationsBefore]: h.continuationsBefore,
    [A.waits]: h.waits,
    [A.asks]: set(h.asks),
    [A.wakeAt]: h.wakeAt,
    [A.width]: h.width,
    [A.shareUsd]: h.share.usd,
    [A.shareTok]: h.share.tok,
    [A.ownUsd]: h.own.usd,
    [A.ownTok]: h.own.tok,
    [A.availUsd]: h.avail.usd,
    [A.availTok]: h.avail.tok,
    [A.takenUsd]: h.taken.usd,
    [A.takenTok]: h.taken.tok,
    [A.lent]: encodeAmounts(h.lent),
    // most sessions never give anything back
    ...(isZero(h.given) ? {} : { [A.givenUsd]: h.given.usd, [A.givenTok]: h.given.tok }),
    [A.returned]: encodeAmounts(h.returned),
    [A.next]: h.next,
    [A.deleg]: encodeDelegation(h.deleg),
    [A.pending]: set(h.pending),
    [A.waitingOn]: set(h.waitingOn),
    [A.waitAll]: h.waitAll ? 1 : null,
    [A.settled]: h.settled,
    [A.needs]: set(h.needs),
    [A.wants]: set(h.wants),
    [A.rows]: encodeRows(h.rows),
    [A.unknowns]: encodeAmounts(h.unknowns),
    ...kidsAttributes(h.kids),
    [A.kidsSessions]: h.kidsSessions,
    [A.seen]: Object.fromEntries(Object.entries(h.seen).map(([ordinal, seen]) => [ordinal, encodeSeen(seen)])),
    [A.v]: h.v,
    [A.first]: h.first && encodeIntent(h.first),
    [A.createdAt]: h.createdAt,
    [A.startedAt]: h.startedAt,
    [A.updatedAt]: h.updatedAt,
    [A.finishedAt]: h.finishedAt,
    [A.taskPreview]: h.taskPreview,
    [A.outputPreview]: h.outputPreview,
    [A.finalTurn]: h.finalTurn,
  }),
})

/** @throws BadItemError naming what is missing or of the wrong type */
export function decodeHeader(item: Item): SessionHeader {
  const [pk, sk] = [item[A.pk], item[A.sk]]
  const where = `${pk} ${sk}`
  if (typeof pk !== 'string' || typeof sk !== 'string') throw new BadItemError(`${where} is no header of a session`)
  const r = new ItemReader(item, A, where)
  const amount = (usd: keyof typeof A, tok: keyof typeof A): Amount => ({ usd: r.big(usd), tok: r.big(tok) })
  return {
    ...parseRunPartition(pk),
    sessionId: parseSessionKey(sk),
    parentId: r.textOrNull('parentId'),
    ordinal: r.whole('ordinal'),
    agent: r.textOrNull('agent'),
    kind: r.word('kind', KINDS),
    depth: r.whole('depth'),
    round: r.whole('round'),
    limitSeq: r.whole('limitSeq'),
    via: { turn: r.wholeOrNull('viaTurn'), index: r.whole('viaIndex') },
    status: r.word('status', STATUSES),
    stop: r.optional('stop', (n) => r.word(n, STOP_REASONS)),
    stopReason: r.optional('stopReason', (n) => r.word(n, STOP_REASONS)),
    error: r.optional('error', (n) => decodeError(r.fields(n, ERROR))),
    attempt: r.whole('attempt'),
    driver: r.textOrNull('driver'),
    lease: r.wholeOrNull('lease'),
    continuations: r.whole('continuations'),
    continuationsBefore: r.whole('continuationsBefore'),
    waits: r.whole('waits'),
    asks: r.texts('asks'),
    wakeAt: r.wholeOrNull('wakeAt'),
    width: r.whole('width'),
    share: amount('shareUsd', 'shareTok'),
    own: amount('ownUsd', 'ownTok'),
    avail: amount('availUsd', 'availTok'),
    taken: amount('takenUsd', 'takenTok'),
    lent: decodeAmounts(r.map('lent'), `${where}, lent`),
    given: r.has('givenUsd') ? amount('givenUsd', 'givenTok') : ZERO,
    returned: decodeAmounts(r.map('returned'), `${where}, returned`),
    next: r.whole('next'),
    deleg: decodeDelegation(r.fields('deleg', DELEG)),
    pending: r.numbers('pending'),
    waitingOn: r.numbers('waitingOn'),
    waitAll: r.flag('waitAll'),
    settled: r.whole('settled'),
    needs: r.numbers('needs'),
    wants: r.numbers('wants'),
    rows: decodeRows(r.list('rows'), `${where}, rows`),
    unknowns: decodeAmounts(r.map('unknowns'), `${where}, unknowns`),
    kids: decodeKids(item, where),
    kidsSessions: r.whole('kidsSessions'),
    seen: decodeSeen(r.map('seen'), `${where}, seen`),
    v: r.whole('v'),
    first: r.optional('first', (n) => decodeIntent(r.fields(n, INTENT))),
    createdAt: r.whole('createdAt'),
    startedAt: r.wholeOrNull('startedAt'),
    updatedAt: r.whole('updatedAt'),
    finishedAt: r.wholeOrNull('finishedAt'),
    taskPreview: r.textOrNull('taskPreview'),
    outputPreview: r.textOrNull('outputPreview'),
    finalTurn: r.wholeOrNull('finalTurn'),
  }
}

export const encodeDelegation = (d: Delegation): Item => ({
  [DELEG.turn]: d.turn,
  [DELEG.from]: d.from,
  [DELEG.count]: d.count,
  [DELEG.shareUsd]: d.share.usd,
  [DELEG.shareTok]: d.share.tok,
  [DELEG.funded]: d.funded,
})

const decodeDelegation = (r: ItemReader<typeof DELEG>): Delegation => ({
  turn: r.whole('turn'),
  from: r.whole('from'),
  count: r.whole('count'),
  share: { usd: r.big('shareUsd'), tok: r.big('shareTok') },
  funded: r.whole('funded'),
})

export const encodeSeen = (seen: Seen): Item => ({ [SEEN.v]: seen.v, [SEEN.books]: encodeBooks(seen.books) })

function decodeSeen(map: Item, where: string): { [ordinal: string]: Seen } {
  return Object.fromEntries(
    Object.entries(map).map(([ordinal, value]) => {
      const r = mapReader(value, SEEN, `${where}.${ordinal}`)
      return [ordinal, { v: r.whole('v'), books: decodeBooks(r.fields('books', OUTCOME)) }]
    }),
  )
}

/** Totals of settled children: one number for each outcome and field that is not zero. */
export function kidsAttributes(books: Books): { [name: string]: number | bigint } {
  const attributes: { [name: string]: number | bigint } = {}
  for (const outcome of CALL_OUTCOMES)
    for (const field of FIELDS) {
      const value = books[outcome]?.[field]
      if (typeof value === 'number') whole(field, value)
      if (value) attributes[kidsAttribute(outcome, field)] = value
    }
  return attributes
}

const FIELDS = [...COUNTS, 'cost'] as const
const kidsName = (outcome: CallOutcome, field: (typeof FIELDS)[number]) => `kids.${outcome}.${field}`
const KIDS = Object.fromEntries(
  CALL_OUTCOMES.flatMap((outcome) => FIELDS.map((field) => [kidsName(outcome, field), kidsAttribute(outcome, field)])),
)

function decodeKids(item: Item, where: string): Books {
  const r = new ItemReader(item, KIDS, where)
  const books: { [O in CallOutcome]?: Totals } = {}
  for (const outcome of CALL_OUTCOMES) {
    const cost = kidsName(outcome, 'cost')
    const totals = { ...NO_TOTALS, cost: r.has(cost) ? r.big(cost) : 0n }
    for (const field of COUNTS) {
      const name = kidsName(outcome, field)
      if (r.has(name)) totals[field] = r.count(name)
    }
    if (!isNothing(totals)) books[outcome] = totals
  }
  return books
}
