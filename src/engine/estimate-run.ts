import { inputFloor, isBlocked } from '../domain/budget.ts'
import { type Amount, covers, formatUsd, UNLIMITED } from '../domain/money.ts'
import { outputCap } from '../domain/output-caps.ts'
import type { RunInput } from '../domain/run.ts'
import {
  type AgentDefinition,
  cheapestOf,
  dearestLaterOf,
  findAgent,
  isPriced,
  type TeamDefinition,
} from '../domain/team.ts'
import { byteLength } from '../domain/text.ts'
import type { Message } from '../domain/turn.ts'
import type { EngineContext } from './context.ts'
import { type CallBound, estimateCall, modelOf, shrinkCall } from './estimate.ts'
import { promptOf } from './intent.ts'
import { reachable } from './limit.ts'
import { fanOut, levelsOf, type Most, mostOfSessions, NOTHING, ownMost, sum, times } from './most-of-run.ts'
import { planStart, type StartRun } from './start-run.ts'
import { taskMessage } from './task-of.ts'
import { toolsFor } from './tools/specs.ts'

/** What a run may cost, before it starts. Money in pico-USD; each figure says how it came about. */
export interface RunEstimate {
  /** epoch ms: its prices are those of this time */
  readonly at: number
  /** as the run would have it, with its prices */
  readonly team: TeamDefinition
  /** number of tasks; null: it starts from an input */
  readonly tasks: number | null
  readonly limit: Amount
  /** what it costs where every call that must be made is answered with one token, and none is made beyond */
  readonly least: { usd: bigint | null; tok: bigint; calls: number; how: readonly string[] }
  /** null: no bound that anybody could count with */
  readonly most: { usd: bigint | null; tok: bigint | null; how: readonly string[] }
  readonly agents: readonly AgentEstimate[]
  /** what the first call needs of the budget; null: there is no budget */
  readonly firstCall: FirstCall | null
}

/** An agent that may come to work. */
export interface AgentEstimate {
  readonly agent: AgentDefinition
  /** of the first calls of those sessions that the run starts with; null: it starts with none of this agent */
  readonly first: { count: number; leastTokens: bigint; largest: CallBound } | null
  /** answers of one of its sessions, and calls with those that may fail, at most */
  readonly answers: number
  readonly calls: number
  readonly cap: number
}

export interface FirstCall {
  /** `shrunk`: with a smaller output cap than the model has */
  readonly covered: 'whole' | 'shrunk' | 'no'
  /** output cap with which it can be made; null: it cannot */
  readonly cap: number | null
  /** what is held for it at its full cap */
  readonly hold: Amount
}

/** A first call that must be made. */
interface Start {
  readonly agent: AgentDefinition
  readonly bytes: number
  /** lower bound of its input in tokens */
  readonly floor: number
  readonly bound: CallBound
}

/**
 * The least and the most that a run may cost. Nothing is written and no model is called.
 * @throws SubledgerError what starting it would throw
 */
export async function estimateRun(
  ctx: Pick<EngineContext, 'teams' | 'settings' | 'prices' | 'clock'>,
  request: StartRun,
): Promise<RunEstimate> {
  const { team, limit, input } = await planStart(ctx, request)
  const at = ctx.clock.now()
  const starts = startsOf(team, request, input, at)
  const firstCall = limit.usd >= UNLIMITED && limit.tok >= UNLIMITED ? null : coverOf(team, starts, limit, at)
  const agents = reachable(team, [...new Set(starts.map((s) => s.agent.name))]).map((name) => findAgent(team, name)!)
  return {
    at,
    team,
    tasks: 'tasks' in input ? input.tasks.length : null,
    limit,
    least: leastOf(team, starts, firstCall, at),
    most:
      firstCall?.covered === 'no'
        ? { usd: 0n, tok: 0n, how: [NO_CALL] }
        : mostOf(team, starts, agents, { limit, at, depth: 'tasks' in input ? 1 : 0 }),
    agents: agents.map((agent) => agentEstimate(team, agent, starts, at)),
    firstCall,
  }
}

const NO_CALL = 'The budget does not cover a first call, so no call is made.'

function startsOf(team: TeamDefinition, request: StartRun, input: RunInput, at: number): Start[] {
  const tasks = 'tasks' in input ? input.tasks : [{ agent: request.agent ?? team.agents[0]!.name, task: input.input }]
  return tasks.map((task) => {
    const agent = findAgent(team, task.agent)!
    const content = taskMessage(task)
    const messages: Message[] = [{ role: 'user', content }]
    const prompt = promptOf({ team, agent }, messages)
    const texts = [prompt.system, content, ...prompt.tools.flatMap((t) => [t.name, t.description])]
    const bound = estimateCall(modelOf(team, agent), prompt, at)
    return { agent, bytes: byteLength(JSON.stringify(content)), floor: inputFloor(texts), bound }
  })
}

/** Whether the budget covers one of the first calls at least: the best that it can do for any of them. */
function coverOf(team: TeamDefinition, starts: readonly Start[], limit: Amount, at: number): FirstCall {
  const smallest = starts.map((s) => s.bound).reduce((a, b) => (covers(b.hold, a.hold) ? a : b))
  const none: FirstCall = { covered: 'no', cap: null, hold: smallest.hold }
  if (isBlocked(limit)) return none
  let best = none
  for (const { agent, bound } of starts) {
    if (covers(limit, bound.hold)) return { covered: 'whole', cap: bound.cap, hold: bound.hold }
    const smaller = shrinkCall(modelOf(team, agent), bound, limit, at)
    if (smaller && (best.cap === null || smaller.cap > best.cap))
      best = { covered: 'shrunk', cap: smaller.cap, hold: bound.hold }
  }
  return best
}

function leastOf(
  team: TeamDefinition,
  starts: readonly Start[],
  firstCall: FirstCall | null,
  at: number,
): RunEstimate['least'] {
  if (firstCall?.covered === 'no') return { usd: 0n, tok: 0n, calls: 0, how: [NO_CALL] }
  const what = starts.length === 1 ? 'the first one' : 'the first one of each task'
  const how = [`${callCount(starts.length)} must be made: ${what}. Each is counted with one token of output.`]
  const parts = [...Map.groupBy(starts, (s) => s.agent.name).values()].map((of) => leastOfAgent(team, of, at))
  how.push(...parts.map((p) => p.how))
  if (firstCall && starts.length > 1) {
    // what others spend may leave too little for all but one
    const each = starts.map((s) => leastOfAgent(team, [s], at))
    const usd = each.map((p) => p.usd).reduce((a, b) => (a === null || b === null ? null : b < a ? b : a))
    const tok = each.map((p) => p.tok).reduce((a, b) => (b < a ? b : a))
    return {
      usd,
      tok,
      calls: 1,
      how: [...how, 'The budget may refuse all but one of them: the cheapest one is counted.'],
    }
  }
  const usd = parts.map((p) => p.usd).reduce((a, b) => (a === null || b === null ? null : a + b))
  return { usd, tok: parts.reduce((n, p) => n + p.tok, 0n), calls: starts.length, how }
}

/** First calls of one agent. */
function leastOfAgent(team: TeamDefinition, starts: readonly Start[], at: number) {
  const { agent } = starts[0]!
  const model = modelOf(team, agent)
  const input = BigInt(starts.reduce((n, s) => n + s.floor, 0))
  const calls = BigInt(starts.length)
  const least = starts.reduce((n, s) => Math.min(n, s.floor), Number.POSITIVE_INFINITY)
  const most = starts.reduce((n, s) => Math.max(n, s.bound.estimate), 0)
  const price = cheapestOf(model, { at, least, most })
  const usd = price && input * price.input + calls * price.output
  const tokens = `${nameOf(team, agent)}: ${callCount(starts.length)} with at least ${count(input)} tokens of input (one for every 16 bytes of text)`
  const how = price
    ? `${tokens} at USD ${perMillion(price.input)} and ${calls} of output at USD ${perMillion(price.output)} per million, the cheapest rates that may apply: USD ${formatUsd(usd!)}.`
    : `${tokens} and ${calls} of output. The price of ${model.provider}/${model.model} is not known, so what they cost is not known either.`
  return { usd, tok: input + calls, how }
}

/** A bound above this is no figure that anybody could count with. */
const MOST_TOKENS = BigInt(Number.MAX_SAFE_INTEGER)

function mostOf(
  team: TeamDefinition,
  starts: readonly Start[],
  agents: readonly AgentDefinition[],
  { limit, at, depth }: { limit: Amount; at: number; depth: number },
): RunEstimate['most'] {
  const most = mostOfSessions(team, at)
  const groups = Map.groupBy(starts, (s) => `${s.agent.name}/${s.bytes}`)
  let all = NOTHING
  for (const of of groups.values()) all = sum(all, times(most(of[0]!.agent, depth, of[0]!.bytes), BigInt(of.length)))
  const how = [
    ...agents.map((agent) => sessionText(team, agent, at)),
    `In all up to ${count(all.sessions)} sessions with ${count(all.calls)} calls and ${count(all.tok)} tokens, every byte of a prompt counted as a token and every token at the dearest rate.`,
    ...priceTexts(team, agents),
    ...boundTexts(all),
  ]
  let usd = all.usd !== null && all.usd < UNLIMITED ? all.usd : null
  let tok = all.tok <= MOST_TOKENS ? all.tok : null
  if (limit.usd < UNLIMITED && (usd === null || limit.usd < usd)) {
    usd = limit.usd
    how.push(`The budget of USD ${formatUsd(limit.usd)} bounds what it costs.`)
  }
  if (limit.tok < UNLIMITED && (tok === null || limit.tok < tok)) {
    tok = limit.tok
    how.push(`The budget of ${count(limit.tok)} tokens bounds its tokens.`)
  }
  const byTokens = tok === null ? null : costOfTokens(team, agents, tok, at)
  if (byTokens !== null && (usd === null || byTokens < usd)) {
    usd = byTokens
    how.push(`So many tokens cost no more than USD ${formatUsd(byTokens)} at the dearest rate of any of these models.`)
  }
  return { usd, tok, how }
}

/** So many tokens at the dearest rate of any agent; null: a price is not known. */
function costOfTokens(
  team: TeamDefinition,
  agents: readonly AgentDefinition[],
  tok: bigint,
  at: number,
): bigint | null {
  let dearest = 0n
  for (const agent of agents) {
    const price = dearestLaterOf(modelOf(team, agent), { at, inputTokens: Number.MAX_SAFE_INTEGER })
    if (!price) return null
    for (const rate of [price.input, price.output]) if (rate > dearest) dearest = rate
  }
  return dearest * tok
}

function sessionText(team: TeamDefinition, agent: AgentDefinition, at: number): string {
  const { answers, calls, cap } = ownMost(team, agent, 0, at)
  const which = agent.maxIterations === null ? 'the default of max_iterations' : 'its max_iterations'
  // whoever reads that an agent without tools may answer more than once should not have to guess why
  const why = toolsFor(team, agent).length > 0 ? '' : '; having no tools, more than once only where its model calls one'
  const how =
    answers === 1
      ? `a session answers once, with up to ${count(cap)} tokens`
      : `a session answers up to ${answers} times (${which}${why}), each time with up to ${count(cap)} tokens`
  const below =
    answers > 1 && agent.subAgents.length > 0
      ? `; each answer but the last may start ${fanOut(team)} sub-sessions, over ${levelsOf(team)} levels in all`
      : ''
  return `${nameOf(team, agent)}: ${how}, after up to ${calls / answers - 1} failed calls${below}.`
}

const priceTexts = (team: TeamDefinition, agents: readonly AgentDefinition[]): string[] =>
  unpricedOf(team, agents).map(
    (name) => `No price of ${name} is known, so without a budget nothing bounds what it costs.`,
  )

/** Models of these agents without a known price, as `provider/model`. */
export const unpricedOf = (team: TeamDefinition, agents: readonly AgentDefinition[]): string[] => [
  ...new Set(
    agents.flatMap((agent) => {
      const model = modelOf(team, agent)
      return isPriced(model) ? [] : [`${model.provider}/${model.model}`]
    }),
  ),
]

function boundTexts({ usd, tok }: Most): string[] {
  const far = [...(usd !== null && usd >= UNLIMITED ? ['cost'] : []), ...(tok > MOST_TOKENS ? ['tokens'] : [])]
  if (far.length === 0) return []
  return [`That is as good as no bound of its ${far.join(' and ')}: give a budget, or lower max_iterations.`]
}

function agentEstimate(
  team: TeamDefinition,
  agent: AgentDefinition,
  starts: readonly Start[],
  at: number,
): AgentEstimate {
  const mine = starts.filter((s) => s.agent.name === agent.name)
  const { answers, calls } = ownMost(team, agent, 0, at)
  return {
    agent,
    first:
      mine.length === 0
        ? null
        : {
            count: mine.length,
            leastTokens: BigInt(mine.reduce((n, s) => n + s.floor + 1, 0)),
            largest: mine.map((s) => s.bound).reduce((a, b) => (b.estimate > a.estimate ? b : a)),
          },
    answers,
    calls,
    cap: outputCap(modelOf(team, agent)),
  }
}

const callCount = (n: number): string => (n === 1 ? '1 call' : `${n} calls`)
const nameOf = (team: TeamDefinition, agent: AgentDefinition): string => {
  const { provider, model } = modelOf(team, agent)
  return `${agent.name} (${provider}/${model})`
}
const perMillion = (picoPerToken: bigint): string => formatUsd(picoPerToken * 1_000_000n)

const count = (n: number | bigint): string => n.toLocaleString('en-US')
