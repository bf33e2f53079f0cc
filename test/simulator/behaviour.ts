/**
 * What a model says: a pure function of the seed, the session and how far its conversation has come. So a call that is
 * made again gets the same answer, as the protocol must not depend on it.
 */
import type { AssistantMessage, FinishReason, ToolCall } from '../../src/domain/turn.ts'
import type { ModelRequest } from '../../src/ports.ts'
import { type Random, randomOf } from './random.ts'

/** What kind of conversations the agents of a seed lead; it stands in `options` of their models. */
export interface Habits {
  /** most answers in a round */
  readonly turns: number
  /** children that the root starts at once in its first answer; [from, to] */
  readonly fan: readonly [number, number]
  /** children that any other answer starts at once */
  readonly smallFan: readonly [number, number]
  /** chance that a session below the root that may delegate does so in an answer */
  readonly nesting: number
  /** where given, what each agent calls, answer by answer; then it is done */
  readonly script?: Script
}

export interface Script {
  readonly [agent: string]: readonly (readonly { readonly name: string; readonly arguments: string }[])[]
}

type Say = { readonly message: AssistantMessage; readonly finishReason: FinishReason }

export function answerOf(seed: number, request: ModelRequest): Say {
  const habits = request.definition.options as unknown as Habits
  const users = request.messages.filter((m) => m.role === 'user').length
  const last = request.messages.findLastIndex((m) => m.role === 'user')
  const answers = request.messages.slice(last).filter((m) => m.role === 'assistant').length
  if (habits.script) return scripted(habits.script, request, answers)
  const whole = randomOf(seed, request.call.sessionId, users)
  const turns = whole.between(1, habits.turns)
  const random = randomOf(seed, request.call.sessionId, users, answers)
  const isRoot = request.system.startsWith('root')
  const leads = mayDelegate(request)
  const fansOut = isRoot && leads.length > 0 && users === 1 && answers === 0
  if (!fansOut && answers >= turns - 1) return finalAnswer(random, request)
  const calls = fansOut ? fanOut(random, request, habits) : toolCalls(random, request, habits, isRoot)
  if (calls.length === 0) return finalAnswer(random, request)
  const toolCalls_ = calls.map((c, i) => ({ id: `call-${users}-${answers}-${i}`, ...c }))
  return { message: { role: 'assistant', content: '', toolCalls: toolCalls_ }, finishReason: 'tool_calls' }
}

function scripted(script: Script, request: ModelRequest, answers: number): Say {
  const agent = request.system.split(' ')[0]!
  const calls = script[agent]?.[answers]
  if (!calls) return finalAnswer(randomOf('stop'), request)
  const toolCalls = calls.map((c, i) => ({ id: `call-${answers}-${i}`, ...c }))
  return { message: { role: 'assistant', content: '', toolCalls }, finishReason: 'tool_calls' }
}

function finalAnswer(random: Random, request: ModelRequest): Say {
  const finishReason = random.weighted<FinishReason>({ stop: 30, length: 1, content_filter: 0.5, refusal: 0.5 })
  const content = `done ${request.call.sessionId.slice(0, 4)} ${random.below(1000)}`
  return { message: { role: 'assistant', content, toolCalls: [] }, finishReason }
}

type Call = Omit<ToolCall, 'id'>
const call = (name: string, args: object): Call => ({ name, arguments: JSON.stringify(args) })

const has = (request: ModelRequest, name: string): boolean => request.tools.some((t) => t.name === name)

/** Agents that it may delegate to, as its tools say. */
function mayDelegate(request: ModelRequest): readonly string[] {
  const tool = request.tools.find((t) => t.name === 'transfer_task')
  const parameters = tool?.parameters as { properties: { agent: { enum: string[] } } } | undefined
  return parameters?.properties.agent.enum ?? []
}

const delegation = (random: Random, request: ModelRequest, name: string): Call =>
  call(name, {
    agent: random.pick(mayDelegate(request)),
    task: `task ${random.below(10_000)}`,
    ...(random.chance(0.2) && { expected_output: 'one line' }),
  })

function fanOut(random: Random, request: ModelRequest, habits: Habits): Call[] {
  const count = random.between(...habits.fan)
  const background = has(request, 'run_background_agent')
  const all = random.chance(0.7)
  return Array.from({ length: count }, () => {
    const name = background && (all || random.chance(0.5)) ? 'run_background_agent' : 'transfer_task'
    return delegation(random, request, name)
  })
}

type Move = 'think' | 'transfer' | 'background' | 'wait' | 'view' | 'list' | 'stop' | 'invalid' | 'mixed'

function toolCalls(random: Random, request: ModelRequest, habits: Habits, isRoot: boolean): Call[] {
  const leads = mayDelegate(request).length > 0 && (isRoot || random.chance(habits.nesting))
  const background = leads && has(request, 'run_background_agent')
  const tasks = taskIds(request)
  const [view, stop] = tasks.length > 0 ? [2, 1.5] : [0.2, 0.2]
  const move = random.weighted<Move>({
    think: has(request, 'think') ? 5 : 0,
    invalid: 0.6,
    ...(leads && { transfer: 3, mixed: 1 }),
    ...(background && { background: 3, wait: tasks.length > 0 ? 5 : 0.3, view, list: 1, stop }),
  })
  return move === 'mixed'
    ? [...one(random, request, habits, 'think'), ...one(random, request, habits, 'transfer'), invalid(random)]
    : one(random, request, habits, move, tasks)
}

function one(random: Random, request: ModelRequest, habits: Habits, move: Move, tasks: readonly string[] = []): Call[] {
  const task = () => (tasks.length > 0 && random.chance(0.95) ? random.pick(tasks) : `task-${random.below(200)}`)
  const some = (name: string) =>
    Array.from({ length: random.between(...habits.smallFan) }, () => delegation(random, request, name))
  switch (move) {
    case 'think':
      return Array.from({ length: random.between(1, 3) }, () => call('think', { thought: `h${random.below(99)}` }))
    case 'transfer':
      return some('transfer_task')
    case 'background':
      return some('run_background_agent')
    case 'wait': {
      const ids = random.chance(0.4) ? [...new Set(Array.from({ length: random.between(1, 3) }, task))] : undefined
      const timeout = random.chance(0.4) ? random.pick([0.5, 3, 20, 120, 900]) : undefined
      return [call('wait_background_agents', { ...(ids && { ids }), ...(timeout && { timeout }) })]
    }
    case 'view':
      return [call('view_background_agent', { task_id: task() })]
    case 'list':
      return [call('list_background_agents', {})]
    case 'stop':
      return Array.from({ length: random.between(1, 2) }, () => call('stop_background_agent', { task_id: task() }))
    default:
      return [invalid(random)]
  }
}

const invalid = (random: Random): Call =>
  random.pick<Call>([
    { name: 'no_such_tool', arguments: '{}' },
    { name: 'think', arguments: '{not json' },
    { name: 'transfer_task', arguments: '{"agent":"nobody","task":"x"}' },
    { name: 'wait_background_agents', arguments: '{"timeout":-1}' },
    { name: 'stop_background_agent', arguments: '{"task_id":"7"}' },
    { name: 'run_background_agent', arguments: '[]' },
  ])

/** Ids of tasks that it has been told of. */
function taskIds(request: ModelRequest): string[] {
  const ids = new Set<string>()
  for (const m of request.messages) {
    if (m.role === 'tool' && m.toolName === 'run_background_agent') {
      for (const [id] of m.content.matchAll(/task-\d+/g)) ids.add(id)
    }
  }
  return [...ids]
}
