import type { ModelDefinition, PricePerMillion, TeamDefinition } from '../domain/team.ts'
import type { ApiContext, Route } from './api.ts'
import { checkQuery, noQuery } from './schemas.ts'

export const teamRoutes = (ctx: ApiContext): Route[] => [
  {
    path: '/v1/teams',
    methods: {
      GET: async (c) => {
        checkQuery(noQuery, new URL(c.req.url).searchParams)
        const teams = await ctx.teams.list()
        return c.json({ teams: teams.map(({ name, description }) => ({ name, description })) })
      },
    },
  },
  {
    path: '/v1/teams/:name',
    methods: {
      GET: async (c) => {
        checkQuery(noQuery, new URL(c.req.url).searchParams)
        return c.json(teamView(await ctx.teams.get(c.req.param('name') ?? '')))
      },
    },
  },
]

/** A team as the API shows it: who is in it and what a call costs. No addresses, no names of secrets, no scripts. */
export interface TeamView {
  readonly name: string
  readonly description: string
  /** the first one is the run's first agent unless another is asked for */
  readonly agents: readonly {
    readonly name: string
    readonly description: string
    readonly model: string
    readonly subAgents: readonly string[]
    readonly toolsets: readonly string[]
    readonly maxIterations: number | null
  }[]
  readonly models: { readonly [name: string]: ModelView }
}

export interface ModelView {
  readonly provider: string
  readonly model: string
  /** USD per million tokens; null: no price is known */
  readonly cost: PricePerMillion | null
}

function teamView(team: TeamDefinition): TeamView {
  return {
    name: team.name,
    description: team.description ?? '',
    agents: team.agents.map((a) => ({
      name: a.name,
      description: a.description,
      model: a.model,
      subAgents: a.subAgents,
      toolsets: a.toolsets,
      maxIterations: a.maxIterations,
    })),
    models: Object.fromEntries(Object.entries(team.models).map(([name, m]) => [name, modelView(m)])),
  }
}

const modelView = (m: ModelDefinition): ModelView => ({ provider: m.provider, model: m.model, cost: m.cost ?? null })
