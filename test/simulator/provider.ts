/** The provider of models: answers, fails, breaks off, hangs, and keeps its own bill of what it did. */
import type { ModelDefinition, PricePerMillion } from '../../src/domain/team.ts'
import type { AssistantMessage } from '../../src/domain/turn.ts'
import { NO_USAGE, type TokenUsage, type UsageSource } from '../../src/domain/usage.ts'
import type { ModelErrorClass, ModelRequest, ModelResult } from '../../src/ports.ts'
import { answerOf } from './behaviour.ts'
import { type Random, randomOf } from './random.ts'
import type { FaultKind } from './weather.ts'
import type { Invocation, World } from './world.ts'

/** One line of the bill. */
export interface Bill {
  readonly sessionId: string
  readonly n: number
  readonly driver: string
  readonly inv: Invocation
  readonly model: string
  /** what it used; final when the call is over */
  usage: TokenUsage
  /** pico-USD by the provider's own reckoning; null: the price of what it used is not known */
  cost: bigint | null
  /** `answered` and `failed` may never have been heard */
  outcome: 'under way' | 'answered' | 'failed'
}

type Trouble = 'refused' | 'failed' | 'broken' | 'slow' | 'hangs'

const REFUSALS: readonly ModelErrorClass[] = ['rate_limit', 'rate_limit', 'network', 'overloaded', 'server']
const FAILURES: readonly ModelErrorClass[] = ['server', 'overloaded', 'timeout']
const KINDS: { readonly [t in Trouble]: FaultKind } = {
  refused: 'model refused',
  failed: 'model failed after spend',
  broken: 'stream broken',
  slow: 'model slow',
  hangs: 'model hangs',
}

export class Provider {
  readonly bills: Bill[] = []
  readonly #world: World
  readonly #open = new Map<Invocation, Set<Bill>>()

  constructor(world: World) {
    this.#world = world
  }

  /** calls that the provider is working on and somebody may still hear of */
  *underway(): Iterable<Bill> {
    for (const bills of this.#open.values()) yield* bills
  }

  async call(inv: Invocation, request: ModelRequest): Promise<ModelResult> {
    const world = this.#world
    world.invariants.calls(inv, request)
    const { sessionId, n, driver } = request.call
    const what = () => `model call ${n} of ${world.nameOf(sessionId)}`
    const random = randomOf(world.options.seed, sessionId, n, driver)
    const bill = await world.port(inv, 'model', what, () => this.#arrives(inv, request, random))
    const trouble = this.#trouble(random)
    if (trouble) world.weather.count(KINDS[trouble])
    const { result, ms } = this.#result(request, bill, trouble, random)
    await this.#answerOrAbort(inv, request.signal, ms)
    if (request.signal.aborted) {
      // whether it is heard or not: what was made by then is paid for
      const usage = bill.outcome === 'under way' ? part(bill.usage, random) : bill.usage
      this.#close(bill, usage, 'failed', request.definition)
      return failed('aborted', usage, 'partial')
    }
    this.#close(bill, result.usage, result.message ? 'answered' : 'failed', request.definition)
    world.note(inv, `   ${what()}: ${result.message ? describe(result.message) : result.failure?.class}`)
    return result
  }

  /** The request has reached the provider: from now on it costs what it costs. */
  #arrives(inv: Invocation, request: ModelRequest, random: Random): Bill {
    const { sessionId, n, driver } = request.call
    const usage = usageOf(request, random)
    const bill: Bill = {
      sessionId,
      n,
      driver,
      inv,
      model: request.definition.model,
      usage,
      cost: costOf(usage, request.definition.cost),
      outcome: 'under way',
    }
    this.bills.push(bill)
    const open = this.#open.get(inv)
    if (open) open.add(bill)
    else this.#open.set(inv, new Set([bill]))
    return bill
  }

  #trouble(random: Random): Trouble | undefined {
    const { weather, options } = this.#world
    if (!random.chance(weather.options.modelTrouble) || !weather.strikes(1)) return undefined
    const slowest = options.workerTimeoutMs > 600_000
    return random.weighted<Trouble>({ refused: 3, failed: 2, broken: 3, slow: 2, hangs: slowest ? 1 : 2.8 })
  }

  #result(
    request: ModelRequest,
    bill: Bill,
    trouble: Trouble | undefined,
    random: Random,
  ): { result: ModelResult; ms: number } {
    const { usage } = bill
    const quick = random.between(200, 6_000)
    if (trouble === 'refused') {
      const permanent = random.chance(0.08)
      const failure = permanent ? random.pick(['auth', 'invalid_request'] as const) : random.pick(REFUSALS)
      // a long pause is slept through without a Lambda, and it is the sweep that ends it
      const longest = this.#world.weather.options.mode === 'storm' ? 90_000 : 8_000
      const retryAfterMs = failure === 'rate_limit' && random.chance(0.5) ? random.between(500, longest) : undefined
      return { result: failed(failure, NO_USAGE, 'reported', retryAfterMs), ms: quick / 10 }
    }
    if (trouble === 'failed') return { result: failed(random.pick(FAILURES), usage, 'reported'), ms: quick }
    if (trouble === 'broken') {
      return {
        result: failed(random.pick(['incomplete', 'network'] as const), part(usage, random), 'partial'),
        ms: quick,
      }
    }
    const ms =
      trouble === 'slow' ? random.between(30_000, 300_000) : trouble === 'hangs' ? Number.POSITIVE_INFINITY : quick
    const { message, finishReason } = answerOf(this.#world.options.seed, request)
    const result = {
      message,
      finishReason,
      usage,
      usageSource: 'reported' as const,
      responseId: `r-${bill.n}-${bill.driver}`,
    }
    return { result, ms }
  }

  /** Resolves when the answer is there, or the call was broken off. */
  async #answerOrAbort(inv: Invocation, signal: AbortSignal, ms: number): Promise<void> {
    const world = this.#world
    const over = new Promise<void>((resolve) => {
      if (signal.aborted) return resolve()
      signal.addEventListener('abort', () => resolve())
      if (Number.isFinite(ms)) world.scheduler.after(Math.ceil(ms), resolve)
    })
    await over
    await world.port(
      inv,
      'answer',
      () => 'the answer of the model',
      () => undefined,
    )
  }

  #close(bill: Bill, usage: TokenUsage, outcome: 'answered' | 'failed', definition: ModelDefinition): void {
    if (bill.outcome !== 'under way') return
    bill.usage = usage
    bill.cost = costOf(usage, definition.cost)
    bill.outcome = outcome
    this.#open.get(bill.inv)?.delete(bill)
  }

  /** Nobody hears any more what this invocation asked for: it is made, and billed whole. */
  orphan(inv: Invocation): void {
    for (const bill of this.#open.get(inv) ?? []) bill.outcome = 'answered'
    this.#open.delete(inv)
  }
}

const failed = (
  failure: ModelErrorClass,
  usage: TokenUsage,
  usageSource: UsageSource,
  retryAfterMs?: number,
): ModelResult => ({
  finishReason: 'error',
  usage,
  usageSource,
  failure: { class: failure, message: `as simulated: ${failure}`, ...(retryAfterMs && { retryAfterMs }) },
})

const describe = (m: AssistantMessage): string =>
  m.toolCalls.length ? m.toolCalls.map((c) => `${c.name}(${c.arguments})`).join(' ') : `"${m.content}"`

/** What a call uses: odd numbers below the bounds of its hold. */
function usageOf(request: ModelRequest, random: Random): TokenUsage {
  const bytes = JSON.stringify(request.messages).length + request.system.length
  const inputTokens = 7 + Math.floor(bytes / random.between(2, 5))
  const cacheReadTokens = random.chance(0.3) ? random.below(inputTokens >> 1) : 0
  const cacheWriteTokens = random.chance(0.2) ? random.below(inputTokens >> 2) : 0
  const cacheWrite1hTokens = random.chance(0.3) ? random.below(cacheWriteTokens + 1) : 0
  const outputTokens = 1 + random.below(Math.min(request.maxOutputTokens ?? 900, 900))
  return {
    inputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    cacheWrite1hTokens,
    outputTokens,
    reasoningTokens: random.chance(0.3) ? random.below(outputTokens) : 0,
  }
}

/** Of a call that broke off: the input, and a part of the output. */
const part = (u: TokenUsage, random: Random): TokenUsage => {
  const outputTokens = random.below(u.outputTokens + 1)
  return { ...u, outputTokens, reasoningTokens: Math.min(u.reasoningTokens, outputTokens) }
}

/** The provider's own reckoning, in pico-USD, apart from the product's. */
function costOf(u: TokenUsage, price: PricePerMillion | undefined): bigint | null {
  if (u.inputTokens === 0 && u.outputTokens === 0) return 0n
  if (!price) return null
  const lines: [number, string | undefined][] = [
    [u.inputTokens - u.cacheReadTokens - u.cacheWriteTokens, price.input],
    [u.cacheReadTokens, price.cacheRead],
    [u.cacheWriteTokens - u.cacheWrite1hTokens, price.cacheWrite],
    [u.cacheWrite1hTokens, price.cacheWrite1h],
    [u.outputTokens, price.output],
  ]
  let sum = 0n
  for (const [tokens, rate] of lines) {
    if (tokens === 0) continue
    if (rate === undefined) return null
    const [whole, decimals = ''] = rate.split('.')
    sum += BigInt(tokens) * BigInt(whole! + decimals.padEnd(6, '0'))
  }
  return sum
}
