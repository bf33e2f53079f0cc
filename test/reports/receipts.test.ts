/** Receipts of a provider settle calls of unknown outcome, as their late answers would have, once. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { AuditReport } from '../../src/engine/audit.ts'
import { foldDay } from '../../src/engine/fold-usage.ts'
import { matchReceipts, type Receipt } from '../../src/engine/match-receipts.ts'
import { settleUp } from '../../src/engine/settle.ts'
import type { ReceiptsView } from '../../src/http/audit.ts'
import type { SpendReport } from '../../src/http/views/report.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { type Api, expectProblem, openApi } from '../http/api.ts'
import { anUnknown, aResponse, aRun, childRef, rootRef, runRef, usage } from '../support/builders.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { DAY, endedRunWithUnknown } from './support.ts'

/** USD 3 in and 15 out per million tokens. */
const team = scriptedTeam('crew', [
  { agent: agent('root', { subAgents: ['worker'] }), steps: [{ text: 'x' }] },
  {
    agent: agent('worker', { model: 'mini' }),
    steps: [{ text: 'x' }],
    model: { provider: 'openai', model: 'gpt-5-mini' },
  },
])
const worker = childRef(rootRef(), 0)
const { runId } = runRef()
const lost = anUnknown(1)
const created = new Date(lost.startedAt + 500).toISOString()

describe('a run with a lost call', () => {
  let api: Api
  beforeEach(async () => {
    api = openApi()
    await api.ctx.store.putDefinition(runRef(), aRun().definition, team)
    await endedRunWithUnknown(api.ctx.store, runRef())
    await settleUp(api.ctx, rootRef())
  })
  afterEach(() => api.close())

  const settle = async (...receipts: object[]) =>
    (await api.post<ReceiptsView>(`/v1/runs/${runId}/receipts`, { receipts })).body
  const run = async () => (await api.get<RunView>(`/v1/runs/${runId}`)).body
  const audit = async () => (await api.get<AuditReport>(`/v1/runs/${runId}/audit`)).body
  const TOKENS = { inputTokens: 1_000, cacheReadTokens: 400, outputTokens: 200 }

  test('is settled by session and turn, up to the run and the report of its day', async () => {
    expect(await run()).toMatchObject({ costUsd: '0.0018', unknown: { calls: 1, costUsd: '0.5' }, waste: { calls: 0 } })
    const { settled, receipts } = await settle({
      sessionId: worker.sessionId,
      turn: 1,
      responseId: 'resp_9',
      ...TOKENS,
    })
    expect(settled).toBe(1)
    expect(receipts).toEqual([
      { result: 'settled', sessionId: worker.sessionId, turn: 1, costUsd: '0.00492', detail: 'booked as duplicate' },
    ])
    // 600 input tokens at 3, 400 cached ones at 0.3, 200 output tokens at 15
    expect(await run()).toMatchObject({ costUsd: '0.00672', unknown: { calls: 0, costUsd: '0' }, waste: { calls: 1 } })
    const report = await api.get<SpendReport>(`/v1/usage?from=${DAY}&to=${DAY}`)
    expect(report.body.total).toMatchObject({ costUsd: '0.00672', unknown: { calls: 0 } })
    const { body } = await api.get<{ calls: object[] }>(`/v1/runs/${runId}/calls`)
    expect(body.calls).toMatchObject([
      {
        outcome: 'duplicate',
        usageSource: 'reported',
        responseId: 'resp_9',
        cause: expect.stringContaining('receipt'),
      },
    ])
  })

  test('is settled once, whatever comes again', async () => {
    const receipt = { sessionId: worker.sessionId, turn: 1, responseId: 'resp_9', ...TOKENS }
    await settle(receipt)
    const first = await run()
    expect((await settle(receipt)).receipts[0]).toMatchObject({
      result: 'known',
      detail: 'it was booked with the same tokens',
    })
    const { sessionId, turn, ...byId } = receipt
    expect((await settle({ ...byId, inputTokens: 999 })).receipts[0]).toMatchObject({
      result: 'known',
      sessionId,
      turn,
      detail: 'it was booked with 1000 input and 200 output tokens, the receipt has 999 and 200',
    })
    expect(await run()).toMatchObject({ costUsd: first.costUsd, updatedAt: first.updatedAt })
  })

  test('is settled by model and time, where only one call fits', async () => {
    const other = { responseId: 'resp_1', model: 'gpt-5-mini', createdAt: '2026-01-01T00:00:00Z', ...TOKENS }
    const model = { ...other, responseId: 'resp_2', createdAt: created, model: 'gpt-4o' }
    const ours = { ...other, responseId: 'resp_3', createdAt: created, model: 'gpt-5-mini-2025-08-07' }
    const { receipts } = await settle(other, model, ours)
    expect(receipts.map((r) => r.result)).toEqual(['no_call', 'no_call', 'settled'])
  })

  test('is not settled by guessing', async () => {
    const one = { responseId: 'a', createdAt: created, ...TOKENS }
    const { settled, receipts } = await settle(one, { ...one, responseId: 'b' })
    expect([settled, receipts.map((r) => r.result)]).toEqual([0, ['ambiguous', 'ambiguous']])
    expect(receipts[0]!.detail).toContain(`several receipts fit call 1 of session ${worker.sessionId}`)
    expect(await run()).toMatchObject({ unknown: { calls: 1 } })
  })

  test('for which nothing was charged is booked as failed, and costs nothing', async () => {
    await settle({ sessionId: worker.sessionId, turn: 1, inputTokens: 0, outputTokens: 0 })
    expect(await run()).toMatchObject({
      costUsd: '0.0018',
      costComplete: true,
      unknown: { calls: 0 },
      waste: { calls: 1 },
    })
  })

  test('can be settled long after its day was folded', async () => {
    const day = { tenant: 'local', day: DAY }
    expect(await foldDay(api.ctx, day, Date.UTC(2026, 5, 1))).toBe(24)
    await settle({ sessionId: worker.sessionId, turn: 1, ...TOKENS })
    const report = await api.get<SpendReport>(`/v1/usage?from=${DAY}&to=${DAY}`)
    expect(report.body.total).toMatchObject({ costUsd: '0.00672', unknown: { calls: 0 } })
    expect((await audit()).differences.filter((d) => d.field === 'report' || d.field.startsWith('reported'))).toEqual(
      [],
    )
  })

  test.each([
    [{}, '/receipts/0/inputTokens', 'whole number'],
    [{ ...TOKENS }, '/receipts/0', 'says of no call'],
    [{ ...TOKENS, sessionId: 'x' }, '/receipts/0', 'by sessionId and turn together'],
    [{ ...TOKENS, responseId: 'x', inputTokens: 399 }, '/receipts/0', 'more cached input than input'],
    [{ ...TOKENS, responseId: 'x', reasoningTokens: 201 }, '/receipts/0', 'more reasoning than output'],
    [{ ...TOKENS, responseId: 'x', cacheWrite1hTokens: 1 }, '/receipts/0', 'more one-hour cache writes'],
    [{ ...TOKENS, responseId: 'x', outputTokens: -1 }, '/receipts/0/outputTokens', 'whole number'],
    [{ ...TOKENS, responseId: 'x', outputTokens: 1.5 }, '/receipts/0/outputTokens', 'whole number'],
    [{ ...TOKENS, responseId: 'x\ud800' }, '/receipts/0/responseId', 'half of a surrogate pair'],
    [{ ...TOKENS, responseId: 'x', model: '\udc00' }, '/receipts/0/model', 'half of a surrogate pair'],
    [{ ...TOKENS, sessionId: '\ud800', turn: 1 }, '/receipts/0/sessionId', 'half of a surrogate pair'],
    [{ ...TOKENS, createdAt: 'yesterday' }, '/receipts/0/createdAt', 'ISO 8601'],
    [{ ...TOKENS, responseId: 'x', costUsd: '1' }, '/receipts/0/costUsd', 'is not known here'],
  ])('a receipt %j is refused', async (receipt, path, message) => {
    const answer = await api.post(`/v1/runs/${runId}/receipts`, { receipts: [receipt] })
    const problem = expectProblem(answer, 400, 'bad_request')
    expect(problem.errors).toContainEqual({ path, message: expect.stringContaining(message) })
    expect(await run()).toMatchObject({ unknown: { calls: 1 } })
  })

  test('of another tenant is not there', async () => {
    const other = openApi({ app: { tenantOf: () => 'other' } })
    const receipts = [{ ...TOKENS, responseId: 'x' }]
    expectProblem(await other.post(`/v1/runs/${runId}/receipts`, { receipts }), 404, 'unknown_run')
    expectProblem(await other.get(`/v1/runs/${runId}/audit`), 404, 'unknown_run')
    await other.close()
  })
})

describe('which call a receipt is of', () => {
  const call = (n: number, startedAt: number, of = {}) => ({
    ...anUnknown(n, { startedAt, durationMs: 60_000, ...of }),
    sessionId: 's',
  })
  const receipt = (of: Partial<Receipt>): Receipt => ({ usage: usage(10, 5), ...of })
  const results = (receipts: Receipt[], calls: Parameters<typeof matchReceipts>[1]) =>
    matchReceipts(receipts, calls, team).map((m) => ('call' in m ? `${m.result} ${m.call.n}` : m.result))

  test('times may differ by what clocks and whole seconds differ by', () => {
    const calls = [call(1, 1_000_000)]
    const at = (createdAt: number) => results([receipt({ createdAt })], calls)[0]
    expect([998_000, 1_062_000].map(at)).toEqual(['settled 1', 'settled 1'])
    expect([997_999, 1_062_001].map(at)).toEqual(['no_call', 'no_call'])
  })

  test('one that could be of two calls is of none, unless it says which', () => {
    const calls = [call(1, 1_000_000), call(2, 1_030_000)]
    const both = receipt({ createdAt: 1_040_000 })
    expect(results([both], calls)).toEqual(['ambiguous'])
    expect(results([both, receipt({ sessionId: 's', turn: 1 })], calls)).toEqual(['settled 2', 'settled 1'])
  })

  test('two that name the same call are refused both', () => {
    const one = receipt({ sessionId: 's', turn: 1 })
    expect(results([one, one], [call(1, 1_000_000)])).toEqual(['ambiguous', 'ambiguous'])
  })

  test('one that stands in the file twice, by its id, is taken once', () => {
    const one = receipt({ responseId: 'q', createdAt: 1_040_000 })
    const twice = [one, { ...one, createdAt: 1_040_700 }]
    expect(results(twice, [call(1, 1_000_000)])).toEqual(['settled 1', 'known 1'])
    expect(matchReceipts(twice, [call(1, 1_000_000)], team)[1]!.detail).toContain('more than once')
    const placed = receipt({ responseId: 'q', sessionId: 's', turn: 2 })
    expect(results([one, placed], [call(1, 1_000_000), call(2, 1_030_000)])).toEqual(['known 2', 'settled 2'])
    expect(results([one, { ...one, usage: usage(10, 6) }], [call(1, 1_000_000)])).toEqual(['ambiguous', 'ambiguous'])
  })

  describe('beside a call that is booked', () => {
    const lost = call(1, 1_000_000)
    const booked = (n: number, startedAt: number, of: Parameters<typeof aResponse>[1] = {}) => ({
      ...aResponse(n, { startedAt, durationMs: 5_000, usage: usage(10, 5), ...of }),
      sessionId: 's',
    })
    const accepted = booked(2, 1_030_000)
    const both = receipt({ createdAt: 1_031_000 })

    test('one with its tokens is not booked a second time, on the unknown one', () => {
      expect(results([both], [lost, accepted])).toEqual(['ambiguous'])
      expect(matchReceipts([both], [lost, accepted], team)[0]!.detail).toBe(
        'it could be call 1 of session s, or call 2 of session s (booked): say which with sessionId and turn',
      )
      // a retry that began a moment after the lost call had been written off
      expect(results([receipt({ createdAt: 1_061_000 })], [lost, booked(2, 1_060_500)])).toEqual(['ambiguous'])
    })

    test('one that can be of the booked call alone is known', () => {
      expect(results([receipt({ createdAt: 1_070_000 })], [lost, booked(2, 1_069_000)])).toEqual(['known 2'])
      expect(results([both, both], [accepted])).toEqual(['known 2', 'no_call'])
    })

    test('one with other tokens, another id or another model settles the unknown one', () => {
      const other = receipt({ createdAt: 1_031_000, usage: usage(10, 6) })
      expect(results([other], [lost, accepted])).toEqual(['settled 1'])
      expect(results([{ ...both, responseId: 'q' }], [lost, accepted])).toEqual(['settled 1'])
      const elsewhere = booked(2, 1_030_000, { model: 'root' })
      expect(results([{ ...both, model: 'gpt-5-mini' }], [lost, elsewhere])).toEqual(['settled 1'])
    })

    test('two with the same tokens are one of each', () => {
      const late = receipt({ createdAt: 1_034_000 })
      expect(results([late, both], [lost, accepted])).toEqual(['settled 1', 'known 2'])
      expect(results([both, late], [lost, accepted])).toEqual(['known 2', 'settled 1'])
      // told apart by their times alone
      const early = receipt({ createdAt: 1_001_000 })
      expect(results([both, early], [lost, accepted])).toEqual(['ambiguous', 'ambiguous'])
      const after = booked(2, 1_055_000, { durationMs: 20_000 })
      const [within, beyond] = [1_056_000, 1_070_000].map((createdAt) => receipt({ createdAt }))
      expect(results([within!, beyond!], [lost, after])).toEqual(['settled 1', 'known 2'])
    })

    test('a booked call has one receipt: where another names it, no second one is its own', () => {
      for (const named of [receipt({ sessionId: 's', turn: 2 }), receipt({ responseId: accepted.responseId! })])
        expect(results([named, both], [lost, accepted])).toEqual(['known 2', 'settled 1'])
    })

    test('of two unknown ones and a booked one, none is guessed', () => {
      const lost2 = call(3, 1_020_000)
      expect(results([both, both], [lost, lost2, accepted])).toEqual(['ambiguous', 'ambiguous'])
      const late = receipt({ createdAt: 1_034_000 })
      expect(results([both, late], [lost, lost2, accepted])).toEqual(['known 2', 'ambiguous'])
      expect(results([both], [lost, lost2, accepted])).toEqual(['ambiguous'])
    })

    test('its receipt settles no other where two exports have it', () => {
      const { responseId: _, ...nameless } = accepted
      const named = { ...both, responseId: 'q' }
      const copies: [Receipt, Receipt][] = [
        [both, both],
        [both, { ...both, model: 'gpt-5-mini' }],
        [named, { ...named, createdAt: 1_031_900 }],
        [named, { ...named, createdAt: 1_031_900, model: 'gpt-5-mini' }],
        [named, { ...named, usage: usage(10, 6) }],
        [named, both],
      ]
      for (const pair of copies)
        for (const receipts of [pair, pair.toReversed()])
          expect(results(receipts, [lost, nameless])).toEqual(['ambiguous', 'ambiguous'])
      const its = { ...both, responseId: accepted.responseId! }
      expect(results([its, its], [lost, accepted])).toEqual(['known 2', 'known 2'])
      expect(results([its, both], [lost, accepted])).toEqual(['known 2', 'ambiguous'])
    })

    test('one that could be of either of two booked ones leaves both in question', () => {
      const other = booked(3, 1_058_000, { durationMs: 20_000 })
      const first = booked(2, 1_057_000, { durationMs: 20_000 })
      const [beyond, within] = [1_070_000, 1_058_500].map((createdAt) => receipt({ createdAt }))
      expect(results([beyond!, within!], [lost, first])).toEqual(['known 2', 'settled 1'])
      expect(results([beyond!, within!], [lost, first, other])[1]).toBe('ambiguous')
    })

    test('a call that broke off may have been charged more than is booked', () => {
      const broken = booked(2, 1_030_000, { outcome: 'failed', usageSource: 'partial', usage: usage(10, 1) })
      expect(results([both], [lost, broken])).toEqual(['ambiguous'])
      expect(results([both], [broken])).toEqual(['no_call'])
    })
  })

  test('a call that is known is never settled again', () => {
    const known = { ...aResponse(1, { responseId: 'r' }), sessionId: 's' }
    expect(results([receipt({ responseId: 'r' }), receipt({ sessionId: 's', turn: 1 })], [known])).toEqual([
      'known 1',
      'known 1',
    ])
    expect(results([receipt({ sessionId: 's', turn: 9 }), receipt({ responseId: 'q' })], [known])).toEqual([
      'no_call',
      'no_call',
    ])
  })
})
