/** What one seed is about: a team of random shape, what it is asked, what its user does, and the weather. */
import { type Amount, UNLIMITED } from '../../src/domain/money.ts'
import type { OuterLimit } from '../../src/domain/outer-limit.ts'
import type { AgentDefinition, ModelDefinition, PricePerMillion, TeamDefinition } from '../../src/domain/team.ts'
import type { Habits } from './behaviour.ts'
import { type Random, randomOf } from './random.ts'
import { FAIR, type WeatherOptions } from './weather.ts'

export interface Scenario {
  readonly seed: number
  readonly size: Size
  readonly team: TeamDefinition
  readonly input: string | undefined
  readonly tasks: readonly { agent: string; task: string }[] | undefined
  readonly maxConcurrency: number
  /** the most that the run may cost; undefined: as much as it likes */
  readonly budget: Amount | undefined
  /** ms after the start at which that is raised */
  readonly raiseAt: readonly number[]
  /** limits over time that stand outside of the run */
  readonly outer: readonly OuterLimit[]
  /** other runs that hold a part of them for a while; times in ms after the start */
  readonly strangers: readonly { readonly at: number; readonly forMs: number; readonly part: bigint }[]
  readonly weather: WeatherOptions
  readonly workerTimeoutMs: number
  readonly leaseMs: number
  readonly eventAgeMs: number
  /** ms after the start at which the run is cancelled */
  readonly cancelAt: readonly number[]
  /** follow-up inputs: each waits for an end, or is sent at once and refused */
  readonly followUps: readonly { readonly twins: number; readonly afterMs: number }[]
  /** retries of what was not completed, in the same way, after the last follow-up input */
  readonly retries: readonly { readonly twins: number; readonly afterMs: number }[]
  /** ms after the start at which a sweep runs out of turn */
  readonly sweepAt: readonly number[]
}

type Size = 'tiny' | 'small' | 'medium' | 'large' | 'list' | 'long list'

const SIZES: { readonly [size in Size]: number } = {
  tiny: 3,
  small: 9,
  medium: 62,
  large: 12,
  list: 8,
  'long list': 2,
}

export function scenarioOf(seed: number, random: Random): Scenario {
  const size = random.weighted(SIZES)
  const list = size === 'list' || size === 'long list'
  const habits = habitsOf(random, size)
  const budget = random.chance(0.35) ? budgetOf(random, size) : undefined
  const outer = random.chance(0.25) ? outerOf(random, size) : []
  const priced = [budget, ...outer.map((l) => l.limit)].some((l) => l !== undefined && l.usd < UNLIMITED)
  const team = {
    ...teamOf(random, habits, size, priced),
    ...permissionsOf(randomOf('permissions', seed)),
  }
  const weather = weatherOf(random, size)
  const lead = team.agents.filter((a) => a.name !== 'root')
  const count = size === 'list' ? random.between(1, 30) : random.between(61, 250)
  return {
    seed,
    size,
    team,
    input: list ? undefined : `input of seed ${seed}`,
    tasks: list
      ? Array.from({ length: count }, (_, i) => ({ agent: random.pick(lead).name, task: `task ${i}` }))
      : undefined,
    maxConcurrency: random.pick([1, 2, 3, 5, 8, 20, 50]),
    budget,
    raiseAt: budget && random.chance(0.4) ? Array.from({ length: random.between(1, 3) }, () => whenever(random)) : [],
    outer,
    strangers:
      // who waits for them looks again after some minutes, which takes a sweep
      outer.length > 0 && weather.mode !== 'nothing lost' && random.chance(0.6)
        ? Array.from({ length: random.between(1, 3) }, () => ({
            at: whenever(random),
            forMs: random.pick([5, 20_000, 400_000]),
            part: BigInt(random.pick([1, 2, 8])),
          }))
        : [],
    weather,
    workerTimeoutMs:
      weather.mode === 'nothing lost' ? 900_000 : random.pick([900_000, 900_000, 900_000, 300_000, 120_000, 40_000]),
    leaseMs: 90_000,
    eventAgeMs: 90_000,
    cancelAt: random.chance(0.3) ? Array.from({ length: random.between(1, 2) }, () => whenever(random)) : [],
    followUps: list || !random.chance(0.3) ? [] : Array.from({ length: random.between(1, 2) }, () => followUp(random)),
    sweepAt: weather.mode === 'storm' ? Array.from({ length: random.below(4) }, () => whenever(random)) : [],
    retries: random.chance(0.4) ? Array.from({ length: random.between(1, 3) }, () => followUp(random)) : [],
  }
}

/** Some calls are asked about in one team of seven. */
function permissionsOf(random: Random): Pick<TeamDefinition, 'permissions'> {
  if (!random.chance(0.15)) return {}
  const ask = random.pick([['transfer_task'], ['run_background_agent', 'stop_background_agent'], ['*:task=*3'], ['*']])
  return { permissions: { ask, ...(random.chance(0.2) && { deny: ['think', '*:task=*5'] }) } }
}

/** From hardly enough for one call to enough for all, in money, tokens or both. */
function budgetOf(random: Random, size: Size): Amount {
  const calls = random.pick([0.5, 1, 3, 10, 40, 200]) * (size === 'tiny' || size === 'small' ? 1 : 4)
  const [usd, tok] = [BigInt(Math.ceil(calls * 20_000_003)) * 1_000n, BigInt(Math.ceil(calls * 4_011))]
  const kind = random.pick(['usd', 'tok', 'both'])
  return { usd: kind === 'tok' ? UNLIMITED : usd, tok: kind === 'usd' ? UNLIMITED : tok }
}

/** One or two of them, by day and by month, as tight as budgets are. */
const outerOf = (random: Random, size: Size): OuterLimit[] =>
  random.pick([['tenant'], ['team crew'], ['tenant', 'team crew']]).map((name) => ({
    name,
    per: random.pick(['day', 'month'] as const),
    limit: budgetOf(random, size),
  }))

/** Some time in the life of a run: early more often than late. */
const whenever = (random: Random): number =>
  Math.floor(random.next() ** 2 * random.pick([300, 20_000, 60_000, 300_000]))

const followUp = (random: Random) => ({
  twins: random.chance(0.4) ? 2 : 1,
  afterMs: random.pick([0, 5, 1_000, 90_000]),
})

function weatherOf(random: Random, size: Size): WeatherOptions {
  const mode = random.weighted({ fair: 4, 'nothing lost': 16, storm: 80 })
  const latency = random.weighted({ none: 40, short: 40, mixed: 20 } as const)
  if (mode === 'fair') return { ...FAIR, latency }
  const big = size === 'large' || size === 'long list'
  return {
    mode,
    latency,
    most: random.pick([1, 2, 4, 7, 12, 20, 30]) * (big ? 3 : 1),
    rate: random.pick([0.01, 0.03, 0.06]) / (big ? 3 : 1),
    stale: random.pick([0, 0.2, 0.6]),
    skew: random.pick([0, 0, 150, 800]),
    modelTrouble: random.pick([0.01, 0.06, 0.2]),
  }
}

function habitsOf(random: Random, size: Size): Habits {
  switch (size) {
    case 'tiny':
      return { turns: random.between(1, 5), fan: [0, 1], smallFan: [1, 1], nesting: 0.3 }
    case 'small':
      return { turns: random.between(2, 5), fan: [1, 4], smallFan: [1, 2], nesting: 0.4 }
    case 'medium':
      return { turns: random.between(3, 6), fan: [3, 10], smallFan: [1, 3], nesting: 0.5 }
    case 'large':
      return { turns: random.between(2, 4), fan: [35, 70], smallFan: [1, 2], nesting: 0.3 }
    case 'list':
      return { turns: random.between(1, 4), fan: [1, 3], smallFan: [1, 2], nesting: 0.3 }
    case 'long list':
      return { turns: 2, fan: [1, 1], smallFan: [1, 1], nesting: 0.05 }
  }
}

/** Odd prices, so that every token shows in a sum. */
const price = (random: Random): string => `${random.below(20)}.${String(1 + random.below(999_999)).padStart(6, '0')}`

function priceOf(random: Random, whole: boolean): PricePerMillion | undefined {
  if (!whole && random.chance(0.15)) return undefined
  return {
    input: price(random),
    output: price(random),
    // where a kind of token has no price, a call that uses it has none either
    ...((whole || random.chance(0.85)) && {
      cacheRead: price(random),
      cacheWrite: price(random),
      cacheWrite1h: price(random),
    }),
  }
}

function modelOf(random: Random, habits: Habits, priced: boolean): ModelDefinition {
  const cost = priceOf(random, priced)
  return {
    provider: 'simulated',
    api: 'scripted',
    model: `m${random.below(1000)}`,
    options: { ...habits },
    ...(random.chance(0.5) && { maxTokens: random.between(30, 2_000) }),
    ...(random.chance(0.3) && { minTokens: random.between(10, 2_000) }),
    ...(cost && { cost }),
  }
}

/** Agents in levels, root first: each leads some of the level below. */
export function teamOf(random: Random, habits: Habits, size: Size, priced = false): TeamDefinition {
  const levels = size === 'tiny' ? random.between(1, 2) : size === 'long list' ? 2 : random.between(2, 4)
  const names = Array.from({ length: levels }, (_, level) =>
    level === 0 ? ['root'] : Array.from({ length: random.between(1, 3) }, (_, i) => `l${level}${'abc'[i]}`),
  )
  const models = Object.fromEntries(
    Array.from({ length: random.between(1, 3) }, (_, i) => [`model${i}`, modelOf(random, habits, priced)]),
  )
  const agents = names.flatMap((level, depth) =>
    level.map((name): AgentDefinition => {
      const below = names[depth + 1] ?? []
      const subAgents = depth === 0 || random.chance(0.7) ? below.filter(() => random.chance(0.8)) : []
      return {
        name,
        model: random.pick(Object.keys(models)),
        description: `agent ${name}`,
        instruction: `${name} of level ${depth}`,
        subAgents: subAgents.length === 0 && depth === 0 ? below : subAgents,
        toolsets: [
          ...(random.chance(0.6) ? (['think'] as const) : []),
          ...(random.chance(0.7) ? (['background_agents'] as const) : []),
        ],
        maxIterations: random.chance(0.1) ? random.between(1, 3) : null,
        ...(random.chance(0.5) && { atEnd: random.pick(['stop', 'wait'] as const) }),
      }
    }),
  )
  if (levels === 1) agents.push({ ...agents[0]!, name: 'other', subAgents: [], instruction: 'other' })
  return { shape: 1, name: 'crew', agents, models }
}
