import { describe, expect, test } from 'vitest'
import { MAX_PENDING } from '../../src/domain/limits.ts'
import { UNLIMITED } from '../../src/domain/money.ts'
import type { SessionHeader } from '../../src/domain/session.ts'
import { decodeHeader, encodeHeader } from '../../src/store/header-codec.ts'
import { attributeSize, itemSize, readUnits, writeUnits } from '../../src/store/item-size.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { meteredTable } from '../../src/store/metered-table.ts'
import { encodeRun } from '../../src/store/run-codec.ts'
import { createStore } from '../../src/store/store.ts'
import {
  aChild,
  aHeader,
  anIntent,
  aRequest,
  aResponse,
  aRun,
  childRef,
  DRIVER,
  rootRef,
  row,
  runRef,
  T0,
  totals,
} from '../support/builders.ts'

const UNIT = 1024
const TENANT = 'a-tenant-name-of-32-characters-x'

/** A header at its widest: 100 ordinals of three digits pending, calls of three models, a long tenant, every total there. */
const widest: SessionHeader = aHeader({
  ...rootRef(runRef(1, TENANT)),
  agent: 'chief-financial-officer',
  limitSeq: 12,
  status: 'waiting',
  attempt: 123,
  continuations: 45,
  share: { usd: 12_345_678_901_234n, tok: UNLIMITED },
  own: { usd: 1_234_567_890_123n, tok: UNLIMITED },
  avail: { usd: 987_654_321_098n, tok: UNLIMITED - 123_456_789n },
  next: 1000,
  deleg: { turn: 123, from: 900, count: 100, share: { usd: 98_765_432_109n, tok: UNLIMITED / 101n }, funded: 100 },
  pending: new Set(Array.from({ length: MAX_PENDING }, (_, i) => 900 + i)),
  waitAll: true,
  settled: 900,
  rows: ['openai/gpt-5-mini', 'anthropic/claude-haiku-4-5'].map((model) =>
    row(123, {
      agent: 'chief-financial-officer',
      model,
      totals: { ...totals(123), cacheReadTokens: 12_345, reasoningTokens: 6_789 },
    }),
  ),
  kids: {
    accepted: { ...totals(12_345), cacheReadTokens: 1_234_567, cacheWriteTokens: 123_456, reasoningTokens: 12_345 },
    failed: totals(123),
    unknown: totals(12),
  },
  kidsSessions: 900,
  v: 1234,
  startedAt: T0 + 1_234,
  updatedAt: T0 + 123_456,
})

describe('what stays within one write unit', () => {
  test('the header of a delegating session with 100 pending ordinals', () => {
    expect(widest.pending.size).toBe(100)
    expect(itemSize(encodeHeader(widest))).toBeLessThanOrEqual(UNIT)
    expect(decodeHeader(encodeHeader(widest))).toEqual(widest)
  })

  test('the control: with 1,000 ordinals pending it does not', () => {
    const flat = { ...widest, pending: new Set(Array.from({ length: 1000 }, (_, i) => i)) }
    expect(itemSize(encodeHeader(flat))).toBeGreaterThan(2 * UNIT)
  })

  test('the header of a leaf, with previews and an error, well under', () => {
    const leaf = aChild(99, {
      status: 'failed',
      attempt: 2,
      startedAt: T0,
      finishedAt: T0,
      stopReason: 'error',
      error: { code: 'model', message: 'm'.repeat(300) },
      taskPreview: 't'.repeat(120),
      outputPreview: 'o'.repeat(120),
      finalTurn: 2,
      rows: [row(3), row(1, { outcome: 'failed' })],
    })
    expect(itemSize(encodeHeader(leaf))).toBeLessThanOrEqual(UNIT)
    expect(itemSize(encodeHeader({ ...leaf, error: null }))).toBeLessThanOrEqual(0.7 * UNIT)
  })

  test('RUN', () => {
    const run = aRun({
      ...runRef(1, TENANT),
      team: 'quarterly-report-crew',
      agent: 'chief-financial-officer',
      error: { code: 'model', message: 'm'.repeat(300) },
      stop: 'cancelled',
      stopReason: 'cancelled',
      tasks: 10_000,
      limit: { usd: 12_345_678_901_234n, tok: UNLIMITED },
      books: { accepted: totals(30_000), failed: totals(300), duplicate: totals(3), unknown: totals(3) },
      sessions: 10_101,
      v: 12_345,
      tags: { customer: 'example', costCentre: '4711' },
      cancelRequestedAt: T0,
      finishedAt: T0,
      expiresAt: 1_790_000_000,
    })
    expect(itemSize(encodeRun(run))).toBeLessThanOrEqual(UNIT)
  })

  test('a turn of two small messages, with keys, usage, price and the next intent', async () => {
    const table = meteredTable(memoryTable())
    const store = createStore(table)
    const ref = childRef(rootRef(runRef(1, TENANT)), 0)
    const call = {
      id: 'call_5xV7Zc2bQ1nM8kJ4hG6fD3sA',
      name: 'think',
      arguments: '{"thought":"First I should look at the totals of each month."}',
    }
    await store.putResponse(
      ref,
      aResponse(0, {
        message: { role: 'assistant', content: 'Let me think about it first.', toolCalls: [call] },
        finishReason: 'tool_calls',
        answeredBy: 'gpt-5-mini-2025-08-07',
        rawUsage:
          '{"prompt_tokens":308,"completion_tokens":35,"total_tokens":343,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}',
        results: [{ role: 'tool', toolCallId: call.id, toolName: 'think', content: 'Noted.' }],
        next: anIntent(),
      }),
      DRIVER,
    )
    expect(table.snapshot()).toMatchObject({ puts: 1, writeUnits: 1 })
    expect(table.snapshot().bytesWritten).toBeLessThanOrEqual(UNIT)
    table.reset()
    await store.putRequest(ref, aRequest(1), DRIVER)
    expect(table.snapshot()).toMatchObject({ puts: 1, writeUnits: 1 })
  })
})

describe('what a body costs', () => {
  const put = async (content: string) => {
    const table = meteredTable(memoryTable())
    const store = createStore(table)
    const ref = rootRef()
    await store.putRequest(ref, aRequest(0, { messages: [{ role: 'user', content }] }), DRIVER)
    const { writeUnits, puts } = table.snapshot()
    expect((await store.readLog(ref)).requests.get(0)?.messages).toEqual([{ role: 'user', content }])
    return { writeUnits, puts }
  }

  test('is less where deflating saves a unit', async () => {
    const prose = 'The quick brown fox jumps over the lazy dog. '.repeat(200) // 9 KB
    expect(await put(prose)).toEqual({ writeUnits: 1, puts: 1 })
  })

  test('is text where it saves none', async () => {
    const table = memoryTable()
    await createStore(table).putRequest(rootRef(), aRequest(0), DRIVER)
    expect(table.items()[0]?.b).toBe('[{"role":"user","content":"Read the file and say what is in it"}]')
  })

  test('stays in one item as long as it fits, deflated', async () => {
    expect((await put('🧾'.repeat(150_000))).puts).toBe(1)
  })
})

describe('sizes by DynamoDB’s rules', () => {
  test.each([
    [0, 1],
    [1, 2],
    [12, 2],
    [99, 2],
    [100, 2],
    [123, 3],
    [-12, 3],
    [1_760_000_000_000, 3],
    [1_760_000_001_534, 8],
    [10n ** 24n, 2],
    [10n ** 24n - 1n, 13],
    ['ä🧾', 6],
    ['', 0],
    [true, 1],
    [null, 1],
    [new Uint8Array(7), 7],
    [[], 3],
    [['a', 1], 3 + 1 + 1 + 1 + 2],
    [{}, 3],
    [{ ab: 1 }, 3 + 1 + 2 + 2],
  ] as const)('%s takes %d bytes', (value, bytes) => {
    expect(attributeSize(value)).toBe(bytes)
  })

  test('sets take what their elements take', () => {
    expect(attributeSize(new Set([1, 2, 300]))).toBe(2 + 2 + 2)
    expect(attributeSize(new Set(['ab', 'ä']))).toBe(4)
  })

  test('units are whole kilobytes written, and four of them read, half price where it need not be consistent', () => {
    expect([0, 1, 1024, 1025, 400 * 1024].map(writeUnits)).toEqual([1, 1, 1, 2, 400])
    expect([0, 4096, 4097].map((bytes) => readUnits(bytes, true))).toEqual([1, 1, 2])
    expect([0, 4096, 4097].map((bytes) => readUnits(bytes, false))).toEqual([0.5, 0.5, 1])
  })
})
