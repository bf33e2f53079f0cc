/** What is said of runs that stand still, and of what has failed in them. */
import { expect, test } from 'vitest'
import { standing, waitingHint } from '../../src/cli/hints.ts'
import { remarks, whyEnded } from '../../src/cli/tree.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'

const usage = { calls: 0, inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 }
const figures = { usage, costUsd: '0', costComplete: true }
const run = (over: Partial<RunView>): RunView =>
  ({
    runId: '01K74V2QHG0000000000000000',
    status: 'waiting',
    asOf: '2026-01-01T00:00:00.000Z',
    error: null,
    tasks: null,
    budget: null,
    ...figures,
    unpricedCalls: 0,
    waste: { calls: 0, ...figures },
    unknown: { calls: 0, ...figures },
    ...over,
  }) as RunView
const failed = (n: number, over: Partial<SessionView> = {}): SessionView =>
  ({
    sessionId: `${String(n).padStart(6, '0')}abcdefghjk`,
    parentSessionId: null,
    ordinal: n,
    agent: 'worker',
    kind: 'transfer',
    status: 'failed',
    stopReason: 'error',
    error: { code: 'auth', message: `no key ${n}` },
    ...over,
  }) as SessionView

test('a run that has come to a limit over time goes on by itself: nobody is told to raise its budget', () => {
  const limited = run({ error: { code: 'limit', message: 'x' } })
  expect(waitingHint(limited, undefined)).toBe(
    'The run has come to a limit over time. It goes on by itself when there is enough again: in the next period, or when limits.yaml says more. "subledger cancel 01K74V2QHG0000000000000000" ends it.',
  )
  expect(standing(limited, [])).toBe('it waits for a limit over time; figures as of 2026-01-01T00:00:00.000Z')
  expect(standing(run({}), [])).toMatch(/^it waits for its budget; /)
})

test('a run goes on while a session works, though another waits for approval', () => {
  const waits = failed(1, { status: 'waiting', stopReason: 'approval', error: null })
  const works = failed(2, { status: 'running', stopReason: null, error: null })
  expect(standing(run({ status: 'running' }), [waits])).toMatch(/^it waits for approval; /)
  expect(standing(run({ status: 'running' }), [waits, works])).toMatch(/^it goes on; /)
})

test('a budget is told as the API tells it, tokens too', () => {
  const budget = { usd: '2', tokens: 5000, heldUsd: '0.5', availableUsd: null, warnedAt: null }
  expect(remarks(run({ budget }))).toEqual([
    'budget: $2, spent $0, unknown $0, held $0.5, available not known; at most 5,000 tokens',
  ])
  expect(remarks(run({ budget: { ...budget, usd: null } }))).toEqual(['budget: at most 5,000 tokens'])
})

test('at most ten sessions that failed are told with their reasons, and none of what is told elsewhere', () => {
  const root = failed(0, { kind: 'root' })
  expect(whyEnded(run({}), [root, failed(1)])).toEqual(['worker (000001): no key 1'])
  expect(whyEnded(run({ tasks: 1 }), [root, failed(1, { kind: 'task' })])).toEqual([])
  const many = whyEnded(
    run({}),
    Array.from({ length: 13 }, (_, n) => failed(n)),
  )
  expect(many).toHaveLength(11)
  expect(many.at(-1)).toBe('and 3 more')
})
