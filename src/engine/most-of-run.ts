import { TOKEN_BYTES } from '../domain/budget.ts'
import {
  MAX_APPROVALS,
  MAX_DEPTH,
  MAX_FAILED_CALLS,
  MAX_NOTE,
  MAX_PENDING,
  MAX_TOOL_CALLS,
  TOOL_RESULTS_BYTES,
} from '../domain/limits.ts'
import { outputCap } from '../domain/output-caps.ts'
import { type AgentDefinition, canDelegate, dearestLaterOf, findAgent, type TeamDefinition } from '../domain/team.ts'
import { byteLength } from '../domain/text.ts'
import { modelOf, promptBound } from './estimate.ts'
import { promptOf } from './intent.ts'
import { mostAnswers, toolsFor } from './tools/specs.ts'

/** The most that something may come to, with all that it starts. */
export interface Most {
  /** pico-USD; null: a price is not known */
  readonly usd: bigint | null
  readonly tok: bigint
  readonly calls: bigint
  readonly sessions: bigint
}

/** One session of an agent, without those that it starts. */
export interface OwnMost {
  readonly usd: bigint | null
  readonly tok: bigint
  /** accepted answers */
  readonly answers: number
  readonly calls: number
  /** input tokens of its last call */
  readonly largestInput: number
  /** output tokens of each call */
  readonly cap: number
}

/** Bytes around a task in the prompt of the session that is given it. */
const FRAME_BYTES = 128
/** Bytes of a tool's result, where it is no output of a session, and what stands around it. */
const SMALL_RESULT_BYTES = 512
/** The same of a call that is not run: one of a tool that an agent without tools has not, or one too many. */
const UNRUN_RESULT_BYTES = 256
/** Bytes of UTF-8 of a character of a note, as its length counts them. */
const NOTE_CHARACTER_BYTES = 3

/**
 * What one session may come to with its own calls: up to max_iterations answers, and each call's prompt holds all answers
 * and results before it. That goes for an agent without tools, too: nothing keeps its model from calling one, and it is
 * told that there is none; but it gets fewer answers unless its team says otherwise. Each answer may come after as many failed calls as are tried in a row.
 * @param taskBytes bytes of the task that it is given
 */
export function ownMost(team: TeamDefinition, agent: AgentDefinition, taskBytes: number, at: number): OwnMost {
  const model = modelOf(team, agent)
  const cap = outputCap(model)
  const { system, tools } = promptOf({ team, agent }, [])
  const first = promptBound(model, { system, messages: [], tools }) + taskBytes + FRAME_BYTES
  const answers = mostAnswers(team, agent)
  const growth = cap * TOKEN_BYTES + resultsBytes(team, agent, cap)
  const largestInput = first + (answers - 1) * growth
  const price = dearestLaterOf(model, { at, inputTokens: largestInput })
  const [n, tries] = [BigInt(answers), BigInt(MAX_FAILED_CALLS)]
  const input = tries * (n * BigInt(first) + ((n * (n - 1n)) / 2n) * BigInt(growth))
  const output = tries * n * BigInt(cap)
  return {
    usd: price && input * price.input + output * price.output,
    tok: input + output,
    answers,
    calls: answers * MAX_FAILED_CALLS,
    largestInput,
    cap,
  }
}

/** Bytes of all results of one answer of so many tokens: no call has less than one. */
function resultsBytes(team: TeamDefinition, agent: AgentDefinition, cap: number): number {
  const hasTools = toolsFor(team, agent).length > 0
  const ran = hasTools ? Math.min(cap, MAX_TOOL_CALLS) : 0
  // a call with a name that is wrong is told all names that there are
  const small = Math.max(SMALL_RESULT_BYTES, UNRUN_RESULT_BYTES + byteLength(agent.subAgents.join(', ')))
  const asks = hasTools && (team.permissions?.ask ?? []).length > 0
  const notes = asks ? Math.min(cap, MAX_APPROVALS) * MAX_NOTE * NOTE_CHARACTER_BYTES : 0
  return ran * small + (cap - ran) * UNRUN_RESULT_BYTES + notes + (canDelegate(agent) ? TOOL_RESULTS_BYTES : 0)
}

/** Sub-sessions that one answer may start. */
export const fanOut = (team: TeamDefinition): number => Math.min(team.limits?.width ?? MAX_PENDING, MAX_TOOL_CALLS)
/** Levels of sub-sessions below the root. */
export const levelsOf = (team: TeamDefinition): number => team.limits?.depth ?? MAX_DEPTH

/** Bounds of sessions with all below them. Those of one agent at one depth with tasks of one size are the same. */
export function mostOfSessions(team: TeamDefinition, at: number) {
  const known = new Map<string, Most>()

  function most(agent: AgentDefinition, depth: number, taskBytes: number): Most {
    const key = `${depth}/${taskBytes}/${agent.name}`
    const found = known.get(key) ?? compute(agent, depth, taskBytes)
    known.set(key, found)
    return found
  }

  function compute(agent: AgentDefinition, depth: number, taskBytes: number): Most {
    const own = ownMost(team, agent, taskBytes, at)
    const alone = { usd: own.usd, tok: own.tok, calls: BigInt(own.calls), sessions: 1n }
    if (!canDelegate(agent) || depth >= levelsOf(team)) return alone
    // the tools of the last answer are not run any more
    const children = BigInt(own.answers - 1) * BigInt(fanOut(team))
    const each = agent.subAgents
      .map((name) => most(findAgent(team, name)!, depth + 1, own.cap * TOKEN_BYTES))
      .reduce(dearer)
    return sum(alone, times(each, children))
  }

  return most
}

/** The larger of each figure. */
const dearer = (a: Most, b: Most): Most => ({
  usd: a.usd === null || b.usd === null ? null : high(a.usd, b.usd),
  tok: high(a.tok, b.tok),
  calls: high(a.calls, b.calls),
  sessions: high(a.sessions, b.sessions),
})

const high = (a: bigint, b: bigint): bigint => (a > b ? a : b)

export const sum = (a: Most, b: Most): Most => ({
  usd: a.usd === null || b.usd === null ? null : a.usd + b.usd,
  tok: a.tok + b.tok,
  calls: a.calls + b.calls,
  sessions: a.sessions + b.sessions,
})

export const times = (a: Most, n: bigint): Most =>
  n === 0n
    ? NOTHING
    : { usd: a.usd === null ? null : a.usd * n, tok: a.tok * n, calls: a.calls * n, sessions: a.sessions * n }

export const NOTHING: Most = { usd: 0n, tok: 0n, calls: 0n, sessions: 0n }
