/**
 * The keys of the table. All of a run is one partition, `T#<tenant>#RUN#<runId>`, and ids have a fixed shape, so no key is
 * a prefix of another's:
 *
 *     RUN                                              the run's own item
 *     DEF#<hash>#<part>                                the frozen team definition
 *     INPUT#<round>#<inputRef>#<part>                  what a round starts from
 *     ASK#<sessionId>#<n>#<i>                          whether tool call i of answer n may run, and what was decided
 *     SESSION#<sessionId>                              a session's header
 *     TURN#<sessionId>#<n>#0                           request of call n
 *     TURN#<sessionId>#<n>#1                           outcome of call n
 *     TURN#<sessionId>#<n>#2#<i>                       result of tool call i of answer n
 *     TURN#<sessionId>#<n>#3#<driver>#<slot>#<part>    a part of a body that its slot cannot hold
 *     POT#<name>                                       a limit that sessions of the run share
 */
import { createHash } from 'node:crypto'
import { RUN_ID, SCHEDULE_ID, SESSION_ID, TENANT } from '../domain/ids.ts'
import { DUE_SHARDS } from '../domain/limits.ts'
import { hourOf, type UsageDayRef, type UsageItemRef, usageDayOf } from '../domain/report.ts'
import type { RunRef, SessionRef } from '../domain/run.ts'
import type { LimitRef } from '../ports/limit-store.ts'

/** Primary key of an item. */
export interface Key {
  readonly pk: string
  readonly sk: string
}

const DRIVER = /^[0-9A-Za-z_-]{1,32}$/
const INPUT_REF = DRIVER
const HASH = /^[0-9a-f]{64}$/
const SLOT = /^[0-9A-Za-z-]{1,12}$/
const PERIOD = /^\d{4}-\d{2}(-\d{2})?$/
const POT = /^[0-9A-Za-z_.-]{1,64}$/
const DAY = /^\d{4}-\d{2}-\d{2}$/

function check(what: string, value: string, shape: RegExp): string {
  if (typeof value !== 'string' || !shape.test(value))
    throw new RangeError(`${what} ${JSON.stringify(value)} cannot be part of a key: it must match ${shape.source}`)
  return value
}

/** A number of fixed width, so that keys sort as numbers do. */
function fixed(what: string, value: number, width: number): string {
  if (!Number.isSafeInteger(value) || value < 0 || value >= 10 ** width)
    throw new RangeError(
      `${what} ${value} cannot be part of a key: it must be a whole number of at most ${width} digits`,
    )
  return String(value).padStart(width, '0')
}

const tenantPartition = (tenant: string): string => `T#${check('tenant', tenant, TENANT)}`
const session = (ref: { readonly sessionId: string }): string => check('session id', ref.sessionId, SESSION_ID)

/** Partition of a run. @throws RangeError when tenant or run id do not have their shape */
export const runPartition = (ref: RunRef): string =>
  `${tenantPartition(ref.tenant)}#RUN#${check('run id', ref.runId, RUN_ID)}`

export const RUN_SK = 'RUN'
export const SESSION_PREFIX = 'SESSION#'
export const TURN_PREFIX = 'TURN#'
export const runKey = (ref: RunRef): Key => ({ pk: runPartition(ref), sk: RUN_SK })
export const sessionKey = (ref: SessionRef): Key => ({ pk: runPartition(ref), sk: SESSION_PREFIX + session(ref) })
export const definitionKey = (ref: RunRef, hash: string, part: number): Key => ({
  pk: runPartition(ref),
  sk: `DEF#${check('definition hash', hash, HASH)}#${fixed('part', part, 4)}`,
})
export const inputKey = (ref: RunRef, round: number, inputRef: string, part: number): Key => ({
  pk: runPartition(ref),
  sk: `INPUT#${fixed('round', round, 6)}#${check('input ref', inputRef, INPUT_REF)}#${fixed('part', part, 4)}`,
})

export const APPROVAL_PREFIX = 'ASK#'
/** What all questions of a session begin with, or of answer n of it. */
export const approvalsPrefix = (ref: SessionRef, n?: number): string =>
  `${APPROVAL_PREFIX}${session(ref)}#${n === undefined ? '' : `${fixed('call', n, 6)}#`}`
export const approvalKey = (ref: SessionRef, n: number, index: number): Key => ({
  pk: runPartition(ref),
  sk: `${approvalsPrefix(ref, n)}${fixed('tool call', index, 4)}`,
})

const APPROVAL = /^ASK#([0-9a-z]{20})#(\d{6})#(\d{4})$/

export const isApprovalKey = (sk: string): boolean => APPROVAL.test(sk)

/** Takes the sort key of a question apart. @throws Error when it is none */
export function parseApprovalKey(sk: string): { sessionId: string; n: number; index: number } {
  const m = APPROVAL.exec(sk)
  if (!m) throw new Error(`${JSON.stringify(sk)} is no key of an approval`)
  return { sessionId: m[1]!, n: Number(m[2]), index: Number(m[3]) }
}

/** What all slots of a session begin with. */
export const turnsPrefix = (ref: SessionRef): string => `${TURN_PREFIX}${session(ref)}#`
/** Calls of a session have numbers below this. */
export const CALLS_END = 1_000_000
/** What all slots of call n begin with. */
export const turnPrefix = (ref: SessionRef, n: number): string => `${turnsPrefix(ref)}${fixed('call', n, 6)}#`
export const requestKey = (ref: SessionRef, n: number): Key => ({ pk: runPartition(ref), sk: `${turnPrefix(ref, n)}0` })
export const responseKey = (ref: SessionRef, n: number): Key => ({
  pk: runPartition(ref),
  sk: `${turnPrefix(ref, n)}1`,
})
export const toolResultKey = (ref: SessionRef, n: number, index: number): Key => ({
  pk: runPartition(ref),
  sk: `${turnPrefix(ref, n)}2#${fixed('tool call', index, 4)}`,
})

/** Names the slot whose parts they are inside the key of a part: two bodies of one driver must not collide. */
export const PART_SLOT = {
  request: '0',
  response: '1',
  /** the body of a late answer, which replaces an unknown outcome */
  late: '1L',
  toolResult: (index: number): string => `2-${fixed('tool call', index, 4)}`,
} as const

export const partKey = (ref: SessionRef, n: number, driver: string, slot: string, part: number): Key => ({
  pk: runPartition(ref),
  sk: `${turnPrefix(ref, n)}3#${check('driver', driver, DRIVER)}#${check('slot', slot, SLOT)}#${fixed('part', part, 4)}`,
})

/** What a turn's sort key says. */
export type TurnKey =
  | { readonly slot: 'request'; readonly sessionId: string; readonly n: number }
  | { readonly slot: 'response'; readonly sessionId: string; readonly n: number }
  | { readonly slot: 'result'; readonly sessionId: string; readonly n: number; readonly index: number }
  | { readonly slot: 'part'; readonly sessionId: string; readonly n: number }

const TURN = /^TURN#([0-9a-z]{20})#(\d{6})#(?:(0|1)|2#(\d{4})|3#.+)$/

/** Takes a turn's sort key apart. @throws Error when it is none */
export function parseTurnKey(sk: string): TurnKey {
  const m = TURN.exec(sk)
  if (!m) throw new Error(`${JSON.stringify(sk)} is no key of a turn`)
  const place = { sessionId: m[1]!, n: Number(m[2]) }
  if (m[3] !== undefined) return { slot: m[3] === '0' ? 'request' : 'response', ...place }
  return m[4] === undefined ? { slot: 'part', ...place } : { slot: 'result', ...place, index: Number(m[4]) }
}

const PARTITION = /^T#([^#]+)#RUN#([^#]+)$/

/** The run that a partition belongs to. @throws Error when it is no run's */
export function parseRunPartition(pk: string): RunRef {
  const m = PARTITION.exec(pk)
  if (!m || !TENANT.test(m[1]!) || !RUN_ID.test(m[2]!))
    throw new Error(`${JSON.stringify(pk)} is no partition of a run`)
  return { tenant: m[1]!, runId: m[2]! }
}

/** The session of a header's sort key. @throws Error when it is none */
export function parseSessionKey(sk: string): string {
  const id = sk.slice(SESSION_PREFIX.length)
  if (!sk.startsWith(SESSION_PREFIX) || !SESSION_ID.test(id))
    throw new Error(`${JSON.stringify(sk)} is no key of a session`)
  return id
}

/** Shard of a run in the index `due`. */
export const dueShard = (runId: string): number =>
  createHash('sha256').update(runId).digest().readUInt32BE(0) % DUE_SHARDS

/** Index key of a tenant's runs. */
export const runsPartition = (tenant: string): string => tenantPartition(tenant)

// Partitions beside the runs'.
/** Idempotency records of a tenant; the caller's key is hashed, so any text will do. */
export const idempotencyKey = (tenant: string, route: string, key: string): Key => ({
  pk: `${tenantPartition(tenant)}#IDEM`,
  sk: createHash('sha256')
    .update(JSON.stringify([route, key]))
    .digest('hex'),
})
/** A part of an answer that its record cannot hold. */
export const idempotencyPartKey = (tenant: string, route: string, key: string, nonce: string, part: number): Key => {
  const { pk, sk } = idempotencyKey(tenant, route, key)
  return { pk, sk: `${sk}#${check('nonce', nonce, DRIVER)}#${fixed('part', part, 4)}` }
}
/**
 * What a tenant has spent in a day (`2026-01-31`, UTC), `T#<tenant>#USAGE#<day>`. What a report of a folded day needs
 * stands side by side:
 *
 *     DAY                                   fold of the whole day
 *     FOLD                                  how far the day has been folded
 *     LATE#<hour>#<run>#<round>#…           an item that came after the fold of its hour
 *     PART#<item>#<nonce>#<part>            a part of a body that its item cannot hold
 *     ROUND#<hour>#<run>#<round>#0          what a finished round has spent
 *     ROUND#<hour>#<run>#<round>#1#<from>   a correction of it, by the version that it goes on from
 *     SUM#<hour>                            fold of an hour
 *     TAKEN#<hour>#<nonce>                  the items that are in that fold
 */
export const usagePartition = (ref: UsageDayRef): string =>
  `${tenantPartition(ref.tenant)}#USAGE#${check('day', ref.day, DAY)}`

export const usageDayKey = (ref: UsageDayRef): Key => ({ pk: usagePartition(ref), sk: 'DAY' })
export const foldKey = (ref: UsageDayRef): Key => ({ pk: usagePartition(ref), sk: 'FOLD' })
export const LATE_PREFIX = 'LATE#'
/** What all items of an hour begin with. */
export const usageHourPrefix = (hour: number): string => `ROUND#${fixed('hour', hour, 2)}#`
export const usageItemKey = (ref: UsageItemRef): Key => ({
  pk: usagePartition(usageDayOf(ref)),
  sk: usageHourPrefix(hourOf(ref.at)) + usageItemName(ref),
})
export const lateItemKey = (ref: UsageItemRef): Key => ({
  pk: usagePartition(usageDayOf(ref)),
  sk: `${LATE_PREFIX}${fixed('hour', hourOf(ref.at), 2)}#${usageItemName(ref)}`,
})
/** Names an item within its hour. */
export const usageItemName = (ref: UsageItemRef): string =>
  `${check('run id', ref.runId, RUN_ID)}#${fixed('round', ref.round, 6)}#${ref.from === null ? '0' : `1#${fixed('version', ref.from, 9)}`}`

const USAGE_ITEM = /^(ROUND|LATE)#(\d{2})#([^#]{26})#(\d{6})#(?:0|1#(\d{9}))$/

/** Takes the sort key of a usage item apart. @throws Error when it is none */
export function parseUsageItemKey(sk: string): {
  readonly late: boolean
  readonly hour: number
  readonly runId: string
  readonly round: number
  readonly from: number | null
} {
  const m = USAGE_ITEM.exec(sk)
  if (!m || !RUN_ID.test(m[3]!)) throw new Error(`${JSON.stringify(sk)} is no key of a usage item`)
  return {
    late: m[1] === 'LATE',
    hour: Number(m[2]),
    runId: m[3]!,
    round: Number(m[4]),
    from: m[5] === undefined ? null : Number(m[5]),
  }
}

export const usageSumKey = (ref: UsageDayRef, hour: number): Key => ({
  pk: usagePartition(ref),
  sk: `SUM#${fixed('hour', hour, 2)}`,
})
export const usageTakenKey = (ref: UsageDayRef, hour: number, nonce: string): Key => ({
  pk: usagePartition(ref),
  sk: `TAKEN#${fixed('hour', hour, 2)}#${check('nonce', nonce, DRIVER)}`,
})
/** @param item the sort key of the item whose body it is a part of, with `-` for `#` */
export const usagePartKey = (ref: UsageDayRef, item: string, nonce: string, part: number): Key => ({
  pk: usagePartition(ref),
  sk: `PART#${check('item', item, USAGE_PART)}#${check('nonce', nonce, DRIVER)}#${fixed('part', part, 4)}`,
})

const USAGE_PART = /^[0-9A-Za-z_-]{1,80}$/
const USAGE_PARTITION = /^T#([^#]+)#USAGE#([^#]+)$/

/** The day that a partition belongs to. @throws Error when it is none */
export function parseUsagePartition(pk: string): UsageDayRef {
  const m = USAGE_PARTITION.exec(pk)
  if (!m || !TENANT.test(m[1]!) || !DAY.test(m[2]!))
    throw new Error(`${JSON.stringify(pk)} is no partition of a day's usage`)
  return { tenant: m[1]!, day: m[2]! }
}

/** Shard of the index `due` in which days wait for their folds: behind those of the runs. */
export const FOLD_SHARD = DUE_SHARDS

/** Shard of the index `due` in which schedules wait. */
export const SCHEDULE_SHARD = DUE_SHARDS + 1
export const schedulePartition = (tenant: string): string => `${tenantPartition(tenant)}#SCHEDULE`
/** A schedule, and what it has done: `T#<tenant>#SCHEDULE`. */
export const scheduleKey = (tenant: string, id: string): Key => ({
  pk: schedulePartition(tenant),
  sk: check('schedule id', id, SCHEDULE_ID),
})

/** The tenant of a partition of schedules. @throws Error when it is none */
export function parseSchedulePartition(pk: string): string {
  const m = /^T#([^#]+)#SCHEDULE$/.exec(pk)
  if (!m || !TENANT.test(m[1]!)) throw new Error(`${JSON.stringify(pk)} is no partition of schedules`)
  return m[1]!
}

/** What a tenant has going on: the places of its runs. */
export const placesKey = (tenant: string): Key => ({ pk: `${tenantPartition(tenant)}#PLACES`, sk: 'PLACES' })
/** Answers that wait for something to tell a tenant. */
export const pollsKey = (tenant: string): Key => ({ pk: `${tenantPartition(tenant)}#POLLS`, sk: 'POLLS' })
/**
 * A limit that many share: over time `T#<tenant>#LIMIT#<period>`, one item for each tenant, team and tag that has one, by
 * the hash of its name; of one run `POT#<name>`, in the run's partition.
 */
export const limitKey = (ref: LimitRef): Key =>
  'pot' in ref
    ? { pk: runPartition(ref), sk: `POT#${check('pot', ref.pot, POT)}` }
    : {
        pk: `${tenantPartition(ref.tenant)}#LIMIT#${check('period', ref.period, PERIOD)}`,
        sk: createHash('sha256').update(ref.name).digest('hex').slice(0, 32),
      }
/** State of a team: memory, cool-downs, the last ticks of schedules. The team's name is hashed, so any text will do. */
export const stateKey = (tenant: string, team: string, name: string): Key => ({
  pk: `${tenantPartition(tenant)}#STATE#${createHash('sha256').update(team).digest('hex').slice(0, 32)}`,
  sk: createHash('sha256').update(name).digest('hex').slice(0, 32),
})
