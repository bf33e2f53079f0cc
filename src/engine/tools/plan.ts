import { MAX_APPROVALS, MAX_DEPTH, MAX_TOOL_CALLS } from '../../domain/limits.ts'
import { permissionOf } from '../../domain/permissions.ts'
import type { SessionHeader } from '../../domain/session.ts'
import type { AgentDefinition, TeamDefinition } from '../../domain/team.ts'
import type { ToolCall } from '../../domain/turn.ts'
import { toolsFor, WAIT_DEFAULT_SECONDS, WAIT_MOST_SECONDS } from './specs.ts'

/** The result of a tool, as the model reads it. */
export interface ToolOutcome {
  readonly content: string
  readonly isError?: boolean
}

/** What one tool call comes to. Pure: the same answer always gives the same plan, whoever makes it. */
export type Planned =
  /** known at once, without an effect outside */
  | { readonly kind: 'instant'; readonly outcome: ToolOutcome }
  | { readonly kind: 'delegate'; readonly agent: string; readonly task: string; readonly transfer: boolean }
  | { readonly kind: 'list' }
  | { readonly kind: 'view' | 'stop'; readonly ordinal: number }
  | { readonly kind: 'wait'; readonly ordinals: readonly number[] | 'all'; readonly timeoutMs: number }

/** What one tool call comes to when somebody says so. */
export interface Asked {
  readonly kind: 'ask'
  readonly call: Planned
}

const TASK_ID = /^task-(\d{1,6})$/

/** The id by which a model names a background task: the child's ordinal. */
export const taskIdOf = (ordinal: number): string => `task-${ordinal}`

const refuse = (content: string): Planned => ({ kind: 'instant', outcome: { content, isError: true } })

/** What the tool calls of one answer come to. Those beyond the bound have no effect: each is told why. */
export function planTools(
  team: TeamDefinition,
  agent: AgentDefinition,
  header: Pick<SessionHeader, 'depth'>,
  calls: readonly ToolCall[],
): (Planned | Asked)[] {
  const late = 'Call it again in a later one.'
  let asked = 0
  return calls.map((call, i) => {
    if (i >= MAX_TOOL_CALLS)
      return refuse(`Not run: of one answer at most ${MAX_TOOL_CALLS} tool calls are run. ${late}`)
    const planned = planTool(team, agent, header, call)
    if (planned.kind === 'ask' && ++asked > MAX_APPROVALS)
      return refuse(`Not run: of one answer at most ${MAX_APPROVALS} tool calls can wait for approval. ${late}`)
    return planned
  })
}

function planTool(
  team: TeamDefinition,
  agent: AgentDefinition,
  header: Pick<SessionHeader, 'depth'>,
  call: ToolCall,
): Planned | Asked {
  const planned = planAllowed(team, agent, header, call)
  // what cannot be run needs nobody's permission to be refused
  if (planned.kind === 'instant' && planned.outcome.isError) return planned
  const permission = permissionOf(team.permissions, call.name, parseArguments(call.arguments) as Arguments)
  if (permission === 'deny') return refuse(`This call of "${call.name}" is not permitted in this team.`)
  return permission === 'ask' ? { kind: 'ask', call: planned } : planned
}

/** What a call comes to that is permitted. */
function planAllowed(
  team: TeamDefinition,
  agent: AgentDefinition,
  header: Pick<SessionHeader, 'depth'>,
  call: ToolCall,
): Planned {
  const names = toolsFor(team, agent).map((t) => t.name)
  if (!names.includes(call.name)) {
    return refuse(
      `There is no tool "${call.name}". ${names.length ? `There are: ${names.join(', ')}.` : 'You have no tools.'}`,
    )
  }
  const args = parseArguments(call.arguments)
  if (typeof args === 'string') return refuse(args)
  switch (call.name) {
    case 'think':
      return typeof args.thought === 'string'
        ? { kind: 'instant', outcome: { content: 'Noted.' } }
        : refuse('"thought" must be a text.')
    case 'transfer_task':
    case 'run_background_agent':
      return planDelegation(team, agent, header, args, call.name === 'transfer_task')
    case 'list_background_agents':
      return { kind: 'list' }
    case 'view_background_agent':
    case 'stop_background_agent': {
      const ordinal = ordinalOf(args.task_id)
      if (ordinal === undefined) return refuse(`"task_id" must be an id that run_background_agent returned.`)
      return { kind: call.name === 'stop_background_agent' ? 'stop' : 'view', ordinal }
    }
    case 'wait_background_agents':
      return planWait(args)
    default:
      return refuse(`The tool "${call.name}" is not there.`)
  }
}

type Arguments = { readonly [key: string]: unknown }

function parseArguments(text: string): Arguments | string {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Arguments
    return 'The arguments must be a JSON object.'
  } catch (e) {
    return `The arguments are not valid JSON: ${(e as Error).message}`
  }
}

function planDelegation(
  team: TeamDefinition,
  agent: AgentDefinition,
  header: Pick<SessionHeader, 'depth'>,
  args: Arguments,
  transfer: boolean,
): Planned {
  if (typeof args.agent !== 'string' || !agent.subAgents.includes(args.agent)) {
    return refuse(`"agent" must be one of: ${agent.subAgents.join(', ')}.`)
  }
  if (typeof args.task !== 'string' || args.task.trim() === '')
    return refuse('"task" must be a text that says what to do.')
  if (args.expected_output !== undefined && typeof args.expected_output !== 'string') {
    return refuse('"expected_output" must be a text.')
  }
  const levels = team.limits?.depth ?? MAX_DEPTH
  if (header.depth >= levels) return refuse(`Agents may lead agents over ${levels} levels, and this is the last.`)
  return { kind: 'delegate', agent: args.agent, task: args.task, transfer }
}

function planWait(args: Arguments): Planned {
  const { ids, timeout = WAIT_DEFAULT_SECONDS } = args
  if (typeof timeout !== 'number' || !(timeout > 0) || timeout > WAIT_MOST_SECONDS) {
    return refuse(`"timeout" must be a number of seconds above 0, at most ${WAIT_MOST_SECONDS}.`)
  }
  const timeoutMs = Math.ceil(timeout * 1_000)
  if (ids === undefined || (Array.isArray(ids) && ids.length === 0)) return { kind: 'wait', ordinals: 'all', timeoutMs }
  const ordinals = Array.isArray(ids) ? ids.map(ordinalOf) : [undefined]
  if (ordinals.includes(undefined)) return refuse('"ids" must be a list of ids that run_background_agent returned.')
  return { kind: 'wait', ordinals: ordinals as number[], timeoutMs }
}

function ordinalOf(id: unknown): number | undefined {
  const m = typeof id === 'string' ? TASK_ID.exec(id) : null
  return m ? Number(m[1]) : undefined
}
