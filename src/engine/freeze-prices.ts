import { isPriced, type TeamDefinition } from '../domain/team.ts'
import type { Prices } from '../ports.ts'

/**
 * The team with what is known today of its models' prices, so that its run keeps to them: no later price list changes
 * what a call costs, and workers need no list. A `cost` of the team file needs none either.
 */
export async function freezePrices(prices: Prices, team: TeamDefinition): Promise<TeamDefinition> {
  const models = Object.entries(team.models).map(async ([name, model]) => {
    const known = model.cost ? undefined : await prices.of(model)
    return [name, known ? { ...model, prices: known } : model] as const
  })
  return { ...team, models: Object.fromEntries(await Promise.all(models)) }
}

/** Models of the team's agents whose calls will have no price, as keys of `models`. */
export const unpricedModels = (team: TeamDefinition): string[] =>
  [...new Set(team.agents.map((a) => a.model))].filter((name) => {
    const model = team.models[name]
    return model !== undefined && !isPriced(model)
  })
