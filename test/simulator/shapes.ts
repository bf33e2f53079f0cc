/** Small runs of fixed shape in fair weather, for schedules that are tried one and all. */
import { UNLIMITED } from '../../src/domain/money.ts'
import type { AgentDefinition, TeamDefinition } from '../../src/domain/team.ts'
import type { Script } from './behaviour.ts'
import type { Scenario } from './scenario.ts'
import { FAIR } from './weather.ts'

const call = (name: string, args: object = {}) => ({ name, arguments: JSON.stringify(args) })
const think = call('think', { thought: 'so' })
const transfer = (agent: string) => call('transfer_task', { agent, task: `a task for ${agent}` })
const background = (agent: string) => call('run_background_agent', { agent, task: `a task for ${agent}` })

function shape(agents: { [name: string]: readonly string[] }, script: Script, more: Partial<Scenario> = {}): Scenario {
  const team: TeamDefinition = {
    shape: 1,
    name: 'crew',
    agents: Object.entries(agents).map(
      ([name, subAgents]): AgentDefinition => ({
        name,
        model: 'm',
        description: name,
        instruction: `${name} of a fixed team`,
        subAgents,
        toolsets: ['think', 'background_agents'],
        maxIterations: null,
      }),
    ),
    models: {
      m: {
        provider: 'simulated',
        api: 'scripted',
        model: 'm',
        maxTokens: 500,
        options: { script, turns: 1, fan: [0, 0], smallFan: [0, 0], nesting: 0 },
        cost: {
          input: '1.000003',
          output: '7.000001',
          cacheRead: '0.100009',
          cacheWrite: '1.3',
          cacheWrite1h: '2.000007',
        },
      },
    },
  }
  return {
    seed: 1,
    size: 'small',
    team,
    input: 'go',
    tasks: undefined,
    maxConcurrency: 50,
    budget: undefined,
    outer: [],
    strangers: [],
    raiseAt: [],
    weather: FAIR,
    workerTimeoutMs: 900_000,
    leaseMs: 90_000,
    eventAgeMs: 90_000,
    cancelAt: [],
    followUps: [],
    retries: [],
    sweepAt: [],
    ...more,
  }
}

/** A root, two workers, one of which leads a nested one, and a join. */
export const FAMILY = shape(
  { root: ['lead', 'leaf'], lead: ['leaf'], leaf: [] },
  {
    root: [[background('lead'), background('leaf')], [call('wait_background_agents')]],
    lead: [[transfer('leaf')]],
    leaf: [[think]],
  },
)

/** The same with hardly more money than one call of each may cost: they wait for each other's change. */
export const POOR_FAMILY: Scenario = { ...FAMILY, budget: { usd: 26_000_000_000n, tok: UNLIMITED }, maxConcurrency: 3 }

/** A root and two workers under two limits over time that stand outside of the run. */
export const GRANTED_FAMILY: Scenario = {
  ...shape(
    { root: ['leaf'], leaf: [] },
    { root: [[background('leaf'), background('leaf')], [call('wait_background_agents')]] },
  ),
  outer: [
    { name: 'tenant', per: 'day', limit: { usd: 30_000_000_000n, tok: UNLIMITED } },
    { name: 'team crew', per: 'month', limit: { usd: 60_000_000_000n, tok: 10n ** 9n } },
  ],
}

/** Shapes of two drivers, and which session they fight for: a path of ordinals from the root. */
export const DUELS: readonly {
  readonly name: string
  readonly scenario: Scenario
  readonly path: readonly number[]
}[] = [
  { name: 'a leaf that thinks', scenario: shape({ root: [] }, { root: [[think], [think, think]] }), path: [] },
  {
    name: 'a root that transfers',
    scenario: shape(
      { root: ['leaf'], leaf: [] },
      { root: [[transfer('leaf'), think, transfer('leaf')], [transfer('leaf')]] },
    ),
    path: [],
  },
  {
    name: 'a root with background agents that it waits for and stops',
    scenario: shape(
      { root: ['leaf'], leaf: [] },
      {
        root: [
          [background('leaf'), background('leaf')],
          [call('stop_background_agent', { task_id: 'task-1' })],
          [call('wait_background_agents', { ids: ['task-0'] })],
          [background('leaf')],
        ],
        leaf: [[think], [think]],
      },
    ),
    path: [],
  },
  {
    name: 'a list of tasks',
    scenario: shape(
      { root: ['leaf'], leaf: [] },
      { leaf: [[think]] },
      { input: undefined, tasks: [1, 2, 3].map((i) => ({ agent: 'leaf', task: `task ${i}` })), maxConcurrency: 2 },
    ),
    path: [],
  },
  { name: 'a worker that leads another', scenario: FAMILY, path: [0] },
  {
    name: 'a root that goes on beside its background agent',
    scenario: shape({ root: ['leaf'], leaf: [] }, { root: [[background('leaf')], [think], [think], [think], [think]] }),
    path: [],
  },
  {
    // its first driver is held while it borrows, the second finds the stop and settles
    name: 'a worker that borrows, and whose run is cancelled',
    scenario: shape(
      { root: ['leaf'], leaf: [] },
      {
        root: [[background('leaf'), background('leaf')], [call('wait_background_agents')]],
        leaf: [[think], [think], [think], [think], [think], [think]],
      },
      { budget: { usd: 35_000_000_000n, tok: 10n ** 9n }, cancelAt: [60_000] },
    ),
    path: [0],
  },
]
