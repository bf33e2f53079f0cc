import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createModel } from '../../src/model/model.ts'
import { type BillEntry, createScriptedModel } from '../../src/model/scripted.ts'
import type { ModelRequest } from '../../src/ports.ts'
import { definition, ESTIMATED_INPUT, listFiles, request, tokens } from './call.ts'

/** A clock that only counts: sleeps end at once, after telling how long they are. */
function countingClock(onSleep: (total: number) => void = () => {}) {
  const clock = {
    slept: 0,
    async sleep(ms: number) {
      clock.slept += ms
      onSleep(clock.slept)
    },
  }
  return clock
}

const scripted = (options: Record<string, unknown>, more: Partial<ModelRequest> = {}) =>
  request(definition('scripted', { options }), more)
const call = (options: Record<string, unknown>, more: Partial<ModelRequest> = {}, clock = countingClock()) =>
  createScriptedModel({ clock }).call(scripted(options, more))

describe('usage', () => {
  it('is what the step says', async () => {
    const usage = { input: 100, cacheRead: 40, cacheWrite: 20, cacheWrite1h: 5, output: 50, reasoning: 30 }
    const result = await call({ steps: [{ text: 'worker done', usage }] })
    expect(result).toEqual({
      message: { role: 'assistant', content: 'worker done', toolCalls: [] },
      finishReason: 'stop',
      usage: tokens(100, 50, { cacheReadTokens: 40, cacheWriteTokens: 20, cacheWrite1hTokens: 5, reasoningTokens: 30 }),
      usageSource: 'reported',
    })
  })

  it('follows from the lengths where the step says nothing', async () => {
    const result = await call({ steps: [{ text: 'worker done' }] }) // 11 bytes
    expect(result.usage).toEqual(tokens(ESTIMATED_INPUT, 3))
    const larger = await call({ steps: [{ text: 'worker done' }] }, { tools: [listFiles] })
    expect(larger.usage.inputTokens).toBeGreaterThan(ESTIMATED_INPUT)
  })
})

describe('time', () => {
  it('passes on the clock that was given', async () => {
    const clock = countingClock()
    await call({ delayMs: 400, steps: [{ text: 'a' }] }, {}, clock)
    await call({ delayMs: 400, steps: [{ text: 'a', delayMs: 100, chunks: 2 }] }, {}, clock)
    await call({ delayMs: 400, steps: [{ error: { class: 'server' } }] }, {}, clock)
    expect(clock.slept).toBe(900)
  })

  it('that runs out in the middle of an answer leaves what was said: three of four pieces', async () => {
    const abort = new AbortController()
    const clock = countingClock((total) => total === 400 && abort.abort('stopped'))
    const usage = { input: 100, output: 50 }
    const result = await call(
      { delayMs: 400, steps: [{ text: 'worker done', usage }] },
      { signal: abort.signal },
      clock,
    )
    expect(result).toEqual({
      finishReason: 'error',
      usage: tokens(100, 37),
      usageSource: 'partial',
      failure: { class: 'aborted', message: 'The call was broken off (stopped).' },
    })
  })

  it('that runs out before the first piece leaves an estimate', async () => {
    const abort = new AbortController()
    const clock = countingClock(() => abort.abort('timeout'))
    const result = await call({ steps: [{ text: 'x', delayMs: 4 }] }, { signal: abort.signal }, clock)
    expect(result).toMatchObject({
      usage: tokens(ESTIMATED_INPUT, 0),
      usageSource: 'estimated',
      failure: { class: 'timeout' },
    })
  })

  it('before the call began costs nothing', async () => {
    const result = await call({ steps: [{ text: 'x' }] }, { signal: AbortSignal.abort() })
    expect(result).toMatchObject({ usage: tokens(0, 0), usageSource: 'reported', failure: { class: 'aborted' } })
  })
})

describe('failures', () => {
  const failed = (error: object, more = {}) => call({ steps: [{ error }] }, more)

  it('cost what they say, or nothing', async () => {
    expect(await failed({ class: 'rate_limit', message: 'slow down', retryAfterMs: 70 })).toEqual({
      finishReason: 'error',
      usage: tokens(0, 0),
      usageSource: 'reported',
      failure: { class: 'rate_limit', message: 'slow down', retryAfterMs: 70 },
    })
    expect(await failed({ class: 'network', afterTokens: 12 })).toMatchObject({
      usage: tokens(ESTIMATED_INPUT, 12),
      usageSource: 'partial',
      failure: { class: 'network' },
    })
    expect(await failed({ class: 'overloaded', usage: { input: 100, output: 10 } })).toMatchObject({
      usage: tokens(100, 10),
      usageSource: 'partial',
    })
  })

  it('end as a hang only when the call is broken off', async () => {
    const abort = new AbortController()
    let ended = false
    const hanging = failed({ class: 'hang' }, { signal: abort.signal }).finally(() => {
      ended = true
    })
    await new Promise(setImmediate)
    expect(ended).toBe(false)
    abort.abort('timeout')
    expect(await hanging).toMatchObject({
      usage: tokens(ESTIMATED_INPUT, 0),
      usageSource: 'estimated',
      failure: { class: 'timeout' },
    })
  })

  it('throw as a fault', async () => {
    await expect(failed({ class: 'fault', message: 'a bug' })).rejects.toThrow('a bug')
  })

  it('of the script itself are told, not thrown', async () => {
    expect(await call({ steps: [{ text: 5 }] })).toMatchObject({
      usage: tokens(0, 0),
      failure: { class: 'invalid_request', message: expect.stringContaining('"steps[0].text" is no text') },
    })
  })
})

describe('the bill', () => {
  const folder = mkdtempSync(join(tmpdir(), 'subledger-bill-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  it('has one entry for every call, as it was booked, also where another instance keeps it', async () => {
    const billFile = join(folder, 'bill.jsonl')
    const one = createScriptedModel({ clock: countingClock(), billFile })
    const other = createScriptedModel({ clock: countingClock(), billFile })
    const script = { steps: [{ text: 'worker done', usage: { input: 100, output: 50 } }] }
    const via = createModel({ env: () => undefined, scripted: one })
    const results = [
      await via.call(scripted(script, { call: { sessionId: 's1', n: 0, driver: 'd1' } })),
      await other.call(scripted({ steps: [{ error: { class: 'server', afterTokens: 3 } }] })),
      await one.call(scripted(script, { signal: AbortSignal.abort() })),
    ]
    const fault = { class: 'fault', usage: { input: 7 } }
    await one.call(scripted({ steps: [{ error: fault }] })).catch(() => {})
    const lines = readFileSync(billFile, 'utf8').trimEnd().split('\n')
    const bill = lines.map((line) => JSON.parse(line) as BillEntry)
    expect(bill.map((b) => [b.outcome, b.aborted])).toEqual([
      ['answered', false],
      ['failed', false],
      ['failed', true],
      ['fault', false],
    ])
    expect(bill.slice(0, 3).map((b) => [b.usage, b.usageSource])).toEqual(results.map((r) => [r.usage, r.usageSource]))
    expect(bill[3]!.usage).toEqual(tokens(7, 0))
    expect(bill[0]).toEqual({
      sessionId: 's1',
      n: 0,
      driver: 'd1',
      model: 'test-model',
      usage: tokens(100, 50),
      usageSource: 'reported',
      outcome: 'answered',
      aborted: false,
    })
    expect(one.bill).toEqual([bill[0], bill[2], bill[3]])
    expect(other.bill).toEqual([bill[1]])
  })
})
