import { DEFAULT_MAX_ITERATIONS } from '../domain/limits.ts'
import type { AgentDefinition, BudgetDefinition, ToolsetName } from '../domain/team.ts'
import { KEYS, refusal, TOOLSETS } from './keys.ts'
import { dotted, type Place } from './problems.ts'
import { readPotNames } from './read-budgets.ts'
import { cut, type Reader } from './reader.ts'
import { didYouMean } from './suggest.ts'
import type { Entry, MapTree, Tree } from './yaml-tree.ts'

/** Looks the model of an agent up: its key in `models`; undefined: there is none, and that is reported. */
export type FindModel = (name: string, at: Place) => string | undefined

/** What an agent may name. */
export interface TeamNames {
  readonly agents: ReadonlySet<string>
  readonly models: FindModel
  readonly budgets: ReadonlyMap<string, BudgetDefinition>
}

/** One entry of `agents`. What is wrong is reported. */
export function readAgent(reader: Reader, entry: Entry, names: TeamNames): AgentDefinition | undefined {
  if (!reader.name(entry, 'an agent')) return undefined
  const fields = reader.section(entry, 'agents.*')
  if (!fields) return undefined
  const model = readAgentModel(reader, entry, fields.get('model'), names.models)
  const subAgents = readSubAgents(reader, entry.key, fields.get('sub_agents'), names.agents)
  const named = fields.get('sub_agents')?.value
  // names that are wrong have been reported; here it matters that there are some
  const delegates = named?.kind === 'list' && named.items.length > 0
  const toolsets = readToolsets(reader, fields.get('toolsets'), delegates)
  const atEnd = reader.oneOf(fields.get('at_end'), ['stop', 'wait'])
  const maxIterations = readMaxIterations(reader, fields.get('max_iterations'))
  const budgets = readPotNames(reader, fields.get('budgets'), names.budgets)
  const definition = {
    name: entry.key,
    description: reader.text(fields.get('description')?.value) ?? '',
    instruction: reader.text(fields.get('instruction')?.value) ?? '',
  }
  reader.text(fields.get('welcome_message')?.value)
  if (model === undefined) return undefined
  return {
    ...definition,
    model,
    subAgents,
    toolsets,
    maxIterations,
    ...(atEnd && { atEnd }),
    ...(budgets.length > 0 && { budgets }),
  }
}

function readAgentModel(
  reader: Reader,
  agent: Entry,
  entry: Entry | undefined,
  findModel: FindModel,
): string | undefined {
  const name = reader.text(entry?.value)
  if (name && entry) return findModel(name, entry.value)
  if (name === '' || !entry || reader.isEmpty(entry.value))
    reader.problems.error(
      agent.at,
      `"${dotted(agent.at.path)}" must say "model": a name of "models", or provider/model such as openai/gpt-4o`,
    )
  return undefined
}

/** docker-agent's 0 means "without end", which nothing here is. */
function readMaxIterations(reader: Reader, entry: Entry | undefined): number | null {
  if (entry?.value.kind === 'scalar' && entry.value.text === '0') {
    reader.problems.unsupported(
      entry.value,
      `"${dotted(entry.value.path)}" is 0, without end: every session has an end here; leave the key out for ${DEFAULT_MAX_ITERATIONS} answers, or give a number above 0`,
    )
    return null
  }
  return reader.integer(entry, 1, Number.MAX_SAFE_INTEGER) ?? null
}

function readSubAgents(reader: Reader, self: string, entry: Entry | undefined, names: ReadonlySet<string>): string[] {
  const found: string[] = []
  for (const item of reader.list(entry)) {
    const name = reader.text(item)
    if (name === undefined) {
      if (item.kind === 'scalar') reader.problems.error(item, `"${dotted(item.path)}" must be the name of an agent`)
    } else if (names.has(name)) {
      if (found.includes(name)) reader.problems.warning(item, `the sub-agent "${name}" is named twice`)
      else found.push(name)
      if (name === self)
        reader.problems.warning(item, `the agent "${self}" is its own sub-agent: it may start copies of itself`)
    } else if (/[/:]/.test(name)) {
      reader.problems.unsupported(
        item,
        `"${cut(name)}" is not supported by this version: a sub-agent from outside the file`,
      )
    } else {
      reader.problems.error(item, `there is no agent "${cut(name)}"${didYouMean(name, names)}`)
    }
  }
  return found
}

function readToolsets(reader: Reader, entry: Entry | undefined, delegates: boolean): ToolsetName[] {
  const found: ToolsetName[] = []
  for (const item of reader.list(entry)) {
    if (item.kind !== 'map') {
      reader.problems.error(item, `"${dotted(item.path)}" must be a mapping with a "type", as in "- type: think"`)
      continue
    }
    const type = readToolsetType(reader, item)
    if (type === undefined) continue
    if (type === 'background_agents' && !delegates)
      reader.problems.error(item, 'the toolset "background_agents" needs "sub_agents" that it can start')
    reader.fields(item, 'agents.*.toolsets[]')
    if (!found.includes(type)) found.push(type)
  }
  return found
}

function readToolsetType(reader: Reader, item: MapTree): ToolsetName | undefined {
  const entry = item.entries.get('type')
  const type = reader.text(entry?.value)
  if (!entry || !type) {
    if (!entry || entry.value.kind === 'scalar') reader.problems.error(item, missingType(item))
    return undefined
  }
  const known = TOOLSETS.get(type)
  if (!known) {
    reader.problems.error(entry.value, `there is no toolset "${cut(type)}"${didYouMean(type, TOOLSETS.keys())}`)
    return undefined
  }
  if (known.fate === 'supported') return type as ToolsetName
  const started = type === 'mcp' ? startedBy(item) : undefined
  if (started) reader.problems.unsupported(started.at, refusal(`${type} with ${started.key}`, startedFate(started)))
  else reader.problems.unsupported(entry.value as Tree, refusal(type, known))
  return undefined
}

const missingType = (item: MapTree) =>
  `"${dotted(item.path)}" must say "type": one of ${[...TOOLSETS]
    .filter(([, k]) => k.fate === 'supported')
    .map(([t]) => t)
    .join(', ')}`

/** MCP servers that are started here, in contrast to remote ones. */
const startedBy = (item: MapTree): Entry | undefined => item.entries.get('command') ?? item.entries.get('ref')
const startedFate = (entry: Entry) => KEYS.get('agents.*.toolsets[]')!.get(entry.key)!
