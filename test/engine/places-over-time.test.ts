/** A start that is tried again under its id looks at other places of its tenant each time. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DEFAULT_LIMITS } from '../../src/domain/configured-limits.ts'
import type { Schedule } from '../../src/domain/schedule.ts'
import type { EngineContext } from '../../src/engine/context.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { runDueSchedules } from '../../src/engine/tick.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { systemIds } from '../../src/system.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

const asks = {
  ...scriptedTeam('asks', [
    {
      agent: agent('root', { subAgents: ['worker'] }),
      steps: [{ calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'x' } }] }, { text: 'done' }],
    },
    { agent: agent('worker'), steps: [{ text: 'done' }] },
  ]),
  permissions: { ask: ['transfer_task'] },
}
const solo = scriptedTeam('solo', [{ agent: agent('root'), steps: [{ text: 'done' }] }])
let clock: VirtualClock
let engine: TestEngine
let ctx: EngineContext
beforeEach(() => {
  clock = createVirtualClock()
  engine = testEngine({ table: memoryTable(), teams: [asks, solo], clock })
  ctx = { ...engine.ctx, settings: { ...engine.ctx.settings, limits: { ...DEFAULT_LIMITS, tenantConcurrency: 120 } } }
})
afterEach(() => engine.invoker.close())

const start = (team: string, of: object = {}) =>
  startRun(ctx, { tenant: 'local', team, input: 'go', maxConcurrency: 1, ...of })
/** as take-place.ts begins at */
const beginsAt = (runId: string, places: number) =>
  [...runId].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 65_521, 7) % places

test('a scheduled run is started within an hour when half of the runs of its tenant have ended', async () => {
  // sixty wait for a decision, for days; sixty others have ended, and nobody has given their places back
  for (let i = 0; i < 60; i++) await start('asks')
  engine.lose = () => true
  for (let i = 0; i < 60; i++) await start('solo')
  engine.lose = () => false
  await clock.advance(1_000)
  const { items: all } = await ctx.store.listRuns('local', { limit: 200 })
  for (const run of all.filter((r) => r.team === 'solo'))
    await engine.invoker.invoke({ ...run, sessionId: (await ctx.store.listHeaders(run, {})).items[0]!.sessionId })
  await clock.advance(1_000)
  const { items } = await ctx.store.listRuns('local', { limit: 200 })
  expect(items.filter((r) => r.status === 'completed')).toHaveLength(60)

  let id = systemIds.runId(clock.now())
  while (beginsAt(id, 120) > 9) id = systemIds.runId(clock.now())
  const schedule: Schedule = {
    id: 'abcdefgh12345678',
    expression: 'cron(0 9 * * ? *)',
    timezone: 'UTC',
    overlap: 'skip',
    run: { team: 'solo', input: 'go', budget: { usd: '1' }, maxConcurrency: 1 },
    createdAt: clock.now(),
  }
  await ctx.store.putSchedule('local', schedule, Date.UTC(2026, 0, 1, 9))
  await clock.advance(9 * 3_600_000)
  const scheduled = { ...ctx, ids: { ...ctx.ids, runId: () => id } }
  for (let i = 0; i < 60; i++) {
    await runDueSchedules(scheduled, { deadlineAt: clock.now() + 60_000 })
    await clock.advance(60_000)
  }
  expect(await ctx.store.getRun({ tenant: 'local', runId: id })).toMatchObject({ status: 'completed' })
})
