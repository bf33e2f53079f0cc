/** An engine under limits over time, with a clock that tests move. It is closed after each test. */
import { afterEach } from 'vitest'
import { type Amount, parseUsd, UNLIMITED } from '../../src/domain/money.ts'
import { type OuterLimit, periodOf } from '../../src/domain/outer-limit.ts'
import type { RunRef } from '../../src/domain/run.ts'
import type { ModelDefinition, TeamDefinition } from '../../src/domain/team.ts'
import { type StartRun, startRun } from '../../src/engine/start-run.ts'
import { sweep } from '../../src/engine/sweep.ts'
import type { Clock, OuterLimits } from '../../src/ports.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { meteredTable } from '../../src/store/metered-table.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { limitsOf } from '../../src/team/folder-limits.ts'
import type { LimitRule } from '../../src/team/read-limits.ts'
import { agent, scriptedTeam, testEngine } from './engine.ts'

/** A call may cost 30,000 output tokens at USD 10 a million: exactly USD 0.30, and costs 0.10. */
export const CAP = 30_000
export const model: Partial<ModelDefinition> = {
  cost: { input: '0', output: '10', cacheRead: '0', cacheWrite: '0' },
  maxTokens: CAP,
  minTokens: CAP,
}
export const step = { text: 'done', usage: { input: 100, output: CAP / 3 } }
export const solo = scriptedTeam('solo', [{ agent: agent('root'), steps: [step], model }])
export const crowd = scriptedTeam('crowd', [{ agent: agent('worker'), steps: [step], model }])
export const free = scriptedTeam('free', [
  { agent: agent('root'), steps: [step], model: { ...model, cost: { input: '0', output: '0' } } },
])
export const unpriced = scriptedTeam('unpriced', [{ agent: agent('root'), steps: [step], model: { api: 'scripted' } }])
for (const m of Object.values(unpriced.models)) delete (m as { cost?: unknown }).cost

export const usd = (text: string): Amount => ({ usd: parseUsd(text), tok: UNLIMITED })
export const tokens = (n: number): Amount => ({ usd: UNLIMITED, tok: BigInt(n) })
export const ofTenant = (limit: Amount, of: Partial<LimitRule> = {}): LimitRule => ({
  tenant: null,
  of: { kind: 'tenant' },
  per: 'day',
  limit,
  ...of,
})

export const NOON = Date.UTC(2026, 10, 30, 12)
export const DAY_MS = 24 * 3_600_000

/** The machine's clock, begun at noon and moved by tests. */
function movedClock(): Clock & { move(ms: number): void } {
  let [offset, began] = [NOON, performance.now()]
  return {
    now: () => Math.floor(offset + performance.now() - began),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    move(ms) {
      offset += ms + performance.now() - began
      began = performance.now()
    },
  }
}

/** what is closed after the test */
export const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

export function world(
  rules: readonly LimitRule[],
  options: { table?: TableClient; teams?: readonly TeamDefinition[] } = {},
) {
  const clock = movedClock()
  const at = { rules }
  const table = meteredTable(options.table ?? memoryTable())
  const outerLimits: OuterLimits = {
    of: async (run) => limitsOf(at.rules, run),
    requiredTags: async () => at.rules.flatMap(({ of }) => (of.kind === 'tag' ? [of.tag] : [])),
  }
  const engine = testEngine({
    table,
    teams: [solo, crowd, free, unpriced, ...(options.teams ?? [])],
    clock,
    outerLimits,
  })
  open.push(() => engine.invoker.close())
  const { ctx } = engine
  return {
    ...engine,
    table,
    clock,
    at,
    start: (of: Partial<StartRun> = {}) =>
      startRun(ctx, { tenant: 'local', team: 'solo', ...(of.tasks ? {} : { input: 'go' }), ...of }),
    read: async (ref: RunRef) => (await ctx.store.getRun(ref, { consistent: true }))!,
    limit: (name = 'tenant', tenant = 'local', per: OuterLimit['per'] = 'day') =>
      ctx.store.getLimit({ tenant, name, period: periodOf(per, clock.now()) }),
    /** the sweep, until nothing happens any more */
    async rest(): Promise<void> {
      for (let i = 0; i < 3; i++) {
        await engine.invoker.drain()
        await sweep(ctx, { deadlineAt: clock.now() + 600_000 })
      }
      await engine.invoker.drain()
    },
  }
}
