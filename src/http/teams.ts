import { type ModelDefinition, priceOf, type TeamDefinition } from '../domain/team.ts'
import { freezePrices } from '../engine/freeze-prices.ts'
import type { ApiContext, Route } from './api.ts'
import { checkQuery, noQuery } from './schemas.ts'
import type { Answer, model, team } from './shapes.ts'
import { perMillion, priceSource } from './views/price.ts'

export const teamRoutes = (ctx: ApiContext): Route[] => [
  {
    path: '/v1/teams',
    methods: {
      GET: async (c) => {
        checkQuery(noQuery, c.req.url)
        const teams = await ctx.teams.list()
        return c.json({ teams: teams.map(({ name, description }) => ({ name, description })) })
      },
    },
  },
  {
    path: '/v1/teams/:name',
    methods: {
      GET: async (c) => {
        checkQuery(noQuery, c.req.url)
        const team = await freezePrices(ctx.prices, await ctx.teams.get(c.req.param('name') ?? ''))
        return c.json(teamView(team, ctx.clock.now()))
      },
    },
  },
]

/** A team as the API shows it: who is in it and what a call costs. No addresses, no names of secrets, no scripts. */
export type TeamView = Answer<typeof team>
export type ModelView = Answer<typeof model>

function teamView(team: TeamDefinition, now: number): TeamView {
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
    models: Object.fromEntries(Object.entries(team.models).map(([name, m]) => [name, modelView(m, now)])),
  }
}

function modelView(m: ModelDefinition, now: number): ModelView {
  const price = priceOf(m, { at: now, inputTokens: 0 })
  return { provider: m.provider, model: m.model, cost: price && perMillion(price), priceSource: priceSource(m) }
}
