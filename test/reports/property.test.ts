/**
 * The parts are the whole, to the last digit: random trees of random calls, at every price in the built-in table. What is
 * expected is summed from the call items by plain loops.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { formatUsd, parseUsd } from '../../src/domain/money.ts'
import type { Run } from '../../src/domain/run.ts'
import { subtreeBooks } from '../../src/domain/session.ts'
import type { AgentDefinition, ModelDefinition, TeamDefinition } from '../../src/domain/team.ts'
import type { Totals } from '../../src/domain/usage.ts'
import { auditRun } from '../../src/engine/audit.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { createApp } from '../../src/http/app.ts'
import type { FiguresView } from '../../src/http/views/figures.ts'
import type { SpendReport } from '../../src/http/views/report.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { SessionView } from '../../src/http/views/session.ts'
import type { UsageReport } from '../../src/http/views/usage.ts'
import { createPrices } from '../../src/prices/prices.ts'
import table from '../../src/prices/table.json' with { type: 'json' }
import { memoryTable } from '../../src/store/memory-table.ts'
import { type Random, randomFrom } from '../simulator/random.ts'
import { agent, scriptedModel, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

const AGENTS = 16
const DEEPEST = 4
const MODELS = Object.entries(table.providers).flatMap(([provider, { models }]) =>
  Object.keys(models).map((model) => ({ provider, model })),
)

/** Token counts that fit into each other. */
function usageOf(random: Random): { [kind: string]: number } {
  const input = random.below(300_000)
  const cacheRead = random.chance(0.4) ? random.below(input + 1) : 0
  const cacheWrite = random.chance(0.3) ? random.below(input - cacheRead + 1) : 0
  const output = random.below(20_000)
  return { input, cacheRead, cacheWrite, output, reasoning: random.chance(0.3) ? random.below(output + 1) : 0 }
}

/** A tree of agents, each with a model of its own: it asks all below it, some at once, and answers; some calls fail. */
function randomTeam(
  name: string,
  models: readonly { provider: string; model: string }[],
  random: Random,
): TeamDefinition {
  const depth = [0]
  const children = models.map((): number[] => [])
  for (let i = 1; i < models.length; i++) {
    const parents = depth.flatMap((d, p) => (d < DEEPEST ? [p] : []))
    const parent = random.pick(parents)
    children[parent]!.push(i)
    depth.push(depth[parent]! + 1)
  }
  const agents: AgentDefinition[] = models.map((_, i) =>
    agent(`a${i}`, { subAgents: children[i]!.map((c) => `a${c}`), toolsets: ['think'] }),
  )
  const definitions = models.map(({ provider, model }, i): ModelDefinition => {
    const fail = () =>
      random.chance(0.15) && { error: { class: 'server', message: 'busy', times: 1, usage: usageOf(random) } }
    const steps = [
      ...(children[i]!.length === 0
        ? []
        : [
            {
              calls: children[i]!.map((c) => ({ tool: 'transfer_task', args: { agent: `a${c}`, task: 'x' } })),
              usage: usageOf(random),
              ...fail(),
            },
          ]),
      ...Array.from({ length: random.below(3) }, () => ({
        calls: [{ tool: 'think', args: { thought: 'hm' } }],
        usage: usageOf(random),
      })),
      // every price list has a price for these two kinds
      { text: 'done', usage: { input: random.below(300_000) + 1, output: random.below(20_000) }, ...fail() },
    ]
    const { cost: _, ...scripted } = scriptedModel(steps)
    return { ...scripted, provider, model }
  })
  return { shape: 1, name, agents, models: Object.fromEntries(definitions.map((m, i) => [`a${i}`, m])) }
}

interface Sum {
  calls: number
  tokens: number
  cost: bigint
  unpriced: number
}
const nothing = (): Sum => ({ calls: 0, tokens: 0, cost: 0n, unpriced: 0 })
const sum = (parts: Iterable<Sum>): Sum => {
  const total = nothing()
  for (const p of parts) {
    total.calls += p.calls
    total.tokens += p.tokens
    total.cost += p.cost
    total.unpriced += p.unpriced
  }
  return total
}
const ofTotals = (t: Totals): Sum => ({
  calls: t.calls,
  tokens: t.inputTokens + t.outputTokens,
  cost: t.cost,
  unpriced: t.unpricedCalls,
})
/** A view says whether calls without a price are among its own, not how many. */
const ofView = (f: FiguresView) => ({
  calls: f.usage.calls,
  tokens: f.usage.inputTokens + f.usage.outputTokens,
  cost: parseUsd(f.costUsd),
})
const known = ({ calls, tokens, cost }: Sum) => ({ calls, tokens, cost })
const sumViews = (views: Iterable<FiguresView>) => known(sum([...views].map((v) => ({ ...ofView(v), unpriced: 0 }))))

async function callsOf(engine: TestEngine, run: Run) {
  const calls = []
  let after: string | undefined
  do {
    const page = await engine.ctx.store.listCalls(run, { limit: 1_000, ...(after !== undefined && { after }) })
    calls.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return calls
}

/** Everything that says what the run has spent, against its call items. */
async function expectWhole(engine: TestEngine, run: Run): Promise<Sum> {
  const get = async <T>(path: string) =>
    (await (await createApp(engine.ctx, { tenantOf: () => 'local' }).request(path)).json()) as T
  const calls = (await callsOf(engine, run)).map((c) => ({
    session: c.sessionId,
    calls: 1,
    tokens: c.usage.inputTokens + c.usage.outputTokens,
    cost: c.cost ?? 0n,
    unpriced: c.cost === null ? 1 : 0,
  }))
  const total = sum(calls)
  const { run: stored, headers } = await engine.ctx.store.getRunWithSessions(run)
  for (const h of headers) {
    const own = sum(calls.filter((c) => c.session === h.sessionId))
    expect(sum(h.rows.map((r) => ofTotals(r.totals)))).toEqual(own)
    const below = new Set([h.sessionId])
    for (let more = true; more; ) {
      const size = below.size
      for (const k of headers) if (k.parentId !== null && below.has(k.parentId)) below.add(k.sessionId)
      more = below.size > size
    }
    expect(sum(Object.values(subtreeBooks(h)).map(ofTotals))).toEqual(sum(calls.filter((c) => below.has(c.session))))
  }
  expect(sum(Object.values(stored!.books).map(ofTotals))).toEqual(total)

  const shown = await get<RunView>(`/v1/runs/${run.runId}`)
  expect({ ...ofView(shown), unpriced: shown.unpricedCalls }).toEqual(total)
  const usage = await get<UsageReport>(`/v1/runs/${run.runId}/usage`)
  for (const cut of [usage.byAgent, usage.byModel, usage.byOutcome])
    expect(sumViews(Object.values(cut))).toEqual(known(total))
  expect(ofView(usage.total)).toEqual(known(total))
  const { sessions } = await get<{ sessions: SessionView[] }>(`/v1/runs/${run.runId}/sessions?limit=100`)
  if (sessions.length < 100) expect(sumViews(sessions)).toEqual(known(total))
  expect((await auditRun(engine.ctx, run)).differences).toEqual([])
  return total
}

describe('random trees over all prices', () => {
  const clock: VirtualClock = createVirtualClock(Date.UTC(2026, 10, 30, 12))
  let total: Sum
  let priced: Set<string>
  let engine: TestEngine

  beforeAll(async () => {
    const random = randomFrom(4)
    const teams: TeamDefinition[] = []
    for (let i = 0; i < MODELS.length; i += AGENTS)
      teams.push(randomTeam(`team-${i / AGENTS}`, MODELS.slice(i, i + AGENTS), random))
    engine = testEngine({ table: memoryTable(), teams, clock, prices: createPrices() })
    const sums: Sum[] = []
    priced = new Set()
    for (const team of teams) {
      const run = await startRun(engine.ctx, { tenant: 'local', team: team.name, input: 'go' })
      await clock.advance(300_000)
      expect((await engine.ctx.store.getRun(run))!.status).toBe('completed')
      sums.push(await expectWhole(engine, run))
      for (const c of await callsOf(engine, run)) {
        const { provider, model } = team.models[c.model]!
        if (c.cost !== null) priced.add(`${provider}/${model}`)
      }
    }
    total = sum(sums)
  }, 240_000)

  test('calls, sessions, subtrees, runs and their cuts by agent, model and outcome say the same', () => {
    expect(total.calls).toBeGreaterThan(2 * MODELS.length)
    expect(total.cost).toBeGreaterThan(0n)
  })

  test('every model of the table has priced a call', () => {
    expect(priced.size).toBe(MODELS.length)
    // one that has no price for cached input leaves a call with some unpriced: it is never free
    expect(total.unpriced).toBeGreaterThan(0)
  })

  test('the report of the day says it once more, however it is cut', async () => {
    const app = createApp(engine.ctx, { tenantOf: () => 'local' })
    for (const groupBy of ['team', 'agent', 'model', 'outcome', 'day']) {
      const path = `/v1/usage?from=2026-11-30&to=2026-12-02&groupBy=${groupBy}`
      const report = (await (await app.request(path)).json()) as SpendReport
      expect({ ...ofView(report.total), unpriced: report.total.unpricedCalls }).toEqual(total)
      expect(sumViews(report.rows)).toEqual(known(total))
    }
  })
})

test('10,000 calls of $0.000001 are $0.01', async () => {
  const think = { calls: [{ tool: 'think', args: { thought: 'x' } }], usage: { input: 1, output: 0 } }
  const cheap = scriptedTeam('cheap', [
    {
      agent: agent('worker', { toolsets: ['think'], maxIterations: 25 }),
      steps: [...Array.from({ length: 24 }, () => think), { text: 'done', usage: { input: 1, output: 0 } }],
      model: { cost: { input: '1', output: '1' } },
    },
  ])
  const engine = testEngine({ table: memoryTable(), teams: [cheap] })
  const tasks = Array.from({ length: 400 }, (_, i) => ({ agent: 'worker', task: `${i}` }))
  const run = await startRun(engine.ctx, { tenant: 'local', team: 'cheap', tasks })
  await engine.invoker.drain()
  const total = await expectWhole(engine, run)
  expect([total.calls, formatUsd(total.cost)]).toEqual([10_000, '0.01'])
  await engine.invoker.close()
}, 120_000)
