import type { Grant, Shortage } from '../domain/outer-limit.ts'
import type { Run, RunStatus } from '../domain/run.ts'
import { BadItemError, ItemReader, present } from './item-reader.ts'
import { dueShard, parseRunPartition, RUN_SK, runKey, runsPartition } from './keys.ts'
import { A, ERROR, GRANT, ITEM_VERSION, OUTCOME, SHORTAGE } from './table.ts'
import type { Attribute, Item } from './table-client.ts'
import {
  decodeBooks,
  decodeError,
  decodeTags,
  encodeBooks,
  encodeError,
  encodeTags,
  mapReader,
  STOP_REASONS,
} from './value-codecs.ts'

/** How long the table keeps the item of a run that is gone, so that the sweep can remove the rest before: a week. */
const TTL_GRACE_SECONDS = 7 * 86_400

/** When the table itself may remove the item, epoch seconds. */
export const ttlOf = (expiresAt: number): number => expiresAt + TTL_GRACE_SECONDS

const STATUSES: readonly RunStatus[] = ['running', 'waiting', 'completed', 'failed', 'cancelled']

export const encodeGrants = (grants: readonly Grant[]): Attribute =>
  grants.map((g) => ({
    [GRANT.period]: g.period,
    [GRANT.name]: g.name,
    [GRANT.fromUsd]: g.from.usd,
    [GRANT.fromTok]: g.from.tok,
    [GRANT.holdUsd]: g.hold.usd,
    [GRANT.holdTok]: g.hold.tok,
  }))

const decodeGrants = (list: readonly Attribute[], where: string): Grant[] =>
  list.map((value, i) => {
    const r = mapReader(value, GRANT, `${where}[${i}]`)
    return {
      period: r.text('period'),
      name: r.text('name'),
      from: { usd: r.big('fromUsd'), tok: r.big('fromTok') },
      hold: { usd: r.big('holdUsd'), tok: r.big('holdTok') },
    }
  })

export const encodeShortage = ({ need, resumeAt }: Shortage): Item => ({
  [SHORTAGE.needUsd]: need.usd,
  [SHORTAGE.needTok]: need.tok,
  [SHORTAGE.resumeAt]: resumeAt,
})

const decodeShortage = (r: ItemReader<typeof SHORTAGE>): Shortage => ({
  need: { usd: r.big('needUsd'), tok: r.big('needTok') },
  resumeAt: r.whole('resumeAt'),
})

/** The item of a run, with the keys of both indexes. */
export const encodeRun = (run: Run): Item => ({
  ...runKey(run),
  ...present({
    [A.version]: ITEM_VERSION,
    [A.runsTenant]: runsPartition(run.tenant),
    [A.runsId]: run.runId,
    [A.dueShard]: run.dueAt === null ? null : dueShard(run.runId),
    [A.dueAt]: run.dueAt,
    [A.team]: run.team,
    [A.agent]: run.agent,
    [A.definition]: run.definition,
    [A.status]: run.status,
    [A.stop]: run.stop,
    [A.stopReason]: run.stopReason,
    [A.error]: run.error && encodeError(run.error),
    [A.round]: run.round,
    [A.inputRef]: run.inputRef,
    [A.inputRound]: run.inputRound === run.round ? null : run.inputRound,
    [A.retryRound]: run.retry?.round ?? null,
    [A.retryRef]: run.retry?.ref ?? null,
    [A.tasks]: run.tasks,
    [A.maxConcurrency]: run.maxConcurrency,
    [A.limitUsd]: run.limit.usd,
    [A.limitTok]: run.limit.tok,
    [A.limitSeq]: run.limitSeq,
    [A.raisedRound]: run.raisedRound ?? undefined,
    [A.budgetWarnedAt]: run.budgetWarned?.at ?? null,
    [A.budgetWarnedSeq]: run.budgetWarned?.budgetSeq ?? null,
    [A.budgetSeq]: run.budgetSeq === 0 ? null : run.budgetSeq,
    [A.grantedUsd]: run.granted?.usd,
    [A.grantedTok]: run.granted?.tok,
    [A.grants]: run.grants.length > 0 ? encodeGrants(run.grants) : undefined,
    [A.short]: run.short && encodeShortage(run.short),
    [A.books]: encodeBooks(run.books),
    [A.sessions]: run.sessions,
    [A.v]: run.v,
    [A.reportedAt]: run.reportedAt,
    [A.tags]: encodeTags(run.tags),
    [A.createdAt]: run.createdAt,
    [A.updatedAt]: run.updatedAt,
    [A.cancelRequestedAt]: run.cancelRequestedAt,
    [A.finishedAt]: run.finishedAt,
    [A.expiresAt]: run.expiresAt === null ? null : ttlOf(run.expiresAt),
  }),
})

/** @throws BadItemError naming what is missing or of the wrong type */
export function decodeRun(item: Item): Run {
  const [pk, sk] = [item[A.pk], item[A.sk]]
  const where = `${pk} ${sk}`
  if (typeof pk !== 'string' || sk !== RUN_SK) throw new BadItemError(`${where} is no item of a run`)
  const r = new ItemReader(item, A, where)
  return {
    ...parseRunPartition(pk),
    team: r.text('team'),
    agent: r.textOrNull('agent'),
    definition: r.text('definition'),
    status: r.word('status', STATUSES),
    stop: r.optional('stop', (n) => r.word(n, STOP_REASONS)),
    stopReason: r.optional('stopReason', (n) => r.word(n, STOP_REASONS)),
    error: r.optional('error', (n) => decodeError(r.fields(n, ERROR))),
    round: r.whole('round'),
    inputRef: r.text('inputRef'),
    inputRound: r.has('inputRound') ? r.whole('inputRound') : r.whole('round'),
    retry: r.optional('retryRound', (n) => ({ round: r.whole(n), ref: r.text('retryRef') })),
    tasks: r.wholeOrNull('tasks'),
    maxConcurrency: r.whole('maxConcurrency'),
    limit: { usd: r.big('limitUsd'), tok: r.big('limitTok') },
    limitSeq: r.whole('limitSeq'),
    budgetSeq: r.has('budgetSeq') ? r.whole('budgetSeq') : 0,
    raisedRound: r.has('raisedRound') ? r.whole('raisedRound') : null,
    budgetWarned: r.has('budgetWarnedAt')
      ? { at: r.whole('budgetWarnedAt'), budgetSeq: r.whole('budgetWarnedSeq') }
      : null,
    granted: r.has('grantedUsd') ? { usd: r.big('grantedUsd'), tok: r.big('grantedTok') } : null,
    grants: r.has('grants') ? decodeGrants(r.list('grants'), where) : [],
    short: r.optional('short', (n) => decodeShortage(r.fields(n, SHORTAGE))),
    books: decodeBooks(r.fields('books', OUTCOME)),
    sessions: r.whole('sessions'),
    v: r.whole('v'),
    reportedAt: r.wholeOrNull('reportedAt'),
    tags: decodeTags(r.required('tags'), where),
    dueAt: r.wholeOrNull('dueAt'),
    createdAt: r.whole('createdAt'),
    updatedAt: r.whole('updatedAt'),
    cancelRequestedAt: r.wholeOrNull('cancelRequestedAt'),
    finishedAt: r.wholeOrNull('finishedAt'),
    expiresAt: r.optional('expiresAt', (n) => r.whole(n) - TTL_GRACE_SECONDS),
  }
}
