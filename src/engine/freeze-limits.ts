import { DEFAULT_LIMITS, type Limits } from '../domain/configured-limits.ts'
import { type InputIssue, SubledgerError } from '../domain/errors.ts'
import { DEFAULT_MAX_ITERATIONS } from '../domain/limits.ts'
import type { TeamDefinition } from '../domain/team.ts'
import { mostAnswers } from './tools/specs.ts'

/**
 * The team with the limits that hold for its run. They are stored with it, so that a run goes on by what it began with:
 * two workers never judge one answer by two limits.
 * @throws SubledgerError bad_request where the team asks for more than this deployment allows
 */
export function freezeLimits(team: TeamDefinition, limits: Limits): TeamDefinition {
  const issues: InputIssue[] = team.agents
    .filter((agent) => agent.maxIterations !== null && agent.maxIterations > limits.turns)
    .map((agent) => ({
      path: '/team',
      message: `the agent "${agent.name}" has max_iterations ${agent.maxIterations}, and ${limits.turns} are the most here`,
    }))
  if (issues.length > 0)
    throw new SubledgerError('bad_request', `The team "${team.name}" cannot run here: ${issues[0]!.message}.`, {
      issues,
    })
  const agents =
    limits.turns < DEFAULT_MAX_ITERATIONS
      ? team.agents.map((agent) => ({ ...agent, maxIterations: Math.min(mostAnswers(team, agent), limits.turns) }))
      : team.agents
  const usual = limits.depth === DEFAULT_LIMITS.depth && limits.width === DEFAULT_LIMITS.width
  return { ...team, agents, ...(!usual && { limits: { depth: limits.depth, width: limits.width } }) }
}
