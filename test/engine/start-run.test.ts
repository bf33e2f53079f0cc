import { describe, expect, test } from 'vitest'
import { type StartRun, startRun } from '../../src/engine/start-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { meteredTable } from '../../src/store/metered-table.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'

const team = scriptedTeam('desk', [{ agent: agent('root'), steps: [{ text: 'ok' }] }])
const tasks = [{ agent: 'root', task: 'x' }]

async function refused(request: Partial<StartRun>) {
  const table = meteredTable(memoryTable())
  const { ctx, events } = testEngine({ table, teams: [team] })
  const error = await startRun(ctx, { tenant: 'local', team: 'desk', ...request }).then(
    () => undefined,
    (e) => e,
  )
  expect(table.snapshot().writeUnits).toBe(0)
  expect(events).toEqual([])
  return { code: error?.code, detail: error?.message, issues: error?.issues }
}

describe('a start that is refused writes nothing and invokes nothing', () => {
  test.each([
    ['an unknown team', { team: 'nobody', input: 'x' }, 'unknown_team'],
    ['an unknown agent', { input: 'x', agent: 'nobody' }, 'unknown_agent'],
    ['an unknown agent of a task', { tasks: [...tasks, { agent: 'nobody', task: 'y' }] }, 'unknown_agent'],
    ['neither input nor tasks', {}, 'bad_request'],
    ['both input and tasks', { input: 'x', tasks }, 'bad_request'],
    ['an empty input', { input: ' ' }, 'bad_request'],
    ['an empty list of tasks', { tasks: [] }, 'bad_request'],
    ['an empty task', { tasks: [{ agent: 'root', task: '' }] }, 'bad_request'],
    ['a first agent beside tasks', { tasks, agent: 'root' }, 'bad_request'],
    ['a concurrency of 0', { input: 'x', maxConcurrency: 0 }, 'bad_request'],
    ['a concurrency that is no whole number', { input: 'x', maxConcurrency: 1.5 }, 'bad_request'],
    [
      'too many tags',
      { input: 'x', tags: Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`k${i}`, 'v'])) },
      'bad_request',
    ],
  ] as const)('%s', async (_name, request, code) => {
    expect((await refused(request)).code).toBe(code)
  })

  test('and says where it is wrong, and what there is', async () => {
    expect(await refused({ input: 'x', agent: 'rot' })).toMatchObject({
      detail: '/agent: there is no agent "rot". The agents of team "desk" are: root.',
      issues: [{ path: '/agent' }],
    })
  })
})

test('a start repeated under the same id makes one run', async () => {
  const engine = testEngine({ table: memoryTable(), teams: [team] })
  const request = { tenant: 'local', team: 'desk', input: 'x', runId: engine.ctx.ids.runId(1) }
  const runs = await Promise.all([1, 2, 3].map(() => startRun(engine.ctx, request)))
  await engine.invoker.drain()
  expect(new Set(runs.map((r) => r.runId)).size).toBe(1)
  expect(engine.scripted.bill).toHaveLength(1)
})

test('a team that changes later changes no run that has begun', async () => {
  const teams = [team]
  const engine = testEngine({ table: memoryTable(), teams })
  const run = await startRun(
    { ...engine.ctx, invoker: { invoke: async () => {} } },
    { tenant: 'local', team: 'desk', input: 'x' },
  )
  teams[0] = scriptedTeam('desk', [{ agent: agent('root'), steps: [{ text: 'another answer' }] }])
  expect((await engine.ctx.store.getDefinition(run, run.definition))!.models.root!.options).toEqual({
    steps: [{ text: 'ok' }],
  })
})
