import { type InputIssue, SubledgerError } from '../domain/errors.ts'
import type { ModelErrorClass } from '../ports.ts'
import { MAX_COUNT } from './count.ts'
import { isObject, type Json } from './heard.ts'
import type { Call, Script, ScriptUsage, Step, StepError } from './script.ts'

const CLASSES: readonly StepError['class'][] = [
  ...([
    'rate_limit',
    'overloaded',
    'server',
    'network',
    'timeout',
    'aborted',
    'auth',
    'invalid_request',
    'incomplete',
  ] as const satisfies readonly ModelErrorClass[]),
  'hang',
  'fault',
]
const FINISHES = ['stop', 'length', 'content_filter', 'refusal'] as const
/** A streamed answer without a number of its own comes in this many pieces. */
const CHUNKS = 4
const MAX_REPEAT = 1_000
const HOUR_MS = 3_600_000

/**
 * Reads the script of a scripted model from its `provider_opts`.
 * @throws SubledgerError bad_team; each issue's path is a JSON pointer into the options (`/steps/0/calls/1/tool`)
 */
export function parseScript(options: unknown): Script {
  const { script, issues } = read(options)
  const [first] = issues
  if (!first) return script
  const place = first.path ? `"${dotted(first.path)}"` : 'it'
  const more = issues.length > 1 ? `, and ${issues.length - 1} more` : ''
  throw new SubledgerError('bad_team', `The script is not valid: ${place} ${first.message}${more}`, { issues })
}

/** `/steps/0/calls/1/tool` → `steps[0].calls[1].tool`, as messages about team files name a place. */
const dotted = (pointer: string): string =>
  pointer
    .slice(1)
    .replace(/\/(\d+)(?=\/|$)/g, '[$1]')
    .replaceAll('/', '.')

/** What is wrong with a script; nothing, where it can be played. A message goes on after the name of its place. */
export const checkScript = (options: unknown): readonly InputIssue[] => read(options).issues

function read(options: unknown): { script: Script; issues: InputIssue[] } {
  const issues: InputIssue[] = []
  const script = readScript(new Place(options ?? {}, '', issues))
  return { script, issues }
}

function readScript(at: Place): Script {
  at.keys('steps', 'rounds', 'delayMs')
  const delayMs = at.key('delayMs').number(0, HOUR_MS) ?? 0
  const steps = (list: Place) => list.items().map((step) => readStep(step, delayMs))
  if (at.has('steps') && at.has('rounds')) at.wrong('has steps and rounds; give one of them')
  if (at.has('rounds')) return { rounds: at.key('rounds').items().map(steps) }
  if (!at.has('steps')) at.wrong('has no steps; write what the model answers, such as steps: [{ text: done }]')
  return { rounds: [at.has('steps') ? steps(at.key('steps')) : []] }
}

function readStep(at: Place, defaultDelay: number): Step {
  at.keys('when', 'text', 'reasoning', 'calls', 'finish', 'usage', 'delayMs', 'chunks', 'error')
  const text = at.key('text').text()
  const reasoning = at.key('reasoning').text()
  const finish = at.key('finish').oneOf(FINISHES)
  const delayMs = at.key('delayMs').number(0, HOUR_MS) ?? defaultDelay
  const calls = at.has('calls') ? at.key('calls').items().map(readCall) : undefined
  const error = at.has('error') ? readError(at.key('error')) : undefined
  const answers = text !== undefined || calls !== undefined
  if (!answers && !error) at.wrong('does nothing; it needs text, calls or error')
  if (!answers && error?.times !== undefined)
    at.wrong('fails a number of times and then has no answer; give text or calls')
  if (answers && error && error.times === undefined) at.wrong('never comes to its answer; give error.times')
  return {
    ...(at.has('when') && { when: readWhen(at.key('when')) }),
    ...(text !== undefined && { text }),
    ...(reasoning !== undefined && { reasoning }),
    ...(calls && { calls }),
    ...(finish && { finish }),
    ...(at.has('usage') && { usage: readUsage(at.key('usage')) }),
    delayMs,
    chunks: at.key('chunks').number(1, 1_000) ?? (delayMs > 0 ? CHUNKS : 1),
    ...(error && { error }),
  }
}

function readWhen(at: Place): NonNullable<Step['when']> {
  at.keys('contains', 'task')
  const contains = at.key('contains').text()
  const task = at.key('task').text()
  return { ...(contains !== undefined && { contains }), ...(task !== undefined && { task }) }
}

function readCall(at: Place): Call {
  at.keys('tool', 'args', 'repeat')
  const tool = at.key('tool').text()
  if (!tool) at.key('tool').wrong('names no tool')
  const args = at.key('args')
  if (at.has('args') && !isObject(args.value) && typeof args.value !== 'string')
    args.wrong('is neither an object nor text')
  return {
    tool: tool ?? '',
    args: at.has('args') ? args.value : {},
    repeat: at.key('repeat').number(1, MAX_REPEAT) ?? 1,
  }
}

function readError(at: Place): StepError {
  at.keys('class', 'message', 'retryAfterMs', 'afterTokens', 'usage', 'times')
  const kind = at.key('class').oneOf(CLASSES)
  if (!at.has('class')) at.key('class').wrong(`is missing; it is one of ${CLASSES.join(', ')}`)
  const retryAfterMs = at.key('retryAfterMs').number(0, HOUR_MS)
  const afterTokens = at.key('afterTokens').number(0, MAX_COUNT)
  const times = at.key('times').number(1)
  return {
    class: kind ?? 'server',
    message: at.key('message').text() ?? 'as the script wants it',
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(afterTokens !== undefined && { afterTokens }),
    ...(at.has('usage') && { usage: readUsage(at.key('usage')) }),
    ...(times !== undefined && { times }),
  }
}

const COUNTS = ['input', 'cacheRead', 'cacheWrite', 'cacheWrite1h', 'output', 'reasoning'] as const

function readUsage(at: Place): ScriptUsage {
  at.keys(...COUNTS)
  const u: { [K in (typeof COUNTS)[number]]?: number } = {}
  for (const name of COUNTS) {
    const n = at.key(name).number(0, MAX_COUNT)
    if (n !== undefined) u[name] = n
  }
  if (u.input !== undefined && (u.cacheRead ?? 0) + (u.cacheWrite ?? 0) > u.input)
    at.wrong('has more cached input than input; cacheRead and cacheWrite are parts of input')
  if ((u.cacheWrite1h ?? 0) > (u.cacheWrite ?? 0))
    at.wrong('has more cacheWrite1h than cacheWrite, of which it is a part')
  if (u.output !== undefined && (u.reasoning ?? 0) > u.output)
    at.wrong('has more reasoning than output, of which it is a part')
  return u
}

/** A value and where it stands. Its readers return undefined for what is absent or wrong, and note what is wrong. */
class Place {
  readonly value: unknown
  readonly #path: string
  readonly #issues: InputIssue[]

  constructor(value: unknown, path: string, issues: InputIssue[]) {
    this.value = value
    this.#path = path
    this.#issues = issues
  }

  /** @param what goes on from the name of the place */
  wrong(what: string): undefined {
    this.#issues.push({ path: this.#path, message: what })
  }

  has(name: string): boolean {
    return isObject(this.value) && Object.hasOwn(this.value, name) && this.value[name] !== undefined
  }

  key(name: string): Place {
    return new Place(this.has(name) ? (this.value as Json)[name] : undefined, `${this.#path}/${name}`, this.#issues)
  }

  keys(...known: readonly string[]): void {
    if (!isObject(this.value)) {
      this.wrong('is no object')
      return
    }
    for (const name of Object.keys(this.value))
      if (!known.includes(name)) this.key(name).wrong(`is not known here; known are ${known.join(', ')}`)
  }

  items(): Place[] {
    if (!Array.isArray(this.value) || this.value.length === 0) {
      this.wrong('is no list with at least one entry')
      return []
    }
    return this.value.map((v, i) => new Place(v, `${this.#path}/${i}`, this.#issues))
  }

  text(): string | undefined {
    if (this.value === undefined || typeof this.value === 'string') return this.value
    return this.wrong('is no text')
  }

  number(least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const v = this.value
    if (v === undefined) return undefined
    if (typeof v === 'number' && Number.isSafeInteger(v) && v >= least && v <= most) return v
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`
    return this.wrong(`is no whole number ${range}`)
  }

  oneOf<T extends string>(allowed: readonly T[]): T | undefined {
    if (this.value === undefined) return undefined
    return allowed.find((a) => a === this.value) ?? this.wrong(`is not one of ${allowed.join(', ')}`)
  }
}
