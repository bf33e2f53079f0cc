import { type AgentDefinition, canDelegate, findAgent, type TeamDefinition } from '../domain/team.ts'
import type { LogSlots, Message } from '../domain/turn.ts'

/** The system message of an agent: its instruction, and whom it may delegate to. */
export function systemMessage(team: TeamDefinition, agent: AgentDefinition): string {
  if (!canDelegate(agent)) return agent.instruction
  const members = agent.subAgents.map((name) => {
    const description = findAgent(team, name)?.description
    return description ? `- ${name}: ${description}` : `- ${name}`
  })
  const how = agent.toolsets.includes('background_agents')
    ? 'Call transfer_task to hand a task to one of them and get its result, or run_background_agent to start one that works while you go on.'
    : 'Call transfer_task to hand a task to one of them and get its result.'
  return `${agent.instruction}\n\nYou lead these agents:\n${members.join('\n')}\n\n${how} Use no other names.`
}

/**
 * The conversation that call `upTo` continues: the requests' messages, accepted answers and their tools' results in
 * order. Failed and unknown calls leave no trace in it.
 * @param task the first user message, where the first intent rode on the claim and no request slot holds it
 */
export function transcript(slots: LogSlots, upTo: number, task: Message | undefined): Message[] {
  const messages: Message[] = []
  if (!slots.requests.has(0) && task) messages.push(task)
  for (let n = 0; n <= upTo; n++) {
    messages.push(...(slots.requests.get(n)?.messages ?? []))
    const response = n < upTo ? slots.responses.get(n) : undefined
    if (response?.outcome !== 'accepted' || !response.message) continue
    messages.push(response.message)
    if (response.results) messages.push(...response.results)
  }
  return messages
}
