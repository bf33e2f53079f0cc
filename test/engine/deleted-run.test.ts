/** A run that was deleted stays so. */
import { expect, test } from 'vitest'
import { addInput } from '../../src/engine/add-input.ts'
import { deleteRun } from '../../src/engine/delete-run.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const echo = scriptedTeam('echo', [{ agent: agent('root'), steps: [{ text: 'you said {input}' }] }])

test('a run that was deleted is not opened again by a host whose clock is three seconds behind', async () => {
  const clock = createVirtualClock()
  const table = memoryTable()
  const { ctx, invoker } = testEngine({ table, teams: [echo], clock })
  const run = await startRun(ctx, { tenant: 'local', team: 'echo', input: 'go' })
  await clock.advance(1_000)
  await deleteRun(ctx, run)
  const late = { ...clock, now: () => clock.now() - 3_000 }
  const behind = { ...ctx, clock: late, store: createStore(table, late.now) }
  await addInput(behind, run, 'and on').catch(() => {})
  await clock.advance(1_000)
  const stored = (await ctx.store.getRun(run, { gone: true }))!
  expect([stored.round, stored.expiresAt === null]).toEqual([1, false])
  await invoker.close()
})
