import { GROUP_SIZE } from '../domain/limits.ts'
import { canDelegate, findAgent } from '../domain/team.ts'
import type { Drive } from './drive.ts'

/**
 * How many invocations at once each child of a session may use with its own subtree. All children of one session get the
 * same, so that whoever holds a child's header knows how many of its siblings there is room for.
 *
 * Groups share the list's width equally; children that may delegate themselves get the square root of it, which leaves as
 * many of them running as each may have below; leaves need one.
 */
export function childWidth(d: Pick<Drive, 'header' | 'agent' | 'team' | 'run'>): number {
  const { width } = d.header
  if (d.agent === null) {
    const tasks = d.run.tasks ?? 0
    if (d.header.kind === 'root' && tasks > GROUP_SIZE)
      return Math.max(1, Math.floor(width / Math.ceil(tasks / GROUP_SIZE)))
    return d.team.agents.some(canDelegate) ? delegatingWidth(width) : 1
  }
  const delegating = d.agent.subAgents.some((name) => {
    const agent = findAgent(d.team, name)
    return agent !== undefined && canDelegate(agent)
  })
  return delegating ? delegatingWidth(width) : 1
}

const delegatingWidth = (width: number) => Math.max(1, Math.floor(Math.sqrt(width)))
