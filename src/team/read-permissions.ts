import { matches, type Permissions, parsePattern } from '../domain/permissions.ts'
import type { AgentDefinition } from '../domain/team.ts'
import { dotted } from './problems.ts'
import { cut, type Reader } from './reader.ts'
import type { Entry } from './yaml-tree.ts'

const LISTS = ['allow', 'ask', 'deny'] as const
const MAX_PATTERNS = 100
const MAX_PATTERN = 256

/**
 * The section `permissions`: lists of patterns.
 * @param tools the names of all tools that the team's agents have
 */
export function readPermissions(
  reader: Reader,
  entry: Entry | undefined,
  tools: ReadonlySet<string>,
): Permissions | undefined {
  const fields = entry && reader.section(entry, 'permissions')
  if (!fields) return undefined
  const lists = LISTS.map((name) => [name, readPatterns(reader, fields.get(name), tools)] as const)
  const given = lists.filter(([, patterns]) => patterns.length > 0)
  return given.length > 0 ? Object.fromEntries(given) : undefined
}

function readPatterns(reader: Reader, entry: Entry | undefined, tools: ReadonlySet<string>): string[] {
  const found: string[] = []
  const items = reader.list(entry)
  if (entry && items.length > MAX_PATTERNS)
    reader.problems.error(entry.value, `"${dotted(entry.value.path)}" has more than ${MAX_PATTERNS} patterns`)
  for (const item of items) {
    const text = reader.text(item)
    const { tool, args } = parsePattern(text ?? '')
    if (text === undefined || tool.trim() === '' || text.length > MAX_PATTERN) {
      if (item.kind === 'scalar')
        reader.problems.error(
          item,
          `"${dotted(item.path)}" must be a pattern of tool names, such as transfer_task, *_background_agent or transfer_task:agent=writer, of at most ${MAX_PATTERN} characters`,
        )
      continue
    }
    const bracket = [tool, ...args.map(([, value]) => value)].join('').match(/[[\]{}]/)
    if (bracket)
      reader.problems.error(
        item,
        `"${cut(text)}" is not supported by this version: * and ? are the only signs that stand for others`,
      )
    // harmless, and of a file that is written for more tools than there are here
    else if (![...tools].some((name) => matches(tool, name)))
      reader.problems.warning(item, `no agent of this team has a tool that "${cut(text)}" names`)
    found.push(text)
  }
  return found
}

/** Names of tools that agents have, as toolsets and sub-agents give them. */
export const toolNames = (agents: readonly AgentDefinition[]): ReadonlySet<string> =>
  new Set(
    agents.flatMap((a) => [
      ...(a.subAgents.length > 0 ? ['transfer_task'] : []),
      ...(a.toolsets.includes('think') ? ['think'] : []),
      ...(a.toolsets.includes('background_agents') ? BACKGROUND : []),
    ]),
  )

const BACKGROUND = ['run', 'list', 'view', 'stop']
  .map((verb) => `${verb}_background_agent${verb === 'list' ? 's' : ''}`)
  .concat('wait_background_agents')
