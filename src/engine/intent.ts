import type { AgentDefinition, TeamDefinition } from '../domain/team.ts'
import type { Intent, Message } from '../domain/turn.ts'
import type { ToolSpec } from '../ports.ts'
import { type CallBound, estimateCall, modelOf } from './estimate.ts'
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

type Sender = Pick<Caller, 'team' | 'agent'>

export const promptOf = ({ team, agent }: Sender, messages: readonly Message[]): Prompt => ({
  system: systemMessage(team, agent),
  messages,
  tools: toolsFor(team, agent),
})

/** What a call that continues `messages`, made at `at` (epoch ms), may cost: bounded by all that is sent. */
export const boundFor = (sender: Sender, messages: readonly Message[], at: number): CallBound =>
  estimateCall(modelOf(sender.team, sender.agent), promptOf(sender, messages), at)

export const intentFor = (caller: Caller, { hold, estimate, cap }: CallBound, at: number): Intent => ({
  hold,
  driver: caller.driver,
  attempt: caller.attempt,
  agent: caller.agent.name,
  model: caller.agent.model,
  estimate,
  cap,
  at,
})
