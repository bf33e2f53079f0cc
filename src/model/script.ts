import type { FinishReason } from '../domain/turn.ts'
import type { ModelErrorClass } from '../ports.ts'

/**
 * The language of scripted models. A script is plain JSON and stands in a model's `provider_opts`:
 *
 *     models:
 *       planner:
 *         provider: scripted
 *         model: planner
 *         provider_opts:
 *           steps:
 *             - calls:
 *                 - tool: run_background_agent
 *                   args: { agent: worker, task: 'Part {i} of {n}: {task}' }
 *                   repeat: 3
 *               usage: { input: 900, output: 60, cacheWrite: 800 }
 *             - calls: [{ tool: wait_background_agents }]
 *             - text: 'All parts are done: {results}'
 *       worker:
 *         provider: scripted
 *         model: worker
 *         provider_opts:
 *           delayMs: 200
 *           steps:
 *             - when: { task: 'Part 2' }
 *               error: { class: overloaded, message: busy, times: 1, usage: { input: 100, output: 5 } }
 *               text: worker done, at the second try
 *             - text: worker done
 *               usage: { input: 100, output: 50 }
 *
 * **Which step plays** follows from the request alone. A round begins with a user message; its n-th answer plays the
 * n-th step, where steps whose `when` does not hold are skipped. After the last step, the last one that fits plays again.
 * `steps` serve every round; `rounds` is one list of steps a round, and the last list serves all later rounds.
 *
 * **Placeholders** in texts and arguments: `{task}` the first user message, `{input}` the round's user message,
 * `{results}` the tool results since the last answer, a line each, `{last}` the last of them or the user message,
 * `{i}` and `{n}` number and count within `repeat`, `{word:PREFIX}` the first word in all tool results of the
 * conversation that begins with PREFIX (`{word:PREFIX:2}` the second different one). An argument that is nothing but
 * `{words:PREFIX}` becomes the list of all of them. Any other braces stay as they are.
 */
export interface Script {
  /** lists of steps by round; at least one list of at least one step */
  readonly rounds: readonly (readonly Step[])[]
}

export interface Step {
  /** all given must hold */
  readonly when?: {
    /** found in what is new since the last answer: the user message or the tool results */
    readonly contains?: string
    /** found in the first user message */
    readonly task?: string
  }
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: readonly Call[]
  /** `stop` by default; with calls it is `tool_calls` */
  readonly finish?: Extract<FinishReason, 'stop' | 'length' | 'content_filter' | 'refusal'>
  /** left out: bytes of the request and of the answer, divided by four and rounded up */
  readonly usage?: ScriptUsage
  /** how long the answer takes */
  readonly delayMs: number
  /** in how many pieces it comes; one that is broken off between them has said a part of its output */
  readonly chunks: number
  readonly error?: StepError
}

export interface Call {
  readonly tool: string
  /** an object, or text that is taken as it is, valid JSON or not */
  readonly args: unknown
  /** how often the call is made in the same answer */
  readonly repeat: number
}

export interface StepError {
  /** of the port's classes; `hang`: nothing comes until the call is broken off; `fault`: the call throws, as a bug does */
  readonly class: ModelErrorClass | 'hang' | 'fault'
  readonly message: string
  readonly retryAfterMs?: number
  /** output tokens that came before it */
  readonly afterTokens?: number
  /** what it cost; without this and `afterTokens` it cost nothing (a hang costs its input) */
  readonly usage?: ScriptUsage
  /**
   * how many calls fail before the step answers; left out: all of them. Counted as calls of the session that brought no
   * answer, beyond those that earlier steps wanted to fail.
   */
  readonly times?: number
}

/** Tokens, by the meaning of TokenUsage. */
export interface ScriptUsage {
  readonly input?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  readonly cacheWrite1h?: number
  readonly output?: number
  readonly reasoning?: number
}
