import { formatUsd, UNLIMITED } from '../../domain/money.ts'
import { isPriced, priceOf } from '../../domain/team.ts'
import { modelOf } from '../../engine/estimate.ts'
import { type AgentEstimate, type RunEstimate, unpricedOf } from '../../engine/estimate-run.ts'
import type { estimate } from '../estimate-shape.ts'
import type { Answer } from '../shapes.ts'
import { time } from './figures.ts'
import { priceSource, priceView } from './price.ts'

/** What a run may cost, as the API shows it. */
export type EstimateView = Answer<typeof estimate>

/** @param asked the first agent that was asked for */
export function estimateView(e: RunEstimate, asked: string | undefined): EstimateView {
  const agents = e.agents.map((a) => a.agent)
  return {
    team: e.team.name,
    agent: e.tasks === null ? (asked ?? e.team.agents[0]!.name) : null,
    tasks: e.tasks,
    at: time(e.at),
    least: { usd: usd(e.least.usd), tokens: Number(e.least.tok), calls: e.least.calls, how: e.least.how },
    most: { usd: usd(e.most.usd), tokens: e.most.tok === null ? null : Number(e.most.tok), how: e.most.how },
    agents: e.agents.map((a) => agentView(e, a)),
    unpriced: unpricedOf(e.team, agents),
    budget: budgetView(e),
  }
}

const usd = (amount: bigint | null): string | null => (amount === null ? null : formatUsd(amount))

function agentView(
  e: RunEstimate,
  { agent, first, answers, calls, cap }: AgentEstimate,
): EstimateView['agents'][number] {
  const model = modelOf(e.team, agent)
  const price = priceOf(model, { at: e.at, inputTokens: 0 })
  return {
    agent: agent.name,
    model: `${model.provider}/${model.model}`,
    price: price && priceView(price, priceSource(model)),
    outputCap: cap,
    answers,
    calls,
    firstCalls: first && {
      count: first.count,
      leastTokens: Number(first.leastTokens),
      holdUsd: isPriced(model) ? formatUsd(first.largest.hold.usd) : null,
      holdTokens: Number(first.largest.hold.tok),
    },
  }
}

function budgetView({ limit, firstCall, agents, team }: RunEstimate): EstimateView['budget'] {
  if (!firstCall) return null
  const priced = agents.filter((a) => a.first).every((a) => isPriced(modelOf(team, a.agent)))
  return {
    usd: limit.usd >= UNLIMITED ? null : formatUsd(limit.usd),
    tokens: limit.tok >= UNLIMITED ? null : Number(limit.tok),
    firstCall: firstCall.covered,
    outputCap: firstCall.cap,
    holdUsd: priced ? formatUsd(firstCall.hold.usd) : null,
    holdTokens: Number(firstCall.hold.tok),
  }
}
