import {
  isPriced,
  type ModelPrices,
  type PricePerMillion,
  type PricesFrom,
  perToken,
  type TeamDefinition,
} from '../domain/team.ts'
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

/**
 * The same team with a rate for every kind of token: under a budget in USD a kind without one is charged like the dearest
 * kind of input, which is what its hold counts on. Else such a call would have no cost, and the budget would take it as free.
 */
export function withoutGaps(team: TeamDefinition): TeamDefinition {
  const models = Object.entries(team.models).map(([name, m]) => [
    name,
    {
      ...m,
      ...(m.cost && { cost: completed(m.cost) }),
      ...(m.prices && { prices: completedPrices(m.prices) }),
    },
  ])
  return { ...team, models: Object.fromEntries(models) }
}

function completed<P extends PricePerMillion>(price: P): P {
  const { input, cacheRead, cacheWrite, cacheWrite1h } = price
  const known = [input, cacheRead, cacheWrite, cacheWrite1h].filter((rate) => rate !== undefined)
  const dearest = known.reduce((a, b) => (perToken(b) > perToken(a) ? b : a))
  return { cacheRead: dearest, cacheWrite: dearest, cacheWrite1h: dearest, ...price }
}

function completedPrices(prices: ModelPrices): ModelPrices {
  const schedule = (periods: readonly PricesFrom[]) => periods.map((p) => ({ ...p, tiers: p.tiers.map(completed) }))
  return {
    ...prices,
    schedule: schedule(prices.schedule),
    ...(prices.others && {
      others: Object.fromEntries(Object.entries(prices.others).map(([id, periods]) => [id, schedule(periods)])),
    }),
  }
}
