import type { AgentDefinition, TeamDefinition } from '../domain/team.ts'
import type { Intent, Message } from '../domain/turn.ts'
import type { ToolSpec } from '../ports.ts'
import { estimateCall, modelOf } from './estimate.ts'
import { systemMessage } from './prompt.ts'
import { toolsFor } from './tools/specs.ts'

/** Whose call it is. */
export interface Caller {
  readonly team: TeamDefinition
  readonly agent: AgentDefinition
  readonly driver: string
  readonly attempt: number
}

/** All that a model is sent. */
export interface Prompt {
  readonly system: string
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
}

export const promptOf = ({ team, agent }: Pick<Caller, 'team' | 'agent'>, messages: readonly Message[]): Prompt => ({
  system: systemMessage(team, agent),
  messages,
  tools: toolsFor(team, agent),
})

/** The intent of a call that continues `messages`, made at `at` (epoch ms): what it may cost is bounded by all that is sent. */
export function intentFor(caller: Caller, messages: readonly Message[], at: number): Intent {
  const { team, agent, driver, attempt } = caller
  const { estimate, cap, hold } = estimateCall(modelOf(team, agent), promptOf(caller, messages), at)
  return { hold, driver, attempt, agent: agent.name, model: agent.model, estimate, cap, at }
}
