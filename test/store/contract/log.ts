import { describe, expect, test } from 'vitest'
import { costOf } from '../../../src/domain/pricing.ts'
import type { SessionRef } from '../../../src/domain/run.ts'
import {
  anIntent,
  anUnknown,
  aRequest,
  aResponse,
  aToolResult,
  childRef,
  DRIVER,
  money,
  noise,
  OTHER_DRIVER,
  rootRef,
  T0,
  usage,
} from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { bench } from './write-cases.ts'

export function logContract(open: () => Promise<TestTable>): void {
  const at = bench(open)
  const newSession = (): SessionRef => childRef(rootRef(at.newRun()), 0)

  describe('slots', () => {
    test('a log of every kind of slot is read back as it was put', async () => {
      const ref = newSession()
      const requests = [
        aRequest(0),
        aRequest(2, { messages: [], intent: undefined, end: { status: 'cancelled', reason: 'cancelled' } }),
      ].map(({ intent, ...slot }) => ({ ...slot, ...(intent && { intent }) }))
      const call = {
        id: 'call_1',
        name: 'think',
        arguments: '{"thought": 1.23e40}',
        providerMetadata: { a: [1, null] },
      }
      const message = {
        role: 'assistant',
        content: '',
        toolCalls: [call],
        reasoning: [{ text: 'hm', providerMetadata: { signature: 'x' } }],
      } as const
      const responses = [
        aResponse(0, {
          message,
          finishReason: 'tool_calls',
          results: [{ role: 'tool', toolCallId: 'call_1', toolName: 'think', content: 'ok', isError: true }],
          next: anIntent({ attempt: 2 }),
          rawUsage: '{"prompt_tokens":100,"completion_tokens":50}',
          answeredBy: 'gpt-5-mini-2025-08-07',
          over: { usd: 1n, tok: 2n },
        }),
        anUnknown(1, { end: { status: 'failed', reason: 'error', error: { code: 'model', message: 'no' } } }),
      ]
      const results = [aToolResult(0, 0), aToolResult(0, 11, { content: 'no', isError: true })]
      for (const slot of requests) expect(await at.store.putRequest(ref, slot, DRIVER)).toBe('written')
      for (const slot of responses) expect(await at.store.putResponse(ref, slot, DRIVER)).toBe('written')
      for (const slot of results) expect(await at.store.putToolResult(ref, slot, DRIVER)).toBe('written')

      const log = await at.store.readLog(ref)
      expect([...log.requests]).toEqual(requests.map((slot) => [slot.n, slot]))
      expect([...log.responses]).toEqual(responses.map((slot) => [slot.n, slot]))
      expect([...log.results]).toEqual(results.map((slot) => [`${slot.n}#${slot.index}`, slot]))
      expect(await at.store.getResponse(ref, 0)).toEqual(responses[0])
      expect(await at.store.getToolResult(ref, 0, 11)).toEqual(results[1])
    })

    test('what is not there is a value', async () => {
      const ref = newSession()
      expect(await at.store.getResponse(ref, 0)).toBeUndefined()
      expect(await at.store.getToolResult(ref, 0, 0)).toBeUndefined()
      expect(await at.store.readLog(ref)).toEqual({ requests: new Map(), responses: new Map(), results: new Map() })
    })

    test('W5: one of 50 drivers puts a request, and the others leave it alone', async () => {
      const ref = newSession()
      const drivers = Array.from({ length: 50 }, (_, i) => `driver${i}`)
      const outcomes = await Promise.all(
        drivers.map((driver) => at.store.putRequest(ref, aRequest(0, { intent: anIntent({ driver }) }), driver)),
      )
      expect(outcomes.filter((o) => o === 'written')).toHaveLength(1)
      const log = await at.store.readLog(ref)
      expect(log.requests.get(0)?.intent?.driver).toBe(drivers[outcomes.indexOf('written')])
    })

    test('W6 and W7: of an answer and a write-off at once one is there, whole', async () => {
      const ref = newSession()
      const slots = [aResponse(0), anUnknown(0, { next: anIntent({ driver: OTHER_DRIVER }) })]
      const outcomes = await Promise.all(slots.map((slot) => at.store.putResponse(ref, slot, slot.of)))
      expect(outcomes.filter((o) => o === 'written')).toHaveLength(1)
      expect(await at.store.getResponse(ref, 0)).toEqual(slots[outcomes.indexOf('written')])
    })

    test('W8: a closed log stays closed', async () => {
      const ref = newSession()
      const end = { status: 'cancelled', reason: 'cancelled' } as const
      const { intent: _, ...request } = aRequest(3, { messages: [], end })
      expect(await at.store.putRequest(ref, request, DRIVER)).toBe('written')
      expect(await at.store.putRequest(ref, aRequest(3), OTHER_DRIVER)).toBe('already')
      expect((await at.store.readLog(ref)).requests.get(3)).toEqual(request)
    })

    test('W10: a tool result is put once', async () => {
      const ref = newSession()
      expect(await at.store.putToolResult(ref, aToolResult(0, 1), DRIVER)).toBe('written')
      expect(await at.store.putToolResult(ref, aToolResult(0, 1, { content: 'other' }), OTHER_DRIVER)).toBe('already')
      expect((await at.store.getToolResult(ref, 0, 1))?.content).toBe('the result')
    })

    test('the log of one session has nothing of another', async () => {
      const [a, b] = [childRef(rootRef(at.newRun()), 0), childRef(rootRef(), 1)]
      const other = { ...b, runId: a.runId }
      await at.store.putResponse(a, aResponse(0), DRIVER)
      await at.store.putResponse(other, aResponse(0, { agent: 'other' }), DRIVER)
      expect([...(await at.store.readLog(a)).responses.values()]).toEqual([aResponse(0)])
    })
  })

  describe('W9 late answers', () => {
    const late = aResponse(0, { outcome: 'duplicate', cause: 'came after it was written off', rawUsage: '{}' })

    test('a late answer replaces the unknown one, and keeps its bound and the next intent', async () => {
      const ref = newSession()
      const written = anUnknown(0, { next: anIntent({ driver: OTHER_DRIVER }) })
      await at.store.putResponse(ref, written, OTHER_DRIVER)
      expect(await at.store.bookLate(ref, late, DRIVER)).toBe('written')
      expect(await at.store.getResponse(ref, 0)).toEqual({ ...late, bound: written.bound, next: written.next })
    })

    test('what an unknown outcome had and the answer has not is gone', async () => {
      const ref = newSession()
      await at.store.putResponse(ref, anUnknown(0), OTHER_DRIVER)
      const { responseId: _, finishReason: __, message: ___, cause: ____, ...rest } = late
      const failed = { ...rest, outcome: 'failed', cost: null, price: null } as const
      expect(await at.store.bookLate(ref, failed, DRIVER)).toBe('written')
      expect(await at.store.getResponse(ref, 0)).toEqual({ ...failed, bound: anUnknown(0).bound })
    })

    test.each([
      ['the outcome is known', aResponse(0)],
      ['it is the unknown outcome of another driver', anUnknown(0, { of: OTHER_DRIVER })],
    ])('is lost where %s', async (_why, there) => {
      const ref = newSession()
      await at.store.putResponse(ref, there, OTHER_DRIVER)
      expect(await at.store.bookLate(ref, late, DRIVER)).toBe('lost')
      expect(await at.store.getResponse(ref, 0)).toEqual(there)
    })

    test('is lost where there is no outcome, and is booked once of 50', async () => {
      const ref = newSession()
      expect(await at.store.bookLate(ref, late, DRIVER)).toBe('lost')
      expect(await at.store.getResponse(ref, 0)).toBeUndefined()
      await at.store.putResponse(ref, anUnknown(0), OTHER_DRIVER)
      const outcomes = await Promise.all(Array.from({ length: 50 }, () => at.store.bookLate(ref, late, DRIVER)))
      expect(outcomes.filter((o) => o === 'written')).toHaveLength(1)
    })

    test('a late answer too large for its slot leaves the body of the accepted one alone', async () => {
      const ref = newSession()
      const mine = aResponse(0, { message: { role: 'assistant', content: noise(600_000, 'mine'), toolCalls: [] } })
      expect(await at.store.putResponse(ref, mine, DRIVER)).toBe('written')
      const other = {
        ...late,
        message: { role: 'assistant', content: noise(700_000, 'other'), toolCalls: [] },
      } as const
      expect(await at.store.bookLate(ref, other, DRIVER)).toBe('lost')
      expect(await at.store.getResponse(ref, 0)).toEqual(mine)

      const second = childRef(ref, 1)
      await at.store.putResponse(second, anUnknown(0), OTHER_DRIVER)
      expect(await at.store.bookLate(second, other, DRIVER)).toBe('written')
      expect((await at.store.getResponse(second, 0))?.message).toEqual(other.message)
    })
  })

  describe('bodies of any size', () => {
    test.each([
      ['399 KB', noise(399 * 1024, 'a')],
      ['401 KB', noise(401 * 1024, 'b')],
      ['600 KB', noise(600 * 1024, 'c')],
      ['5 MB', noise(5 * 1024 * 1024, 'd')],
      ['150,000 emoji', '🧾'.repeat(150_000)],
      [
        '300,000 different characters outside the BMP',
        String.fromCodePoint(...Array.from({ length: 60_000 }, (_, i) => 0x20000 + ((i * 7) % 40_000))).repeat(5),
      ],
      ['halves of surrogate pairs', '\ud83d \udcbe \ud83d'.repeat(1000)],
      ['nothing', ''],
    ])('D1: a message of %s comes back to the last byte, in every slot', async (_size, content) => {
      const ref = newSession()
      const request = aRequest(0, { messages: [{ role: 'user', content }] })
      const response = aResponse(0, { message: { role: 'assistant', content, toolCalls: [] } })
      const result = aToolResult(0, 0, { content })
      expect(await at.store.putRequest(ref, request, DRIVER)).toBe('written')
      expect(await at.store.putResponse(ref, response, DRIVER)).toBe('written')
      expect(await at.store.putToolResult(ref, result, DRIVER)).toBe('written')
      const log = await at.store.readLog(ref)
      expect(log.requests.get(0)?.messages[0]?.content === content).toBe(true)
      expect(log.responses.get(0)?.message?.content === content).toBe(true)
      expect(log.results.get('0#0')?.content === content).toBe(true)
      expect((await at.store.getResponse(ref, 0))?.message?.content === content).toBe(true)
      expect((await at.store.getToolResult(ref, 0, 0))?.content === content).toBe(true)
      const { slots } = await at.store.listSlots(ref, { limit: 5 })
      expect(slots.responses.get(0)?.message?.content === content).toBe(true)
    })

    test('two drivers put large bodies into one slot: the winner’s is read', async () => {
      const ref = newSession()
      const slots = [DRIVER, OTHER_DRIVER].map((of) =>
        aResponse(0, { of, message: { role: 'assistant', content: noise(800_000, of), toolCalls: [] } }),
      )
      const outcomes = await Promise.all(slots.map((slot) => at.store.putResponse(ref, slot, slot.of)))
      const winner = slots[outcomes.indexOf('written')]
      expect((await at.store.readLog(ref)).responses.get(0)).toEqual(winner)
    })

    test('D2: a log beyond 1 MB is read whole, whatever its pages', async () => {
      const ref = newSession()
      const contents = Array.from({ length: 40 }, (_, n) => noise(60_000, `turn ${n}`))
      for (const [n, content] of contents.entries()) {
        await at.store.putResponse(
          ref,
          aResponse(n, { message: { role: 'assistant', content, toolCalls: [] } }),
          DRIVER,
        )
      }
      const log = await at.store.readLog(ref)
      expect([...log.responses.values()].map((slot) => slot.message?.content)).toEqual(contents)
    })

    test('D11: tool arguments are text, and stay as the model wrote them', async () => {
      const ref = newSession()
      const texts = ['{"a": 1.23e40, "b": 9007199254740993, "c": 0.1000}', '{"broken": NaN', '', '  {"a":1,"a":2}\n']
      const toolCalls = texts.map((text, i) => ({ id: `call_${i}`, name: 'tool', arguments: text }))
      await at.store.putResponse(ref, aResponse(0, { message: { role: 'assistant', content: '', toolCalls } }), DRIVER)
      const read = await at.store.getResponse(ref, 0)
      expect(read?.message?.toolCalls.map((call) => call.arguments)).toEqual(texts)
    })
  })

  describe('money and counts', () => {
    test('D11: costs of any size are exact, from 2e-7 dollars to beyond 2^53 units', async () => {
      const ref = newSession()
      const price = { input: 2_000n, output: 10n ** 19n + 1n, cacheRead: 0n, cacheWrite: 1n, cacheWrite1h: 2n }
      for (const [n, spent] of [usage(100, 0), usage(3, 3)].entries())
        await at.store.putResponse(ref, aResponse(n, { price, usage: spent, cost: costOf(spent, price) }), DRIVER)
      const log = await at.store.readLog(ref)
      expect(log.responses.get(0)).toMatchObject({ cost: 200_000n, price })
      expect(log.responses.get(1)).toMatchObject({ cost: 30_000_000_000_000_006_003n })
    })

    test('B25: a call without a price has none: null, and not 0', async () => {
      const ref = newSession()
      await at.store.putResponse(ref, aResponse(0, { cost: null, price: null }), DRIVER)
      await at.store.putResponse(ref, aResponse(1, { outcome: 'none', cost: 0n, usage: usage(0, 0) }), DRIVER)
      const log = await at.store.readLog(ref)
      expect(log.responses.get(0)).toMatchObject({ cost: null, price: null })
      expect(log.responses.get(1)).toMatchObject({ cost: 0n, outcome: 'none' })
    })

    test.each([
      ['NaN', Number.NaN],
      ['Infinity', Number.POSITIVE_INFINITY],
      ['a fraction', 0.5],
      ['less than nothing', -1],
    ])('B24: a token count of %s is refused by name, and nothing is written', async (_what, inputTokens) => {
      const ref = newSession()
      const slot = aResponse(0, { usage: usage(inputTokens, 50) })
      await expect(async () => at.store.putResponse(ref, slot, DRIVER)).rejects.toThrow('inputTokens')
      expect(await at.store.getResponse(ref, 0)).toBeUndefined()
    })
  })

  test('D12: undefined in a slot is the same as nothing', async () => {
    const ref = newSession()
    const slot = aResponse(0, {
      cause: undefined,
      bound: undefined,
      next: undefined,
      rawUsage: undefined,
      message: {
        role: 'assistant',
        content: 'x',
        reasoning: undefined,
        toolCalls: [{ id: '1', name: 't', arguments: '{}', providerMetadata: undefined }],
      },
    } as never)
    await at.store.putResponse(ref, slot, DRIVER)
    await at.store.putToolResult(ref, { ...aToolResult(), isError: undefined } as never, DRIVER)
    const read = await at.store.getResponse(ref, 0)
    expect(read).toEqual(slot)
    expect(Object.keys(read!)).not.toContain('cause')
    expect(await at.store.getToolResult(ref, 0, 0)).toStrictEqual(aToolResult())
  })

  describe('slots for reading, a few turns at a time', () => {
    test('pages begin where the last one ended, and the last one says so', async () => {
      const ref = newSession()
      for (let n = 0; n < 5; n++) {
        if (n !== 3) await at.store.putRequest(ref, aRequest(n), DRIVER)
        await at.store.putResponse(ref, aResponse(n), DRIVER)
        await at.store.putToolResult(ref, aToolResult(n, 0), DRIVER)
      }
      const turns = async (from: number, limit: number) => {
        const { slots, nextTurn } = await at.store.listSlots(ref, { from, limit })
        return [[...slots.responses.keys()], [...slots.requests.keys()], slots.results.size, nextTurn]
      }
      expect(await turns(0, 2)).toEqual([[0, 1], [0, 1], 2, 2])
      expect(await turns(2, 2)).toEqual([[2, 3], [2], 2, 4])
      expect(await turns(4, 2)).toEqual([[4], [4], 1, undefined])
      expect(await turns(0, 5)).toEqual([[0, 1, 2, 3, 4], [0, 1, 2, 4], 5, undefined])
      expect(await turns(9, 5)).toEqual([[], [], 0, undefined])
    })
  })

  test('a bound beyond 2^53 is kept exactly', async () => {
    const ref = newSession()
    const bound = { hold: { ...money(1), tok: 10n ** 24n }, estimate: 1, cap: 2 }
    await at.store.putResponse(ref, anUnknown(0, { bound, startedAt: T0 }), DRIVER)
    expect((await at.store.getResponse(ref, 0))?.bound).toEqual(bound)
  })
}
