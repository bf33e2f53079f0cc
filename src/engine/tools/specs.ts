import { DEFAULT_MAX_ITERATIONS, MAX_ITERATIONS_NO_TOOLS } from '../../domain/limits.ts'
import { type AgentDefinition, canDelegate, type TeamDefinition } from '../../domain/team.ts'
import type { ToolSpec } from '../../ports.ts'

/** Names and arguments are docker-agent's. */
export const WAIT_DEFAULT_SECONDS = 300
export const WAIT_MOST_SECONDS = 3_600

const agentArguments = (names: readonly string[]) => ({
  type: 'object',
  properties: {
    agent: { type: 'string', enum: names, description: 'The name of the agent.' },
    task: { type: 'string', description: 'What the agent is to do, clear and complete: it sees nothing else.' },
    expected_output: { type: 'string', description: 'What the result should look like.' },
  },
  required: ['agent', 'task'],
  additionalProperties: false,
})

const taskId = {
  type: 'object',
  properties: { task_id: { type: 'string', description: 'The id that run_background_agent returned.' } },
  required: ['task_id'],
  additionalProperties: false,
}

const background = (names: readonly string[]): ToolSpec[] => [
  {
    name: 'run_background_agent',
    description: 'Starts an agent on a task in the background and returns its task id at once.',
    parameters: agentArguments(names),
  },
  {
    name: 'list_background_agents',
    description: 'Lists the background tasks with their state.',
    parameters: { type: 'object', properties: {}, additionalProperties: false },
  },
  {
    name: 'view_background_agent',
    description: 'Shows the state of a background task, and its output when it has ended.',
    parameters: taskId,
  },
  { name: 'stop_background_agent', description: 'Stops a background task.', parameters: taskId },
  {
    name: 'wait_background_agents',
    description: 'Waits until background tasks have ended and returns their outputs. Without ids it waits for all.',
    parameters: {
      type: 'object',
      properties: {
        ids: { type: 'array', items: { type: 'string' }, description: 'Task ids; all that still work if left out.' },
        timeout: {
          type: 'number',
          description: `Seconds to wait at most: ${WAIT_DEFAULT_SECONDS} by default, at most ${WAIT_MOST_SECONDS}.`,
        },
      },
      additionalProperties: false,
    },
  },
]

const think: ToolSpec = {
  name: 'think',
  description: 'Writes down a thought. Nothing happens but that it stands in the conversation.',
  parameters: {
    type: 'object',
    properties: { thought: { type: 'string', description: 'The thought.' } },
    required: ['thought'],
    additionalProperties: false,
  },
}

/** The tools that an agent has. */
export function toolsFor(_team: TeamDefinition, agent: AgentDefinition): ToolSpec[] {
  const tools: ToolSpec[] = []
  if (canDelegate(agent)) {
    tools.push({
      name: 'transfer_task',
      description: 'Hands a task to an agent, waits for it, and returns its result.',
      parameters: agentArguments(agent.subAgents),
    })
    if (agent.toolsets.includes('background_agents')) tools.push(...background(agent.subAgents))
  }
  if (agent.toolsets.includes('think')) tools.push(think)
  return tools
}

/** Accepted answers of one session of an agent in one round, at most. */
export const mostAnswers = (team: TeamDefinition, agent: AgentDefinition): number =>
  agent.maxIterations ?? (toolsFor(team, agent).length > 0 ? DEFAULT_MAX_ITERATIONS : MAX_ITERATIONS_NO_TOOLS)
