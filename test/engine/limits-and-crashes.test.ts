/** Limits over time when something happens between two steps: midnight, the end of a worker, a deletion. And their warnings. */
import { describe, expect, test } from 'vitest'
import { parseUsd } from '../../src/domain/money.ts'
import { endOfPeriod } from '../../src/domain/outer-limit.ts'
import { deleteRun } from '../../src/engine/delete-run.ts'
import { runView } from '../../src/http/views/run.ts'
import { createEmbeddedMetrics } from '../../src/metrics.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { agent, scriptedTeam } from '../support/engine.ts'
import { DAY_MS, ofTenant, usd, world } from '../support/limits-world.ts'

const sweepLong = async (w: ReturnType<typeof world>) => {
  for (let i = 0; i < 12; i++) {
    w.clock.move(5 * 60_000)
    await w.rest()
  }
}

describe('midnight passes between two steps', () => {
  /** A table in which it becomes midnight right after the limit of the day was read for the n-th time. */
  function atMidnight(n: number) {
    const table = memoryTable()
    let reads = 0
    const turn = { passed: false, move: () => {} }
    const watched: TableClient = {
      ...table,
      async get(request) {
        const found = await table.get(request)
        if (String(request.key.pk).includes('#LIMIT#2026-11-30') && found.item && ++reads === n) {
          turn.passed = true
          turn.move()
        }
        return found
      },
    }
    return { watched, turn }
  }

  test.each([1, 2, 3])('after look %i at the limit of the day: the run goes on all the same', async (n) => {
    const { watched, turn } = atMidnight(n)
    const w = world([ofTenant(usd('5'))], { table: watched })
    w.clock.move(DAY_MS / 2 - 10_000)
    turn.move = () => w.clock.move(15_000)
    const run = await w.start()
    await w.invoker.drain()
    await sweepLong(w)
    expect(turn.passed).toBe(true)
    expect(await w.read(run)).toMatchObject({ status: 'completed', grants: [] })
    expect(w.scripted.bill).toHaveLength(1)
  })

  test('a run for which that day had too little goes on when the next sweep comes, and not a day later', async () => {
    const { watched, turn } = atMidnight(1)
    const w = world([ofTenant(usd('0.35'))], { table: watched })
    w.clock.move(DAY_MS / 2 - 60_000)
    await w.start()
    await w.rest()
    const run = await w.start()
    turn.move = () => w.clock.move(DAY_MS / 2)
    await w.rest()
    expect(await w.read(run)).toMatchObject({ status: 'waiting', short: { resumeAt: Date.UTC(2026, 11, 1) } })
    w.clock.move(11 * 60_000)
    await w.rest()
    expect((await w.read(run)).status).toBe('completed')
  })

  test('a period ends when the next one of its kind begins', () => {
    expect(endOfPeriod('day', '2026-11-30')).toBe(Date.UTC(2026, 11, 1))
    expect(endOfPeriod('day', '2028-02-28')).toBe(Date.UTC(2028, 1, 29))
    expect(endOfPeriod('month', '2026-12')).toBe(Date.UTC(2027, 0, 1))
  })
})

test('a run whose worker died right behind its end, and which is then deleted, holds nothing of a limit', async () => {
  const table = memoryTable()
  let [dead, died] = [false, false]
  const alive = <T>(request: () => T): T => {
    if (dead) throw new Error('killed')
    return request()
  }
  const w = world([ofTenant(usd('5'), { per: 'month' })], {
    table: {
      ...table,
      get: async (r) => alive(() => table.get(r)),
      put: async (r) => alive(() => table.put(r)),
      query: async (r) => alive(() => table.query(r)),
      async update(r) {
        const result = await alive(() => table.update(r))
        // W17
        const ends = r.key.sk === 'RUN' && result.written && Object.values(result.item).includes('completed')
        if (ends && !died) dead = died = true
        return result
      },
    },
  })
  w.clock.move(-20 * DAY_MS)
  const run = await w.start()
  await w.invoker.drain()
  expect(dead).toBe(true)
  dead = false
  expect(await w.read(run)).toMatchObject({ status: 'completed', grants: [expect.anything()] })
  await deleteRun(w.ctx, run)
  await sweepLong(w)
  expect(await w.ctx.store.getRun(run, { consistent: true, gone: true })).toBeUndefined()
  expect(await w.limit('tenant', 'local', 'month')).toMatchObject({
    held: {},
    spent: { usd: parseUsd('0.1') },
    avail: { usd: parseUsd('4.9') },
  })
})

describe('the warning of a budget under a limit over time', () => {
  // each call holds and costs USD 0.10, and six are made
  const usage = { input: 0, output: 10_000 }
  const think = { calls: [{ tool: 'nothing' }], usage }
  const model = {
    cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
    maxTokens: 10_000,
    minTokens: 10_000,
  }
  const six = scriptedTeam('six', [
    {
      agent: agent('root', { maxIterations: 6 }),
      steps: [...Array.from({ length: 5 }, () => think), { text: 'done', usage }],
      model,
    },
  ])
  async function run(budget?: string) {
    const w = world([ofTenant(usd('1000'))], { teams: [six] })
    const said: string[] = []
    const metrics = createEmbeddedMetrics((line) => {
      if (JSON.parse(line).BudgetWarnings) said.push(line)
    })
    Object.assign(w.ctx, { metrics })
    const ref = await w.start({ team: 'six', ...(budget && { budget: { usd: budget } }) })
    await w.rest()
    const { run, headers } = await w.ctx.store.getRunWithSessions(ref)
    expect(run).toMatchObject({ status: 'completed' })
    const { budget: view } = runView(run!, { headers, input: null, output: null, leaseMs: 1 })
    return { said: said.length, warnedAt: view?.warnedAt ?? null }
  }

  test('is not told of a budget of which little is spent, however little is granted at a time', async () => {
    expect(await run('10')).toEqual({ said: 0, warnedAt: null })
  })

  test('is not told where there is no budget', async () => {
    expect(await run()).toEqual({ said: 0, warnedAt: null })
  })

  test('is told once, and the run still says so after its end', async () => {
    expect(await run('0.7')).toEqual({ said: 1, warnedAt: expect.any(String) })
  })
})
