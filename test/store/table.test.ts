import { describe, expect, test } from 'vitest'
import { DUE_SHARDS } from '../../src/domain/limits.ts'
import { CALL_OUTCOMES, COUNTS } from '../../src/domain/usage.ts'
import * as keys from '../../src/store/keys.ts'
import {
  A,
  AMOUNT,
  BOUND,
  DELEG,
  END,
  ERROR,
  GRANT,
  HOLD,
  INTENT,
  kidsAttribute,
  OUTCOME,
  PARTS,
  PRICE,
  ROW,
  SEEN,
  SHORTAGE,
  TABLE_DEFINITION,
  TOTALS,
} from '../../src/store/table.ts'
import { childRef, DRIVER, rootRef, runRef } from '../support/builders.ts'

const HASH = 'ab'.repeat(32)
const run = runRef()
const session = rootRef(run)

describe('names of attributes', () => {
  test('each means one thing: no two long names share a short one', () => {
    const kids = CALL_OUTCOMES.flatMap((outcome) => [...COUNTS, 'cost' as const].map((f) => kidsAttribute(outcome, f)))
    const all = [...Object.values(A), ...kids]
    expect(new Set(all).size).toBe(all.length)
    for (const names of [
      AMOUNT,
      BOUND,
      DELEG,
      END,
      ERROR,
      GRANT,
      HOLD,
      INTENT,
      OUTCOME,
      PARTS,
      PRICE,
      ROW,
      SEEN,
      SHORTAGE,
      TOTALS,
    ])
      expect(new Set(Object.values(names)).size).toBe(Object.values(names).length)
  })

  test('every attribute that the protocol names has its place, also those that later work fills', () => {
    const named = [
      ...[
        'status',
        'stop',
        'stopReason',
        'limitUsd',
        'limitTok',
        'books',
        'v',
        'dueAt',
        'dueShard',
        'round',
        'limitSeq',
      ],
      ...['parentId', 'ordinal', 'agent', 'kind', 'depth', 'viaTurn', 'viaIndex', 'attempt', 'driver', 'lease'],
      ...['continuations', 'asks', 'wakeAt', 'width', 'started', 'shareUsd', 'ownUsd', 'availUsd', 'takenUsd', 'lent'],
      ...['next', 'deleg', 'pending', 'waitingOn', 'waitAll', 'settled', 'needs', 'rows', 'unknowns', 'seen', 'first'],
      ...[
        'intent',
        'end',
        'outcome',
        'of',
        'cost',
        'usage',
        'nextIntent',
        'expiresAt',
        'held',
        'holds',
        'spentUsd',
        'bodyHash',
      ],
    ]
    expect(named.filter((name) => !(name in A))).toEqual([])
  })

  test('every key of table and indexes has its type, and no type is without a key', () => {
    const used = [TABLE_DEFINITION, ...TABLE_DEFINITION.GlobalSecondaryIndexes].flatMap((t) =>
      t.KeySchema.map((k) => k.AttributeName),
    )
    expect(TABLE_DEFINITION.AttributeDefinitions.map((d) => d.AttributeName).sort()).toEqual([...used].sort())
  })
})

describe('keys', () => {
  const all = [
    keys.runKey(run),
    keys.definitionKey(run, HASH, 0),
    keys.definitionKey(run, HASH, 10),
    keys.inputKey(run, 1, DRIVER, 0),
    keys.inputKey(run, 10, DRIVER, 0),
    ...[0, 1, 10].flatMap((n) => [0, 1, 10].map((i) => keys.approvalKey(session, n, i))),
    ...[session, childRef(session, 1), childRef(session, 11)].flatMap((ref) => [
      keys.sessionKey(ref),
      ...[0, 1, 10].flatMap((n) => [
        keys.requestKey(ref, n),
        keys.responseKey(ref, n),
        ...[0, 1, 10].map((i) => keys.toolResultKey(ref, n, i)),
        ...[keys.PART_SLOT.request, keys.PART_SLOT.response, keys.PART_SLOT.late, keys.PART_SLOT.toolResult(1)].flatMap(
          (slot) => [0, 1, 10].map((part) => keys.partKey(ref, n, DRIVER, slot, part)),
        ),
      ]),
    ]),
  ]

  test('stand in one partition, and none is a prefix of another', () => {
    expect(new Set(all.map((key) => key.pk))).toEqual(new Set([`T#local#RUN#${run.runId}`]))
    for (const a of all) expect(all.filter((b) => b !== a && b.sk.startsWith(a.sk)).map((b) => b.sk)).toEqual([])
  })

  test('sort as a log is read: requests before outcomes before results before parts, call by call', () => {
    const slots = [0, 1, 2, 10, 999].flatMap((n) => [
      keys.requestKey(session, n).sk,
      keys.responseKey(session, n).sk,
      keys.toolResultKey(session, n, 2).sk,
      keys.toolResultKey(session, n, 10).sk,
      keys.partKey(session, n, DRIVER, keys.PART_SLOT.response, 0).sk,
    ])
    expect([...slots].sort()).toEqual(slots)
  })

  test('are taken apart into what they were made of', () => {
    const { sessionId } = session
    expect(keys.parseTurnKey(keys.requestKey(session, 7).sk)).toEqual({ slot: 'request', sessionId, n: 7 })
    expect(keys.parseTurnKey(keys.responseKey(session, 7).sk)).toEqual({ slot: 'response', sessionId, n: 7 })
    expect(keys.parseTurnKey(keys.toolResultKey(session, 7, 12).sk)).toEqual({
      slot: 'result',
      sessionId,
      n: 7,
      index: 12,
    })
    expect(keys.parseTurnKey(keys.partKey(session, 7, DRIVER, '1', 3).sk)).toEqual({ slot: 'part', sessionId, n: 7 })
    expect(keys.parseSessionKey(keys.sessionKey(session).sk)).toBe(sessionId)
    expect(keys.parseRunPartition(keys.runKey(run).pk)).toEqual(run)
  })

  test.each(['RUN', 'TURN#x#000001#0', `TURN#${'0'.repeat(20)}#000001#4`, `TURN#${'0'.repeat(20)}#1#0`])(
    '%s is no key of a turn',
    (sk) => expect(() => keys.parseTurnKey(sk)).toThrow('no key of a turn'),
  )

  test.each(['T#a#IDEM', 'T#a#RUN#x', `T#a#b#RUN#${run.runId}`, `X#a#RUN#${run.runId}`])(
    '%s is no partition of a run',
    (pk) => expect(() => keys.parseRunPartition(pk)).toThrow('no partition of a run'),
  )

  test('no part of a key can bring a separator with it', () => {
    const evil = 'a#b'
    const makers: (() => unknown)[] = [
      () => keys.runKey({ ...run, tenant: evil }),
      () => keys.runKey({ ...run, runId: `${run.runId}#` }),
      () => keys.sessionKey({ ...session, sessionId: evil }),
      () => keys.definitionKey(run, `${HASH}#`, 0),
      () => keys.inputKey(run, 1, evil, 0),
      () => keys.partKey(session, 0, evil, '1', 0),
      () => keys.partKey(session, 0, DRIVER, evil, 0),
      () => keys.usagePartition({ tenant: 'local', day: '2026-01-01#' }),
      () => keys.usagePartition({ tenant: evil, day: '2026-01-01' }),
      () => keys.usageTakenKey({ tenant: 'local', day: '2026-01-01' }, 1, evil),
      () => keys.usagePartKey({ tenant: 'local', day: '2026-01-01' }, evil, DRIVER, 0),
      () => keys.limitKey({ tenant: 'local', period: evil, name: 'tenant' }),
      () => keys.limitKey({ tenant: evil, period: '2026-01', name: 'tenant' }),
      () => keys.limitKey({ ...run, pot: evil }),
      () => keys.stateKey(evil, 'team', 'memory'),
      () => keys.idempotencyKey(evil, 'POST /v1/runs', 'key'),
      () => keys.runsPartition(evil),
    ]
    for (const make of makers) expect(make).toThrow(RangeError)
  })

  test.each([-1, 0.5, Number.NaN, 1_000_000])('a call number %d has no key', (n) => {
    expect(() => keys.requestKey(session, n)).toThrow(RangeError)
  })

  test('other partitions keep tenants, routes and teams apart, whatever their names', () => {
    expect(keys.idempotencyKey('a', 'r', 'x#y')).not.toEqual(keys.idempotencyKey('a', 'r#x', 'y'))
    expect(keys.idempotencyKey('a', 'r', 'x').pk).toBe('T#a#IDEM')
    const at = Date.UTC(2026, 0, 31, 7, 59, 59, 999)
    expect(keys.usageItemKey({ ...run, round: 2, at, from: null })).toEqual({
      pk: 'T#local#USAGE#2026-01-31',
      sk: `ROUND#07#${run.runId}#000002#0`,
    })
    const limit = (name: string) => keys.limitKey({ tenant: 'a', period: '2026-01', name })
    expect(limit('team x').pk).toBe('T#a#LIMIT#2026-01')
    expect(limit('team x').sk).not.toBe(limit('team y').sk)
    expect(keys.limitKey({ ...run, pot: 'research' })).toEqual({ pk: `T#local#RUN#${run.runId}`, sk: 'POT#research' })
    expect(keys.stateKey('a', 'crew', 'x')).not.toEqual(keys.stateKey('b', 'crew', 'x'))
    expect(keys.stateKey('a', 'crew', 'x')).not.toEqual(keys.stateKey('a', 'crew2', 'x'))
  })

  test('the shard of a run never changes', () => {
    expect([1, 2, 3, 4].map((n) => keys.dueShard(runRef(n).runId))).toEqual(
      [1, 2, 3, 4].map((n) => keys.dueShard(runRef(n).runId)),
    )
    expect(keys.dueShard('01K74V2QHG0000000000000001')).toBeLessThan(DUE_SHARDS)
  })
})
