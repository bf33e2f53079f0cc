import { type InputIssue, SubledgerError } from '../domain/errors.ts'
import { type Amount, min, parseUsd, UNLIMITED } from '../domain/money.ts'
import { amountFrom } from '../domain/pot.ts'
import { type AgentDefinition, findAgent, isPriced, type TeamDefinition } from '../domain/team.ts'

/** What may be said of a limit: USD as a decimal text, tokens of input and output together. A part left out: no limit. */
export interface Budget {
  readonly usd?: string | undefined
  readonly tokens?: number | undefined
}

/** Beyond this no sum of money or tokens can be meant. */
const MOST_USD = 10n ** 20n

/** @throws SubledgerError bad_request, naming what is wrong in it */
export function limitOf(budget: Budget | undefined): Amount {
  const issues: InputIssue[] = []
  const { usd, tokens } = budget ?? {}
  if (budget && usd === undefined && tokens === undefined) {
    issues.push({ path: '/budget', message: 'give "usd" (such as "2.50"), "tokens" (a number) or both' })
  }
  const limit = { usd: usd === undefined ? UNLIMITED : usdOf(usd), tok: UNLIMITED }
  if (limit.usd < 0n) {
    const message = 'must be an amount in USD of at least 0 with at most twelve decimals, such as "2.50"'
    issues.push({ path: '/budget/usd', message })
  }
  if (tokens !== undefined) {
    if (!Number.isSafeInteger(tokens) || tokens < 0) {
      issues.push({ path: '/budget/tokens', message: 'must be a whole number of at least 0' })
    } else limit.tok = BigInt(tokens)
  }
  if (issues.length > 0)
    throw new SubledgerError('bad_request', issues.map((i) => `${i.path}: ${i.message}`).join('; '), { issues })
  return limit
}

/**
 * The limit of a run of this team: what is asked for, and no more than the team's own ceiling.
 * @throws SubledgerError bad_request
 */
export const runLimit = (asked: Budget | undefined, team: TeamDefinition): Amount =>
  min(limitOf(asked), amountFrom(team.budget))

/** What a run is limited by that asks for nothing, and whose team's file does not limit it either. */
export const defaultBudget = (
  asked: Budget | undefined,
  team: TeamDefinition,
  settings: { readonly defaultBudgetUsd?: string },
): Budget | undefined =>
  asked === undefined && team.budget === undefined && settings.defaultBudgetUsd !== undefined
    ? { usd: settings.defaultBudgetUsd }
    : undefined

function usdOf(text: string): bigint {
  try {
    const usd = parseUsd(text)
    return usd > MOST_USD ? -1n : usd
  } catch {
    return -1n
  }
}

/** All agents that may come to work in a run that begins with these. */
export function reachable(team: TeamDefinition, first: readonly string[]): string[] {
  const found = new Set(first)
  for (const name of found) for (const sub of findAgent(team, name)?.subAgents ?? []) found.add(sub)
  return [...found]
}

/** Whether anything of a run is limited in money: the run itself, or a pot of its team. */
export const limitsMoney = (limit: Amount, team: TeamDefinition): boolean =>
  limit.usd < UNLIMITED || Object.values(team.budgets ?? {}).some((pot) => pot.usd !== undefined)

/** What may limit the money of a run: what the request asks, that and its team's ceiling, what limits outside have granted. */
export interface MoneyLimits {
  readonly asked: Budget | undefined
  /** nobody asked for it: it is the deployment's default */
  readonly byDefault: boolean
  readonly limit: Amount
  readonly granted: Amount | null
}

/** What limits an agent in money, as an error names it; undefined: nothing. */
function moneyLimit(team: TeamDefinition, agent: AgentDefinition, { asked, byDefault, limit, granted }: MoneyLimits) {
  if (byDefault) return { path: '/budget', said: ' under the default budget of this deployment' }
  if (asked?.usd !== undefined) return { path: '/budget/usd', said: '' }
  if (limit.usd < UNLIMITED) return { path: '/team', said: ' under the team\'s "budget.max_cost"' }
  if (granted && granted.usd < UNLIMITED) return { path: '/team', said: ' under a limit over time' }
  const pot = agent.budgets?.find((name) => team.budgets?.[name]?.usd !== undefined)
  return pot === undefined ? undefined : { path: '/team', said: ` under "budgets.${pot}.max_cost"` }
}

/**
 * Under a limit in money each agent that may come to work must have a price: nothing is held for a call without one.
 * @throws SubledgerError unpriced_model
 */
export function checkPriced(team: TeamDefinition, first: readonly string[], limits: MoneyLimits): void {
  const { asked, byDefault } = limits
  const issues = reachable(team, first).flatMap((name): InputIssue[] => {
    const agent = findAgent(team, name)
    const model = agent && team.models[agent.model]
    if (!model || isPriced(model)) return []
    const by = moneyLimit(team, agent, limits)
    if (!by) return []
    const which = `uses "${agent.model}" (${model.provider}/${model.model}), whose price is not known`
    return [{ path: by.path, message: `the agent "${name}"${by.said} ${which}` }]
  })
  if (issues.length === 0) return
  const what = issues.map((i) => i.message).join('; ')
  const instead = byDefault
    ? 'the run by a budget of "tokens"'
    : asked?.usd === undefined
      ? '"max_tokens" in place of "max_cost"'
      : '"tokens" in place of "usd"'
  const help = `Give the model a "cost" in the team file (USD per million tokens), or limit ${instead}.`
  throw new SubledgerError('unpriced_model', `A budget in USD needs a price for every model: ${what}. ${help}`, {
    issues: issues.slice(0, 20),
  })
}
