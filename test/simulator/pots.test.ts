/** Pots of a team file under every kind of fault: never above the limit, and nothing held after the end. */
import { expect, test } from 'vitest'
import { add, covers, formatUsd, sub, ZERO } from '../../src/domain/money.ts'
import { type Pot, potsOf } from '../../src/domain/pot.ts'
import { isTerminal } from '../../src/domain/session.ts'
import { findAgent, type TeamDefinition } from '../../src/domain/team.ts'
import { createStore } from '../../src/store/store.ts'
import { type Random, randomFrom } from './random.ts'
import { type Outcome, runScenario, worldOf } from './run-seed.ts'
import { type Scenario, scenarioOf } from './scenario.ts'
import { FAMILY } from './shapes.ts'
import type { Plan, PortCall, World } from './world.ts'

/** Looks at every pot before every call to a port, and crashes the `at`-th where it is told to. */
class Watch implements Plan {
  #seen = 0
  struck = false
  /** calls that were unknown once: they stay in their pots at their bound */
  unknown = false
  readonly #crash: { at: number; applied: boolean } | undefined

  constructor(crash?: { at: number; applied: boolean }) {
    this.#crash = crash
  }

  onCall(world: World, call: PortCall): 'crash, applied' | 'crash, not applied' | undefined {
    for (const [pot, spent] of spentIn(world)) {
      if (pot.kind === 'money' && !covers(pot.limit, spent))
        world.fail(`${pot.path}: ${formatUsd(spent.usd)}, ${spent.tok} tokens`)
    }
    if (this.#crash === undefined || call.kind === 'sleep' || this.#seen++ !== this.#crash.at) return undefined
    this.struck = true
    return this.#crash.applied ? 'crash, applied' : 'crash, not applied'
  }

  onIdle(): boolean {
    return false
  }
}

/** What calls have cost, open ones at their hold and unknown ones at their bound, by pot. */
function spentIn(world: World): Map<Pot, typeof ZERO> {
  const { team } = world.options
  const sums = new Map<Pot, typeof ZERO>()
  const pots = new Map<string, Pot>()
  for (const agent of team.agents) for (const pot of potsOf(team, agent)) pots.set(pot.item, pot)
  for (const pot of pots.values()) sums.set(pot, ZERO)
  for (const [s, h] of world.mirror.headers) {
    const agent = h.agent === null ? undefined : findAgent(team, h.agent)
    if (!agent) continue
    const { responses } = world.mirror.log(s)
    for (const { item } of potsOf(team, agent)) {
      const pot = pots.get(item)!
      for (const i of world.mirror.intents(s)) {
        const r = responses.get(i.n)
        const none = r?.outcome === 'none'
        const known = r &&
          r.outcome !== 'unknown' && { usd: r.cost ?? 0n, tok: BigInt(r.usage.inputTokens + r.usage.outputTokens) }
        const charge = none ? ZERO : known ? known : (r?.bound?.hold ?? i.hold)
        const time = { usd: 0n, tok: BigInt(none || !r ? 0 : r.durationMs) }
        sums.set(pot, add(sums.get(pot)!, pot.kind === 'time' ? time : charge))
      }
    }
  }
  return sums
}

async function play(scenario: Scenario, plan: Watch): Promise<Outcome & { readonly wrong: string | undefined }> {
  const world = worldOf(scenario, { trace: false, plan })
  const outcome = await runScenario(scenario, world)
  return { ...outcome, wrong: outcome.broken ?? (await wrongAtRest(world)) }
}

/** After the end nothing is held, and what was taken out of a pot is what its calls have cost, or their bound. */
async function wrongAtRest(world: World): Promise<string | undefined> {
  const { run, headers } = world.mirror
  if (!run || ![...headers.values()].every(isTerminal)) return undefined
  const store = createStore(world.table)
  for (const [pot, calls] of spentIn(world)) {
    const found = await store.getLimit({ tenant: run.tenant, runId: run.runId, pot: pot.item })
    if (!found) {
      if (calls.tok !== 0n) return `${pot.path}: it was drawn from, and is not there`
      continue
    }
    const left = sub(found.limit, add(found.spent, found.avail))
    if (Object.keys(found.held).length > 0) return `${pot.path}: held after the end: ${Object.keys(found.held)}`
    if (left.usd !== 0n || left.tok !== 0n) return `${pot.path}: ${left.usd} and ${left.tok} are missing`
    if (!covers(found.spent, calls)) return `${pot.path}: ${found.spent.tok} tokens are less than ${calls.tok}`
    const late = [...headers.keys()].some((s) => [...world.mirror.log(s).responses.values()].some((r) => r.bound))
    if (!late && pot.kind === 'money' && !covers(calls, found.spent)) return `${pot.path}: more than its calls`
  }
  return undefined
}

const withPots = (team: TeamDefinition, random: Random): TeamDefinition => {
  const priced = Object.values(team.models).every((m) => m.cost)
  const calls = () => random.pick([1, 3, 10, 40, 200])
  const usd = () => formatUsd(BigInt(Math.ceil(calls() * 20_000_003)) * 1_000n)
  const pot = () => ({
    ...(priced && random.chance(0.6) ? { usd: usd() } : { tokens: Math.ceil(calls() * 4_011) }),
    ...(random.chance(0.2) && { timeMs: random.between(100, 600_000) }),
  })
  return {
    ...team,
    ...(random.chance(0.2) && { budget: { timeMs: random.between(1_000, 600_000) } }),
    budgets: { a: pot(), b: pot() },
    agents: team.agents.map((agent) => ({ ...agent, budgets: random.pick([['a'], ['b'], ['a', 'b'], []]) })),
  }
}

const SEEDS = 100

test(`${SEEDS} seeds of random teams with pots`, async () => {
  const broken: string[] = []
  let [ended, refused, waited] = [0, 0, 0]
  for (let seed = 1; seed <= SEEDS; seed++) {
    const scenario = scenarioOf(seed, randomFrom(seed * 2654435761))
    if (scenario.size === 'large' || scenario.size === 'long list') continue
    const outcome = await play({ ...scenario, team: withPots(scenario.team, randomFrom(seed)) }, new Watch())
    if (outcome.wrong) broken.push(`seed ${seed}: ${outcome.wrong}`)
    const headers = [...outcome.world.mirror.headers.values()]
    ended += headers.filter(isTerminal).length
    refused += headers.filter((h) => h.error?.code === 'team_budget').length
    waited += headers.filter((h) => h.waits > 0).length
  }
  console.log(`${ended} sessions, ${refused} refused by a pot, ${waited} have waited`)
  expect(broken).toEqual([])
  expect(refused).toBeGreaterThan(20)
}, 900_000)

/** With hardly enough for one call of each: they wait for what comes back. */
const POT_FAMILY: Scenario = {
  ...FAMILY,
  team: {
    ...FAMILY.team,
    budget: { timeMs: 3_600_000 },
    budgets: { shared: { usd: '0.019' } },
    agents: FAMILY.team.agents.map((agent) => ({ ...agent, budgets: ['shared'] })),
  },
}

test('a family that shares a pot survives a crash at every single call', async () => {
  const broken: string[] = []
  let points = 0
  for (; ; points++) {
    const plans = [true, false].map((applied) => new Watch({ at: points, applied }))
    const outcomes = [await play(POT_FAMILY, plans[0]!), await play(POT_FAMILY, plans[1]!)]
    if (!plans.every((p) => p.struck)) break
    for (const [i, { wrong }] of outcomes.entries()) if (wrong) broken.push(`call ${points}, ${i}: ${wrong}`)
  }
  console.log(`crash points: ${points} calls`)
  expect(broken).toEqual([])
  expect(points).toBeGreaterThan(100)
}, 300_000)
