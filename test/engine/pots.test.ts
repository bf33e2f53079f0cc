import { describe, expect, test } from 'vitest'
import { add, formatUsd, sub, ZERO } from '../../src/domain/money.ts'
import type { RunRef } from '../../src/domain/run.ts'
import type { AgentDefinition, BudgetDefinition, ModelDefinition, TeamDefinition } from '../../src/domain/team.ts'
import { addInput } from '../../src/engine/add-input.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import type { SharedLimit } from '../../src/ports/limit-store.ts'
import type { Clock } from '../../src/ports.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { meteredTable } from '../../src/store/metered-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

/** A call may cost 30,000 output tokens at USD 10 a million: exactly USD 0.30. The input is free. */
const CAP = 30_000
const model = (of: Partial<ModelDefinition> = {}): Partial<ModelDefinition> => ({
  cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
  maxTokens: CAP,
  minTokens: CAP,
  ...of,
})
interface Member {
  name: string
  steps: readonly object[]
  of?: Partial<AgentDefinition>
  model?: Partial<ModelDefinition>
}
const answer = (text: string, output: number) => ({ text, usage: { input: 10, output } })

interface Budgets {
  budget?: BudgetDefinition
  budgets?: TeamDefinition['budgets']
}

function lab(members: readonly Member[], budgets: Budgets, clock?: Clock) {
  const table = meteredTable(memoryTable())
  const team = scriptedTeam(
    't',
    members.map((m) => ({ agent: agent(m.name, m.of), steps: m.steps, model: m.model ?? model() })),
  )
  const engine = testEngine({ table, teams: [{ ...team, ...budgets } as TeamDefinition], ...(clock && { clock }) })
  // no observer sees more spent and held than the limit
  const { store } = engine.ctx
  const looks = { reads: 0 }
  const check = (limit: SharedLimit, ref: { pot?: string }) => {
    const held = Object.values(limit.held).reduce(add, ZERO)
    expect(sub(limit.limit, add(limit.spent, add(held, limit.avail)))).toEqual(ZERO)
    if (!ref.pot?.startsWith('_time')) expect(limit.avail.usd >= 0n && limit.avail.tok >= 0n).toBe(true)
  }
  Object.assign(engine.ctx, {
    store: {
      ...store,
      getLimit: async (ref) => {
        looks.reads++
        const limit = await store.getLimit(ref)
        if (limit) check(limit, ref as { pot?: string })
        return limit
      },
      hold: async (...args) => {
        const written = await store.hold(...args)
        if (written.written) check(written.item, args[0] as { pot?: string })
        return written
      },
      settleHold: async (...args) => {
        const written = await store.settleHold(...args)
        if (written.written) check(written.item, args[0] as { pot?: string })
        return written
      },
    } satisfies typeof store,
  })
  const sessionsOf = async (run: RunRef) => (await store.getRunWithSessions(run)).headers
  const potOf = async (run: RunRef, pot: string) => {
    const { avail, spent, held } = (await store.getLimit({ tenant: run.tenant, runId: run.runId, pot }))!
    expect(held).toEqual({})
    return { left: formatUsd(avail.usd), spent: formatUsd(spent.usd), tokens: Number(spent.tok) }
  }
  return { ...engine, table, looks, sessionsOf, potOf }
}

const tasks = (n: number, name = 'worker') => Array.from({ length: n }, (_, i) => ({ agent: name, task: `task ${i}` }))

async function runTasks(output: number, n: number, of: Partial<ModelDefinition> = {}) {
  const member = { name: 'worker', steps: [answer('done', output)], of: { budgets: ['shared'] }, model: model(of) }
  const e = lab([member], { budgets: { shared: { usd: '1' } } })
  const run = await startRun(e.ctx, { tenant: 'local', team: 't', tasks: tasks(n) })
  await e.invoker.drain()
  await expectBalanced(e.ctx.store, run, e.scripted)
  expect(e.complaints).toEqual([])
  const workers = (await e.sessionsOf(run)).filter((h) => h.kind === 'task')
  const stored = (await e.ctx.store.getRun(run))!
  return { ...e, run, workers, stored, completed: workers.filter((h) => h.status === 'completed').length }
}

describe('a pot of $1.00 that all workers share, each with a call that may cost $0.30', () => {
  test.each([10, 60])('of %i that cost all of it, exactly 3 complete; the others say which budget it is', async (n) => {
    const { completed, workers, potOf, run, stored, scripted } = await runTasks(CAP, n)
    expect(completed).toBe(3)
    expect(scripted.bill).toHaveLength(3)
    expect(await potOf(run, 'shared')).toMatchObject({ left: '0.1', spent: '0.9' })
    const refused = workers.filter((h) => h.status === 'failed')
    expect(new Set(refused.map((h) => h.stopReason))).toEqual(new Set(['budget']))
    expect(refused[0]!.error).toEqual({
      code: 'team_budget',
      message: expect.stringContaining('The team file\'s "budgets.shared" does not cover the next model call'),
    })
    // more money for the run would not help: it does not wait for any
    expect(stored.status).toBe('completed')
  })

  test.each([10, 60])('of %i that cost $0.10, exactly 8 complete where the cap may not shrink', async (n) => {
    const { completed, potOf, run } = await runTasks(CAP / 3, n)
    expect(completed).toBe(8)
    expect(await potOf(run, 'shared')).toMatchObject({ left: '0.2', spent: '0.8' })
  })

  test.each([10, 60])('of %i that cost $0.10, exactly 10 complete where it may shrink to a third', async (n) => {
    const { completed, potOf, run } = await runTasks(CAP / 3, n, { minTokens: CAP / 3 })
    expect(completed).toBe(10)
    expect(await potOf(run, 'shared')).toMatchObject({ left: '0', spent: '1' })
  })

  test('of none that costs nothing is anything taken where the pot is 0', async () => {
    const member = { name: 'worker', steps: [answer('done', 1)], of: { budgets: ['none'] } }
    const e = lab([member], { budgets: { none: { tokens: 0 } } })
    await startRun(e.ctx, { tenant: 'local', team: 't', tasks: tasks(2) })
    await e.invoker.drain()
    expect(e.scripted.bill).toEqual([])
  })
})

describe('agents of one team', () => {
  const transfer = {
    calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'x' } }],
    usage: { input: 10, output: 10_000 },
  }
  const lead = (steps: readonly object[], budgets: string[]): Member => ({
    name: 'root',
    steps,
    of: { subAgents: ['worker'], budgets },
  })
  const worker = (budgets: string[]): Member => ({ name: 'worker', steps: [answer('worked', CAP)], of: { budgets } })

  async function play(members: readonly Member[], budgets: Budgets) {
    const e = lab(members, budgets)
    const run = await startRun(e.ctx, { tenant: 'local', team: 't', input: 'go' })
    await e.invoker.drain()
    await expectBalanced(e.ctx.store, run, e.scripted)
    expect(e.complaints).toEqual([])
    const headers = await e.sessionsOf(run)
    return { ...e, run, stored: (await e.ctx.store.getRun(run))!, worker: headers.find((h) => h.agent === 'worker')! }
  }

  test('draw from the same pot: who waits for another keeps nothing of it that the other could use', async () => {
    // the root's first call takes some ahead, which it needs to give back while the worker works
    const budgets = { shared: { usd: '0.70' } }
    const { stored, potOf, run } = await play(
      [lead([transfer, answer('all', 10_000)], ['shared']), worker(['shared'])],
      {
        budgets,
      },
    )
    expect(stored).toMatchObject({ status: 'completed', stopReason: 'end_turn' })
    expect(await potOf(run, 'shared')).toMatchObject({ spent: '0.5', left: '0.2' })
  })

  test('a parent is told of a child that its pot does not let go on, and answers', async () => {
    const {
      stored,
      worker: child,
      ctx,
      run,
    } = await play([lead([transfer, answer('so: {results}', 10)], []), worker(['small'])], {
      budgets: { small: { usd: '0.29' } },
    })
    expect(child).toMatchObject({ status: 'failed', stopReason: 'budget', error: { code: 'team_budget' } })
    expect(stored.status).toBe('completed')
    const root = (await ctx.store.getRunWithSessions(run)).headers.find((h) => h.parentId === null)!
    const said = (await ctx.store.getResponse(root, root.finalTurn!))!.message!.content
    expect(said).toContain('did not complete the task: The team file\'s "budgets.small" does not cover')
  })

  test('with pots of their own do not take from each other; and all pots of an agent apply', async () => {
    const {
      stored,
      worker: child,
      potOf,
      run,
    } = await play([lead([transfer, answer('all', 10_000)], ['mine']), worker(['theirs', 'both'])], {
      budgets: { mine: { usd: '0.4' }, theirs: { tokens: 40_000 }, both: { usd: '0.3', tokens: 1_000_000 } },
    })
    expect([stored.status, child.status]).toEqual(['completed', 'completed'])
    expect(await potOf(run, 'mine')).toMatchObject({ spent: '0.2' })
    expect(await potOf(run, 'theirs')).toMatchObject({ tokens: CAP + 10 })
    expect(await potOf(run, 'both')).toMatchObject({ left: '0' })
  })

  test('a run whose root cannot go on for its pot has failed, and does not wait for a budget', async () => {
    const { stored } = await play([lead([transfer, answer('all', CAP)], ['small']), worker([])], {
      budgets: { small: { usd: '0.31' } },
    })
    expect(stored).toMatchObject({ status: 'failed', stopReason: 'budget', error: { code: 'team_budget' } })
  })
})

test('a pot lasts for all rounds of a run', async () => {
  const e = lab([{ name: 'root', steps: [answer('hm', 10_000)], of: { budgets: ['shared'] } }], {
    budgets: { shared: { usd: '0.45' } },
  })
  const run = await startRun(e.ctx, { tenant: 'local', team: 't', input: 'go' })
  await e.invoker.drain()
  for (const spent of ['0.2', '0.2']) {
    await addInput(e.ctx, run, 'more')
    await e.invoker.drain()
    expect(await e.potOf(run, 'shared')).toMatchObject({ spent })
  }
  expect(await e.ctx.store.getRun(run)).toMatchObject({ status: 'failed', round: 3, error: { code: 'team_budget' } })
})

describe('working time', () => {
  const think = { calls: [{ tool: 'nothing' }], usage: { input: 10, output: 10 } }
  const slow = (of: Partial<ModelDefinition> = {}) => model({ ...of })
  const timed = (steps: readonly object[]): Partial<ModelDefinition> => slow({ options: { steps, delayMs: 600 } })

  async function play(members: readonly Member[], budgets: Budgets, request: object) {
    const clock = createVirtualClock()
    const e = lab(members, budgets, clock)
    const run = await startRun(e.ctx, { tenant: 'local', team: 't', ...request })
    for (let i = 0; i < 20; i++) {
      await clock.advance(10_000)
      await sweep(e.ctx, { deadlineAt: clock.now() + 900_000 })
    }
    return { ...e, run, stored: (await e.ctx.store.getRun(run))!, sessions: await e.sessionsOf(run) }
  }

  test('of a run is the sum of the durations of its calls, whoever makes them', async () => {
    const steps = [think, think, think, answer('done', 10)]
    const { stored, scripted, ctx, run } = await play(
      [{ name: 'root', steps, model: timed(steps), of: { maxIterations: 4 } }],
      { budget: { timeMs: 1_500 } },
      { input: 'go' },
    )
    // a call may begin while there is time: the third one does, at 1,200 ms
    expect(scripted.bill).toHaveLength(3)
    const message = 'The team file\'s "budget.max_time" of 1.5 s is used up.'
    expect(stored).toMatchObject({ status: 'failed', stopReason: 'timeout', error: { code: 'team_budget', message } })
    const time = (await ctx.store.getLimit({ tenant: 'local', runId: run.runId, pot: '_time' }))!
    const calls = await ctx.store.listCalls(run, { limit: 10 })
    expect(time.held).toEqual({})
    expect(Number(time.spent.tok)).toBe(calls.items.reduce((sum, c) => sum + c.durationMs, 0))
  })

  test('of a pot is shared like its money, and no time goes by while nobody works', async () => {
    const done = [answer('done', 10)]
    const members = [{ name: 'worker', steps: done, model: timed(done), of: { budgets: ['slow'] } }]
    const { sessions, scripted } = await play(
      members,
      { budgets: { slow: { timeMs: 1_000 } } },
      { tasks: tasks(5), maxConcurrency: 1 },
    )
    expect(scripted.bill).toHaveLength(2)
    const reasons = sessions.filter((h) => h.kind === 'task').map((h) => h.stopReason)
    expect(reasons.sort()).toEqual(['end_turn', 'end_turn', 'timeout', 'timeout', 'timeout'])
  })
})

test('an agent without pots reads and writes nothing for them', async () => {
  const cost = async (budgets: string[]) => {
    const e = lab([{ name: 'worker', steps: [answer('done', 10)], of: { budgets } }], { budgets: { b: { usd: '9' } } })
    await startRun(e.ctx, { tenant: 'local', team: 't', tasks: tasks(20) })
    await e.invoker.drain()
    return { units: e.table.snapshot().writeUnits, reads: e.looks.reads }
  }
  const [without, drawing] = [await cost([]), await cost(['b'])]
  expect(without.reads).toBe(0)
  expect(drawing.reads).toBeGreaterThanOrEqual(20)
  expect(drawing.units).toBeGreaterThan(without.units + 40)
})
