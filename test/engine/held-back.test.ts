/** A child that is held back for want of money, and whose wake was lost. */
import { expect, test } from 'vitest'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import type { ModelDefinition } from '../../src/domain/team.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

/** One call of a worker holds USD 0.30 and costs 0.10; the root's calls are free. */
const model: Partial<ModelDefinition> = {
  cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
  maxTokens: 30_000,
  minTokens: 30_000,
}
const free: Partial<ModelDefinition> = { ...model, cost: { input: '0', output: '0', cacheRead: '0', cacheWrite: '0' } }
const background = { tool: 'run_background_agent', args: { agent: 'worker', task: 'x' } }
const team = scriptedTeam('t', [
  {
    agent: agent('root', { subAgents: ['worker'], toolsets: ['background_agents'] }),
    steps: [{ calls: [background, background] }, { text: 'done' }],
    model: free,
  },
  { agent: agent('worker'), steps: [{ text: 'worked', usage: { input: 10, output: 10_000 } }], model },
])

test('while its parent works for long it is woken within some minutes, where who should have woken it died', async () => {
  const clock = createVirtualClock()
  const { ctx } = testEngine({ table: memoryTable(), teams: [team], clock })
  const { settle } = ctx.store
  const { call } = ctx.model
  let killed = false
  Object.assign(ctx.store, {
    settle: async (...args: Parameters<typeof settle>) => {
      const settled = await settle(...args)
      if (!killed && settled.written) {
        killed = true
        throw new Error('killed behind W16')
      }
      return settled
    },
  })
  Object.assign(ctx.model, {
    call: async (request: Parameters<typeof call>[0]) => {
      // the root's second call is a long one
      if (request.call.sessionId === rootSessionId(run.runId) && request.call.n === 1) await clock.sleep(12 * 60_000)
      return call(request)
    },
  })
  const run = await startRun(ctx, { tenant: 'local', team: 't', input: 'go', budget: { usd: '0.55' } })
  await clock.advance(1_000)
  const child = (o: number) => ctx.store.getHeader({ ...run, sessionId: childSessionId(rootSessionId(run.runId), o) })
  const root = await ctx.store.getHeader({ ...run, sessionId: rootSessionId(run.runId) })
  expect(killed).toBe(true)
  expect(root).toMatchObject({
    status: 'running',
    pending: new Set([1]),
    needs: new Set([1]),
    avail: { usd: 450_000_000_000n },
  })
  expect(await child(0)).toMatchObject({ status: 'completed' })
  expect(await child(1)).toMatchObject({ status: 'queued' })
  for (let i = 0; i < 9; i++) {
    await clock.advance(60_000)
    await sweep(ctx, { deadlineAt: clock.now() + 60_000 })
  }
  expect(await child(1)).toMatchObject({ status: 'completed' })
  await clock.advance(10 * 60_000)
})
