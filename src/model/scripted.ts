import { appendFileSync } from 'node:fs'
import { SubledgerError } from '../domain/errors.ts'
import { byteLength } from '../domain/text.ts'
import type { AssistantMessage } from '../domain/turn.ts'
import type { TokenUsage, UsageSource } from '../domain/usage.ts'
import type { Clock, Model, ModelRequest, ModelResult } from '../ports.ts'
import { brokenOff } from './failure.ts'
import { parseScript } from './parse-script.ts'
import { type Played, play } from './play.ts'
import type { Script, ScriptUsage, StepError } from './script.ts'
import { type BookedUsage, estimateInput, FREE, tokensOf } from './usage.ts'

export { checkScript } from './parse-script.ts'

/** One call, as the scripted provider would bill it. */
export interface BillEntry {
  readonly sessionId: string
  readonly n: number
  readonly driver: string
  readonly model: string
  readonly usage: TokenUsage
  readonly usageSource: UsageSource
  /** `fault`: the call threw */
  readonly outcome: 'answered' | 'failed' | 'fault'
  /** broken off by the caller */
  readonly aborted: boolean
}

export interface ScriptedModel extends Model {
  /** every call that this instance has ended, in the order in which they ended */
  readonly bill: readonly BillEntry[]
}

export interface ScriptedOptions {
  /** tells how long delays take, so that a simulator can run them in its own time */
  readonly clock: Pick<Clock, 'sleep'>
  /** a file that gets each entry of the bill as a line of JSON; many processes may write to the same one */
  readonly billFile?: string | undefined
}

/**
 * A model that plays the script in its definition's options (see script.ts for the language). It is a provider of its
 * own: it tells its usage as a provider does, and keeps a bill that the books can be compared with.
 */
export function createScriptedModel({ clock, billFile }: ScriptedOptions): ScriptedModel {
  const bill: BillEntry[] = []
  const enter = (request: ModelRequest, result: ModelResult, outcome: BillEntry['outcome']): void => {
    const { sessionId, n, driver } = request.call
    const { usage, usageSource } = result
    const aborted = request.signal.aborted && outcome !== 'answered'
    const entry = { sessionId, n, driver, model: request.definition.model, usage, usageSource, outcome, aborted }
    bill.push(entry)
    // one write a line: appended lines of several processes do not mix
    if (billFile) appendFileSync(billFile, `${JSON.stringify(entry)}\n`)
  }
  return {
    bill,
    async call(request) {
      try {
        const result = await perform(request, clock)
        enter(request, result, result.message ? 'answered' : 'failed')
        return result
      } catch (fault) {
        const paid = fault instanceof Fault ? fault.paid : FREE
        enter(request, { finishReason: 'error', ...paid }, 'fault')
        throw fault
      }
    },
  }
}

async function perform(request: ModelRequest, clock: Pick<Clock, 'sleep'>): Promise<ModelResult> {
  const { signal } = request
  const nothing = { finishReason: 'error', ...FREE } as const
  if (signal.aborted) return { ...nothing, failure: brokenOff(signal) }
  let script: Script
  try {
    script = parseScript(request.definition.options)
  } catch (e) {
    if (SubledgerError.is(e)) return { ...nothing, failure: { class: 'invalid_request', message: e.message } }
    throw e
  }
  const played = play(script, request)
  const whole = usageOf(played.step.usage, request, played.message)
  return played.error ? fail(played, played.error, whole, signal, clock) : stream(played, whole, signal, clock)
}

/** Answers in pieces; broken off between two of them, the output said so far is what is paid for. */
async function stream(
  { step, message }: Played,
  whole: TokenUsage,
  signal: AbortSignal,
  clock: Pick<Clock, 'sleep'>,
): Promise<ModelResult> {
  for (let said = 0; said < step.chunks; said++) {
    if (step.delayMs > 0) await clock.sleep(step.delayMs / step.chunks, signal)
    if (!signal.aborted) continue
    const usage = withOutput(whole, Math.floor((whole.outputTokens * said) / step.chunks))
    const usageSource = said > 0 ? 'partial' : 'estimated'
    return { finishReason: 'error', usage, usageSource, failure: brokenOff(signal) }
  }
  const finishReason = step.finish ?? (message.toolCalls.length ? 'tool_calls' : 'stop')
  return { message, finishReason, usage: whole, usageSource: 'reported' }
}

async function fail(
  { step }: Played,
  error: StepError,
  whole: TokenUsage,
  signal: AbortSignal,
  clock: Pick<Clock, 'sleep'>,
): Promise<ModelResult> {
  const paid = spent(error, whole)
  if (error.class === 'hang') await aborted(signal)
  else if (step.delayMs > 0) await clock.sleep(step.delayMs, signal)
  const result = { finishReason: 'error', ...paid } as const
  if (signal.aborted) return { ...result, failure: brokenOff(signal) }
  if (error.class === 'fault' || error.class === 'hang') throw new Fault(error.message, paid)
  const { class: kind, message, retryAfterMs } = error
  return { ...result, failure: { class: kind, message, ...(retryAfterMs !== undefined && { retryAfterMs }) } }
}

/** What a script wants the call to throw, with what the call cost all the same. */
class Fault extends Error {
  override readonly name = 'Fault'
  readonly paid: BookedUsage

  constructor(message: string, paid: BookedUsage) {
    super(message)
    this.paid = paid
  }
}

/** What a failing call costs, and how much of that was said. */
function spent(error: StepError, whole: TokenUsage): BookedUsage {
  if (error.usage) return { usage: filled(error.usage, 0, 0), usageSource: 'partial' }
  if (error.afterTokens !== undefined) return { usage: withOutput(whole, error.afterTokens), usageSource: 'partial' }
  if (error.class === 'hang') return { usage: withOutput(whole, 0), usageSource: 'estimated' }
  return FREE
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

const withOutput = (u: TokenUsage, outputTokens: number): TokenUsage => ({
  ...u,
  outputTokens,
  reasoningTokens: Math.min(u.reasoningTokens, outputTokens),
})

/** The usage of a whole answer: as the step says, otherwise from the lengths of what was sent and answered. */
function usageOf(given: ScriptUsage | undefined, request: ModelRequest, message: AssistantMessage): TokenUsage {
  const texts = [message.content, ...(message.reasoning ?? []).map((r) => r.text)]
  for (const c of message.toolCalls) texts.push(c.name, c.arguments)
  const output = tokensOf(texts.reduce((sum, t) => sum + byteLength(t), 0))
  return filled(given ?? {}, estimateInput(request), Math.max(output, 1))
}

/** Counts that are not given are these; parts that are given make the whole at least as large. */
function filled(u: ScriptUsage, input: number, output: number): TokenUsage {
  const { cacheRead = 0, cacheWrite = 0, cacheWrite1h = 0, reasoning = 0 } = u
  return {
    inputTokens: Math.max(u.input ?? input, cacheRead + cacheWrite),
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    cacheWrite1hTokens: cacheWrite1h,
    outputTokens: Math.max(u.output ?? output, reasoning),
    reasoningTokens: reasoning,
  }
}
