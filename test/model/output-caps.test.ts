import { expect, test } from 'vitest'
import { rootSessionId } from '../../src/domain/ids.ts'
import { DEFAULT_OUTPUT_CAP } from '../../src/domain/limits.ts'
import { outputCap } from '../../src/domain/output-caps.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'

test.each([
  ['gpt-3.5-turbo-0125', 4096],
  ['gpt-4', 4096],
  ['gpt-4-0613', 4096],
  ['gpt-4-turbo-2024-04-09', 4096],
  ['gpt-4o-2024-05-13', 4096],
  ['gpt-4o-mini', 16_384],
  ['openai/gpt-4o', 16_384],
  ['gpt-5.1-chat-latest', 16_384],
  ['claude-3-haiku-20240307', 4096],
  ['claude-3-5-sonnet-20241022', 8192],
  ['claude-opus-4-1-20250805', 32_000],
  ['us.anthropic.claude-opus-4-20250514-v1:0', 32_000],
  ['gemini-2.0-flash', 8192],
  ['us.amazon.nova-pro-v1:0', 10_000],
  ['meta.llama3-8b-instruct-v1:0', 2048],
  ['deepseek-chat', 8192],
])('%s is asked for %i output tokens at most', (model, cap) => {
  expect(outputCap({ model })).toBe(cap)
  expect(outputCap({ model, maxTokens: 100_000 })).toBe(100_000) // the team file knows better
})

test.each([
  'gpt-4.1',
  'gpt-5',
  'o3',
  'claude-sonnet-4-5',
  'claude-opus-4-5',
  'gemini-2.5-pro',
  'us.amazon.nova-2-lite-v1:0',
  'some-model',
])('%s is asked for the default', (model) => {
  expect(outputCap({ model })).toBe(DEFAULT_OUTPUT_CAP)
})

test('every call is made with the cap that its hold was computed with', async () => {
  for (const model of [{}, { maxTokens: 77 }, { model: 'gpt-4o' }]) {
    const steps = [{ calls: [{ tool: 'think', args: { thought: 'hm' } }] }, { text: 'done' }]
    const team = scriptedTeam('capped', [{ agent: agent('root', { toolsets: ['think'] }), steps, model }])
    const engine = testEngine({ table: memoryTable(), teams: [team] })
    const caps: (number | undefined)[] = []
    const inner = engine.ctx.model
    const listening: typeof inner = {
      call: (request) => {
        caps.push(request.maxOutputTokens)
        return inner.call(request)
      },
    }
    Object.assign(engine.ctx, { model: listening })
    const { runId } = await startRun(engine.ctx, { tenant: 'local', team: 'capped', input: 'go' })
    await engine.invoker.drain()
    const ref = { tenant: 'local', runId, sessionId: rootSessionId(runId) }
    const log = await engine.ctx.store.readLog(ref)
    const header = await engine.ctx.store.getHeader(ref)
    const intents = [header!.first ?? log.requests.get(0)?.intent, log.responses.get(0)?.next]
    expect(caps).toEqual(intents.map((intent) => intent!.cap))
    expect(caps).toEqual(Array(2).fill(outputCap({ model: 'script', ...model })))
  }
})
