/** Limits over time, on a tenant, a team and a tag: over many runs at once, over midnight, and over crashes. */
import { describe, expect, test } from 'vitest'
import { add, formatUsd, parseUsd, ZERO } from '../../src/domain/money.ts'
import type { Run, RunRef } from '../../src/domain/run.ts'
import { auditRun } from '../../src/engine/audit.ts'
import { runView } from '../../src/http/views/run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import type { LimitRule } from '../../src/team/read-limits.ts'
import { agent, scriptedTeam, type TestEngine } from '../support/engine.ts'
import { CAP, DAY_MS, model, ofTenant, open, step, tokens, usd, world } from '../support/limits-world.ts'
import { dynaliteTable } from '../support/tables.ts'

const statuses = (runs: readonly Run[]) => {
  const count: { [status: string]: number } = {}
  for (const { status } of runs) count[status] = (count[status] ?? 0) + 1
  return count
}

async function expectKept(engine: TestEngine, ref: RunRef): Promise<void> {
  const run = (await engine.ctx.store.getRun(ref, { consistent: true }))!
  expect(run.grants).toEqual([])
  expect((await auditRun(engine.ctx, ref)).differences).toEqual([])
}

describe('a daily limit of $5.00 of a tenant, on the embedded emulator', () => {
  test('of 50 runs at once exactly 48 make their call, never above the limit; the others go on after midnight', async () => {
    const opened = await dynaliteTable()
    open.push(opened.close)
    const most = usd('5')
    const looks: string[] = []
    const watched: TableClient = {
      ...opened.table,
      async update(request) {
        const result = await opened.table.update(request)
        if (result.written && String(request.key.pk).includes('#LIMIT#')) looks.push(String(result.item.au))
        return result
      },
    }
    const w = world([ofTenant(most)], { table: watched })
    const runs = await Promise.all(Array.from({ length: 50 }, () => w.start()))
    await w.invoker.drain()
    for (let i = 0; i < 5; i++) {
      w.clock.move(6 * 60_000)
      await w.rest()
    }
    const after = await Promise.all(runs.map(w.read))
    expect(statuses(after)).toEqual({ completed: 48, waiting: 2 })
    expect(w.scripted.bill).toHaveLength(48)
    expect(await w.limit()).toMatchObject({ spent: { usd: parseUsd('4.8') }, held: {} })
    expect(looks.length).toBeGreaterThan(50)
    expect(looks.filter((avail) => BigInt(avail) < 0n)).toEqual([])
    expect(after.filter((r) => r.status === 'waiting').map((r) => [r.stopReason, r.short?.resumeAt])).toEqual([
      ['budget', Date.UTC(2026, 11, 1)],
      ['budget', Date.UTC(2026, 11, 1)],
    ])
    for (const run of runs) await expectKept(w, run)

    w.clock.move(Date.UTC(2026, 11, 1) - w.clock.now() + 1_000)
    await w.rest()
    expect(statuses(await Promise.all(runs.map(w.read)))).toEqual({ completed: 50 })
    expect(await w.limit()).toMatchObject({ spent: { usd: parseUsd('0.2') }, held: {} })
    for (const run of runs) await expectKept(w, run)
  }, 120_000)
})

describe('midnight UTC', () => {
  test('a grant that was taken before it counts for its day, also when its call ends after it', async () => {
    const w = world([ofTenant(usd('1'))])
    w.clock.move(DAY_MS / 2 - 5_000)
    const call = w.ctx.model.call
    const ctx = w.ctx as { model: typeof w.ctx.model }
    ctx.model = {
      call: async (request) => {
        w.clock.move(10_000)
        return call(request)
      },
    }
    const run = await w.start()
    await w.rest()
    expect((await w.read(run)).status).toBe('completed')
    expect(await w.limit()).toBeUndefined()
    w.clock.move(-60_000)
    expect(await w.limit()).toMatchObject({ spent: { usd: parseUsd('0.1') }, held: {} })
  })

  test('a limit by month goes on over it', async () => {
    const w = world([ofTenant(usd('0.45'), { per: 'month' })])
    w.clock.move(-DAY_MS)
    const first = await w.start()
    await w.rest()
    w.clock.move(DAY_MS)
    const second = await w.start()
    const third = await w.start()
    await w.rest()
    expect((await Promise.all([first, second, third].map(w.read))).map((r) => r.status)).toEqual([
      'completed',
      'completed',
      'waiting',
    ])
    w.clock.move(DAY_MS)
    await w.rest()
    expect((await w.read(third)).status).toBe('completed')
  })
})

describe('what a limit applies to', () => {
  test('two tenants are apart, and so are the values of a tag', async () => {
    const w = world([ofTenant(usd('0.35')), ofTenant(usd('0.30'), { of: { kind: 'tag', tag: 'customer' } })])
    const of = (tenant: string, customer: string) => ({ tenant, tags: { customer } })
    const [a, b, c] = [await w.start(of('t1', 'x')), await w.start(of('t2', 'x')), await w.start(of('t2', 'y'))]
    await w.rest()
    const all = await Promise.all([a, b, c].map(w.read))
    expect(all.slice(0, 1).map((r) => r.status)).toEqual(['completed'])
    expect(statuses(all.slice(1))).toEqual({ completed: 1, waiting: 1 })
    const names = await Promise.all(['x', 'y'].map((v) => w.limit(`tag ["customer","${v}"]`, 't2')))
    expect(names.map((l) => formatUsd(l?.spent.usd ?? 0n)).sort()).toEqual(['0', '0.1'])
  })

  test('a run without a required tag is refused with the name of the tag, before anything is written', async () => {
    const w = world([ofTenant(usd('1'), { of: { kind: 'tag', tag: 'customer' } })])
    const refused = { code: 'bad_request', message: expect.stringContaining('the tag "customer" is required') }
    await expect(w.start()).rejects.toMatchObject(refused)
    await expect(w.start({ tags: { customer: '' } })).rejects.toMatchObject(refused)
    expect(w.table.snapshot()).toMatchObject({ puts: 0, updates: 0 })
  })

  test('a model without a price is refused under a limit in USD, and not under one in tokens', async () => {
    const w = world([ofTenant(usd('1'))])
    await expect(w.start({ team: 'unpriced' })).rejects.toMatchObject({ code: 'unpriced_model' })
    const t = world([ofTenant(tokens(100_000))])
    const run = await t.start({ team: 'unpriced' })
    await t.rest()
    expect((await t.read(run)).status).toBe('completed')
    expect((await t.limit())?.spent.tok).toBe(BigInt(100 + CAP / 3))
  })

  test.each(['solo', 'free'])('a limit of 0 blocks every call of %s', async (team) => {
    const w = world([ofTenant(usd('0'))])
    const run = await w.start({ team })
    await w.rest()
    expect(await w.read(run)).toMatchObject({ status: 'waiting', stopReason: 'budget' })
    expect(w.scripted.bill).toEqual([])
  })
})

test('the limit cannot be reached: no call', async () => {
  const table = memoryTable()
  let down = true
  const reach = <T>(pk: unknown, request: () => Promise<T>): Promise<T> => {
    if (down && String(pk).includes('#LIMIT#')) throw new Error('the table cannot be reached')
    return request()
  }
  const w = world([ofTenant(usd('1'))], {
    table: {
      ...table,
      get: async (r) => reach(r.key.pk, () => table.get(r)),
      put: async (r) => reach(r.item.pk, () => table.put(r)),
      update: async (r) => reach(r.key.pk, () => table.update(r)),
    },
  })
  const run = await w.start()
  await w.invoker.drain()
  expect(w.scripted.bill).toEqual([])
  down = false
  w.clock.move(300_000)
  await w.rest()
  expect((await w.read(run)).status).toBe('completed')
})

test.each([undefined, { usd: '10' }])('the budget of a run stays what its user gave: %j', async (budget) => {
  const w = world([ofTenant(usd('1'))])
  const shown: unknown[] = []
  const show = async (ref: RunRef) => {
    const { run, headers } = await w.ctx.store.getRunWithSessions(ref)
    const view = runView(run!, { headers, input: null, output: null, leaseMs: 1 })
    shown.push(view.budget && [view.budget.usd, view.budget.heldUsd, view.budget.availableUsd])
  }
  const { call } = w.ctx.model
  ;(w.ctx as { model: typeof w.ctx.model }).model = {
    call: async (request) => {
      await show(run)
      return call(request)
    },
  }
  const run = await w.start({ budget })
  await w.rest()
  await show(run)
  const [during, after] = [
    ['10', '0.3', '9.7'],
    ['10', '0', '9.9'],
  ]
  expect(shown).toEqual(budget ? [during, after] : [null, null])
})

test('a raised limit lets a run go on within some minutes, with no call repeated', async () => {
  const w = world([ofTenant(usd('0.2'))])
  const run = await w.start()
  await w.rest()
  expect(await w.read(run)).toMatchObject({
    status: 'waiting',
    error: { code: 'limit', message: expect.stringContaining('the limit of tenant (2026-11-30)') },
  })
  w.at.rules = [ofTenant(usd('0.4'))]
  w.clock.move(11 * 60_000)
  await w.rest()
  expect((await w.read(run)).status).toBe('completed')
  expect(w.scripted.bill).toHaveLength(1)
})

test('a list of 20 tasks under a limit for 8 of them makes 8 calls, and the rest the next day', async () => {
  const w = world([ofTenant(usd('1'))])
  const run = await w.start({
    team: 'crowd',
    tasks: Array.from({ length: 20 }, () => ({ agent: 'worker', task: 't' })),
  })
  await w.rest()
  expect(await w.read(run)).toMatchObject({ status: 'waiting', stopReason: 'budget' })
  expect(w.scripted.bill).toHaveLength(8)
  for (let day = 0; day < 2; day++) {
    w.clock.move(DAY_MS)
    await w.rest()
  }
  expect((await w.read(run)).status).toBe('completed')
  expect(w.scripted.bill).toHaveLength(20)
  await expectKept(w, run)
})

test('where the budget of a run in USD has too little, a limit in tokens is asked for nothing', async () => {
  const w = world([ofTenant(tokens(1_000_000_000))])
  const run = await w.start({
    team: 'crowd',
    tasks: Array.from({ length: 5 }, () => ({ agent: 'worker', task: 't' })),
    budget: { usd: '0.45' },
  })
  await w.rest()
  expect(await w.read(run)).toMatchObject({ status: 'waiting', stopReason: 'budget', short: null })
  expect(w.scripted.bill).toHaveLength(2)
  await expectKept(w, run)
})

test('runs that hold what none of them can use give it back, so that as many calls are made as there is money for', async () => {
  const w = world([ofTenant(usd('0.65'))])
  const three = scriptedTeam('three', [
    {
      agent: agent('root', { toolsets: ['think'] }),
      steps: [
        { calls: [{ tool: 'think', args: { thought: 'a' } }], usage: { input: 100, output: CAP / 3 } },
        { calls: [{ tool: 'think', args: { thought: 'b' } }], usage: { input: 100, output: CAP / 3 } },
        step,
      ],
      model,
    },
  ])
  const { ctx } = w
  const teams = ctx.teams.get
  ;(ctx as { teams: typeof ctx.teams }).teams = {
    ...ctx.teams,
    get: async (name) => (name === 'three' ? three : teams(name)),
  }
  const runs = await Promise.all([1, 2, 3].map(() => w.start({ team: 'three' })))
  for (let i = 0; i < 4; i++) {
    w.clock.move(6 * 60_000)
    await w.rest()
  }
  // 0.65: four calls leave 0.25, which is too little for another one of at most 0.30
  expect(w.scripted.bill).toHaveLength(4)
  expect(await w.limit()).toMatchObject({ spent: { usd: parseUsd('0.4') }, held: {} })
  for (const run of runs) await expectKept(w, run)
})

test('while the grant suffices no session and no turn costs a write more than without a limit', async () => {
  const cost = async (n: number, rules: readonly LimitRule[]) => {
    const w = world(rules)
    await w.start({ team: 'crowd', tasks: Array.from({ length: n }, () => ({ agent: 'worker', task: 't' })) })
    await w.invoker.drain()
    return w.table.snapshot().writeUnits
  }
  const each = async (rules: readonly LimitRule[]) => ((await cost(40, rules)) - (await cost(20, rules))) / 20
  const [without, under] = [await each([]), await each([ofTenant(usd('1000'))])]
  expect(under - without).toBeLessThanOrEqual(1)
})

describe('a crash after each write of a run under two limits, and then the sweep', () => {
  test('leaves nothing held, and what was spent counts', async () => {
    const rules = [ofTenant(usd('1')), ofTenant(usd('5'), { of: { kind: 'team', team: 'solo' }, per: 'month' })]
    let points = 0
    for (let crash = 0; ; crash++, points++) {
      const table = memoryTable()
      let writes = 0
      let dead = false
      const during = async <T>(write: () => Promise<T>): Promise<T> => {
        if (dead) throw new Error('crashed')
        const result = await write()
        if (writes++ === crash) dead = true
        if (dead) throw new Error('crashed')
        return result
      }
      const w = world(rules, {
        table: { ...table, put: (r) => during(() => table.put(r)), update: (r) => during(() => table.update(r)) },
      })
      const run = await w.start().catch(() => undefined)
      await w.invoker.drain()
      if (!dead) break
      dead = false
      writes = Number.NEGATIVE_INFINITY
      for (let i = 0; i < 4; i++) {
        w.clock.move(25 * 60_000)
        await w.rest()
      }
      await w.invoker.close()
      const all = (await w.ctx.store.listRuns('local', { limit: 9 })).items
      if (run) expect(all).toHaveLength(1)
      const spent = all.reduce((sum, r) => sum + [...Object.values(r.books)].reduce((s, t) => s + t.cost, 0n), 0n)
      for (const [name, per] of [
        ['tenant', 'day'],
        ['team solo', 'month'],
      ] as const) {
        const limit = await w.limit(name, 'local', per)
        const held = Object.values(limit?.held ?? {}).reduce(add, ZERO)
        expect([crash, name, held, limit?.spent.usd ?? 0n]).toEqual([crash, name, ZERO, spent])
      }
      expect([crash, statuses(all)]).toEqual([crash, all.length > 0 ? { completed: 1 } : {}])
    }
    expect(points).toBeGreaterThan(15)
  }, 60_000)
})
