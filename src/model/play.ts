import type { AssistantMessage, Message, ToolCall } from '../domain/turn.ts'
import type { ModelRequest } from '../ports.ts'
import type { Script, Step, StepError } from './script.ts'

/** What the script does with one request. */
export interface Played {
  readonly step: Step
  /** the answer of the step */
  readonly message: AssistantMessage
  /** set when this call is to fail instead */
  readonly error?: StepError
}

/**
 * Finds the step that a request plays, and fills it in. Nothing is remembered between calls, since the next one may run
 * in another process: the answers in the conversation say which steps have been played.
 */
export function play(script: Script, request: Pick<ModelRequest, 'messages' | 'call'>): Played {
  const { messages, call } = request
  let round = 0
  let next = 0
  let answers = 0
  let wantedFailures = 0
  for (const [i, m] of messages.entries()) {
    if (m.role === 'user') {
      round++
      next = 0
    } else if (m.role === 'assistant') {
      const steps = stepsOf(script, round)
      const played = find(steps, next, messages.slice(0, i))
      wantedFailures += steps[played]!.error?.times ?? 0
      next = played + 1
      answers++
    }
  }
  const steps = stepsOf(script, round)
  const step = steps[find(steps, next, messages)]!
  const failures = call.n - answers - wantedFailures
  const fails = step.error && failures < (step.error.times ?? Number.POSITIVE_INFINITY)
  return { step, message: answer(step, messages, answers), ...(fails && { error: step.error }) }
}

const stepsOf = (script: Script, round: number): readonly Step[] =>
  script.rounds[Math.min(Math.max(round, 1), script.rounds.length) - 1]!

/** The next step that fits, or else the last one that does. */
function find(steps: readonly Step[], from: number, sofar: readonly Message[]): number {
  for (let i = from; i < steps.length; i++) if (fits(steps[i]!, sofar)) return i
  for (let i = Math.min(from, steps.length) - 1; i >= 0; i--) if (fits(steps[i]!, sofar)) return i
  return steps.length - 1
}

function fits({ when }: Step, sofar: readonly Message[]): boolean {
  if (when?.task !== undefined && !firstUser(sofar).includes(when.task)) return false
  return when?.contains === undefined || news(sofar).some((text) => text.includes(when.contains!))
}

/** Contents of the messages after the last answer. */
const news = (messages: readonly Message[]): string[] =>
  messages.slice(messages.findLastIndex((m) => m.role === 'assistant') + 1).map((m) => m.content)

const firstUser = (messages: readonly Message[]): string => messages.find((m) => m.role === 'user')?.content ?? ''

function answer(step: Step, messages: readonly Message[], answers: number): AssistantMessage {
  const toolCalls: ToolCall[] = []
  for (const { tool, args, repeat } of step.calls ?? []) {
    for (let i = 1; i <= repeat; i++) {
      const fill = filler(messages, i, repeat)
      const filled = filledIn(args, fill)
      toolCalls.push({
        // unique in the conversation, and the same whoever plays it
        id: `call_${answers}_${toolCalls.length}`,
        name: tool,
        arguments: typeof filled === 'string' ? filled : JSON.stringify(filled),
      })
    }
  }
  const fill = filler(messages, 1, 1)
  return {
    role: 'assistant',
    content: step.text === undefined ? '' : fill.text(step.text),
    ...(step.reasoning !== undefined && { reasoning: [{ text: fill.text(step.reasoning) }] }),
    toolCalls,
  }
}

interface Filler {
  text(template: string): string
  words(prefix: string): string[]
}

const PLACEHOLDER = /\{(task|input|last|results|i|n|word:([\w.-]+)(?::(\d+))?)\}/g
const WORDS = /^\{words:([\w.-]+)\}$/

function filler(messages: readonly Message[], i: number, n: number): Filler {
  const words = (prefix: string) => {
    const found = messages.flatMap((m) =>
      m.role === 'tool' ? m.content.split(/[^\w-]+/).filter((w) => w.startsWith(prefix) && w !== prefix) : [],
    )
    return [...new Set(found)]
  }
  const since = messages.slice(messages.findLastIndex((m) => m.role === 'assistant') + 1)
  const value = (name: string, prefix: string | undefined, which: string | undefined): string => {
    if (prefix !== undefined) return words(prefix)[Number(which ?? 1) - 1] ?? ''
    switch (name) {
      case 'task':
        return firstUser(messages)
      case 'input':
        return messages.findLast((m) => m.role === 'user')?.content ?? ''
      case 'last':
        return since.at(-1)?.content ?? ''
      case 'results':
        return since.flatMap((m) => (m.role === 'tool' ? [m.content] : [])).join('\n')
      case 'i':
        return String(i)
      default:
        return String(n)
    }
  }
  return {
    words,
    text: (template) =>
      template.replaceAll(PLACEHOLDER, (_, name: string, prefix?: string, which?: string) =>
        value(name, prefix, which),
      ),
  }
}

/** Fills in every text within a value. */
function filledIn(value: unknown, fill: Filler): unknown {
  if (typeof value === 'string') {
    const list = WORDS.exec(value)
    return list ? fill.words(list[1]!) : fill.text(value)
  }
  if (Array.isArray(value)) return value.map((v) => filledIn(v, fill))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, filledIn(v, fill)]))
}
