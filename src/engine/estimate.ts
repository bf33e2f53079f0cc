import { affordableCap, holdOf, inputBound } from '../domain/budget.ts'
import type { Amount } from '../domain/money.ts'
import { leastOutputCap, outputCap } from '../domain/output-caps.ts'
import { optionsBound } from '../domain/provider-options.ts'
import { type AgentDefinition, dearestOf, type ModelDefinition, type TeamDefinition } from '../domain/team.ts'
import type { Message } from '../domain/turn.ts'
import type { ToolSpec } from '../ports.ts'

/** Bytes of task text assumed for the first call of a child whose task is not at hand. */
const ASSUMED_TASK_BYTES = 4_000

export function modelOf(team: TeamDefinition, agent: AgentDefinition): ModelDefinition {
  const model = team.models[agent.model]
  if (!model) throw new Error(`team ${team.name}: agent ${agent.name} names model ${agent.model}, which is not there`)
  return model
}

/** What the first call of an agent may cost when it is made at `at` (epoch ms), before its task is known. */
export function holdFor(team: TeamDefinition, agent: AgentDefinition, at: number): Amount {
  const model = modelOf(team, agent)
  const estimate = ASSUMED_TASK_BYTES + promptBound(model, { system: agent.instruction, messages: [], tools: [] })
  return boundOf(model, estimate, at).hold
}

/** A call before it is made. */
export interface CallBound {
  /** upper bound of its input in tokens */
  readonly estimate: number
  /** output cap in tokens */
  readonly cap: number
  /** the most that it may cost with that cap */
  readonly hold: Amount
}

interface Prompt {
  readonly system: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
}

/** Upper bound of a call's input in tokens. Some options of a model, such as the schema of its answer, are part of its prompt. */
export const promptBound = (model: ModelDefinition, { system, messages, tools }: Prompt): number =>
  inputBound(system, messages, tools) + optionsBound(model)

/** Bound of the input, output cap and hold of a call that is made at `at` (epoch ms). */
export const estimateCall = (model: ModelDefinition, prompt: Prompt, at: number): CallBound =>
  boundOf(model, promptBound(model, prompt), at)

/** The same call with as large an output cap as `funds` cover; undefined: they do not cover the least that it may be. */
export function shrinkCall(model: ModelDefinition, call: CallBound, funds: Amount, at: number): CallBound | undefined {
  const { estimate } = call
  const price = dearestOf(model, { at, inputTokens: estimate })
  const cap = affordableCap(funds, { estimate, cap: call.cap, price, least: leastOutputCap(model) })
  return cap === undefined ? undefined : { estimate, cap, hold: holdOf(estimate, cap, price) }
}

/** What the call costs at most with the smallest output cap that makes sense. */
export function leastHold(model: ModelDefinition, { estimate, cap }: CallBound, at: number): Amount {
  const price = dearestOf(model, { at, inputTokens: estimate })
  return holdOf(estimate, Math.min(cap, leastOutputCap(model)), price)
}

/** The dearest rates of every tier that the prompt may reach: its bound may cross a border which it does not. */
function boundOf(model: ModelDefinition, estimate: number, at: number): CallBound {
  const cap = outputCap(model)
  return { estimate, cap, hold: holdOf(estimate, cap, dearestOf(model, { at, inputTokens: estimate })) }
}
