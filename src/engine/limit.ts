import { type InputIssue, SubledgerError } from '../domain/errors.ts'
import { type Amount, parseUsd, UNLIMITED } from '../domain/money.ts'
import { findAgent, isPriced, type TeamDefinition } from '../domain/team.ts'

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

function usdOf(text: string): bigint {
  try {
    const usd = parseUsd(text)
    return usd > MOST_USD ? -1n : usd
  } catch {
    return -1n
  }
}

/** All agents that may come to work in a run that begins with these. */
function reachable(team: TeamDefinition, first: readonly string[]): string[] {
  const found = new Set(first)
  for (const name of found) for (const sub of findAgent(team, name)?.subAgents ?? []) found.add(sub)
  return [...found]
}

/**
 * Under a limit in money each agent that may come to work must have a price: nothing is held for a call without one.
 * @param whose what is limited: a budget of the run, or something outside of it
 * @throws SubledgerError unpriced_model
 */
export function checkPriced(team: TeamDefinition, first: readonly string[], whose: 'budget' | 'limit'): void {
  const issues = reachable(team, first).flatMap((name): InputIssue[] => {
    const agent = findAgent(team, name)
    const model = agent && team.models[agent.model]
    if (!model || isPriced(model)) return []
    const what = `the agent "${name}" uses "${agent.model}" (${model.provider}/${model.model}), whose price is not known`
    return [{ path: whose === 'budget' ? '/budget/usd' : '/team', message: what }]
  })
  if (issues.length === 0) return
  const what = issues.map((i) => i.message).join('; ')
  const help = 'Give the model a "cost" in the team file (USD per million tokens), or limit "tokens" in place of "usd".'
  throw new SubledgerError('unpriced_model', `A ${whose} in USD needs a price for every model: ${what}. ${help}`, {
    issues: issues.slice(0, 20),
  })
}
