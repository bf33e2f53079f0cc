import { type Amount, parseUsd, UNLIMITED } from './money.ts'
import type { AgentDefinition, BudgetDefinition, TeamDefinition } from './team.ts'

/** One limit of a team file that sessions of a run share, and its item in the run's partition. */
export interface Pot {
  /** names the item. Names of a file begin with a letter or digit, so those of times cannot be among them */
  readonly item: string
  /** where it stands in the file: `budgets.research` */
  readonly path: string
  /** `time`: working time, and what `tok` counts are milliseconds of it */
  readonly kind: 'money' | 'time'
  readonly limit: Amount
}

/** What a budget of a team file allows in money and tokens. */
export const amountFrom = (budget: BudgetDefinition | undefined): Amount => ({
  usd: budget?.usd === undefined ? UNLIMITED : parseUsd(budget.usd),
  tok: budget?.tokens === undefined ? UNLIMITED : BigInt(budget.tokens),
})

export const msAmount = (ms: number): Amount => ({ usd: 0n, tok: BigInt(ms) })

/**
 * The pots that an agent's calls draw from: those that it names, and the run's own time. (The run's own money is no pot: it
 * flows down the tree.)
 */
export function potsOf(team: TeamDefinition, agent: AgentDefinition): Pot[] {
  const names = Object.keys(team.budgets ?? {})
  const pots: Pot[] = []
  const addTime = (path: string, item: string, { timeMs }: BudgetDefinition) => {
    if (timeMs !== undefined) pots.push({ item, path, kind: 'time', limit: { usd: UNLIMITED, tok: BigInt(timeMs) } })
  }
  if (team.budget) addTime('budget', '_time', team.budget)
  for (const name of agent.budgets ?? []) {
    const budget = team.budgets?.[name]
    if (!budget) throw new Error(`team ${team.name}: agent ${agent.name} names the budget ${name}, which is not there`)
    if (budget.usd !== undefined || budget.tokens !== undefined)
      pots.push({ item: name, path: `budgets.${name}`, kind: 'money', limit: amountFrom(budget) })
    addTime(`budgets.${name}`, `_time-${names.indexOf(name)}`, budget)
  }
  return pots
}

/** Code of the error with which a session ends whose team file lets it make no more calls. */
export const TEAM_BUDGET = 'team_budget'
