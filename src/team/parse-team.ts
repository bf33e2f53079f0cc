import { basename, extname } from 'node:path'
import { LineCounter } from 'yaml'
import type { AgentDefinition, ModelDefinition, TeamDefinition } from '../domain/team.ts'
import { type Place, type Problem, Problems } from './problems.ts'
import { type FindModel, readAgent, type TeamNames } from './read-agent.ts'
import { readPots, readRunBudget } from './read-budgets.ts'
import {
  type CheckScript,
  type KnowsPrice,
  type ModelContext,
  type ReadModel,
  readInlineModel,
  readModel,
} from './read-model.ts'
import { readPermissions, toolNames } from './read-permissions.ts'
import { readProviders } from './read-providers.ts'
import { cut, type Fields, Reader } from './reader.ts'
import { didYouMean } from './suggest.ts'
import { type Entry, type MapTree, readTree } from './yaml-tree.ts'

export interface ParseOptions {
  /** how problems name the file; the team's name is its base name without extension */
  readonly file: string
  /** what docker-agent knows and this version does not do is left out with a warning instead of refused */
  readonly lenient?: boolean
  /** checks the scripts of scripted models; without it they are taken as they are */
  readonly checkScript?: CheckScript
  /** without it no price is known, and every model without a `cost` gives a warning */
  readonly knowsPrice?: KnowsPrice
}

export interface ParsedTeam {
  /** absent when any problem is an error */
  readonly team?: TeamDefinition
  /** in the order of the text */
  readonly problems: Problem[]
}

export const MAX_TEAM_BYTES = 1_000_000
export const TOO_LARGE = `the file is larger than ${MAX_TEAM_BYTES.toLocaleString('en')} bytes`
export const MAX_AGENTS = 100
export const MAX_MODELS = 100
/** docker-agent's versions of the format that are known to use the same keys for what is read here. */
const HIGHEST_VERSION = 16

const TOP: Place = { path: '', offset: 0 }

/**
 * Reads a team file: YAML 1.2 with docker-agent's keys. Never throws for what is in the text; everything that is wrong
 * is a problem with its line and column.
 */
export function parseTeam(text: string, options: ParseOptions): ParsedTeam {
  const lines = new LineCounter()
  const problems = new Problems(options.file, lines, options.lenient ?? false)
  const team = read(text, options, lines, problems)
  return team && !problems.failed ? { team, problems: problems.list() } : { problems: problems.list() }
}

function read(text: string, options: ParseOptions, lines: LineCounter, problems: Problems): TeamDefinition | undefined {
  if (Buffer.byteLength(text) > MAX_TEAM_BYTES) {
    problems.error(TOP, TOO_LARGE)
    return undefined
  }
  const tree = readTree(text, lines, problems)
  if (!tree) return undefined
  if (tree.kind !== 'map') {
    problems.error(tree, 'a team file is a mapping that begins with keys such as "agents"')
    return undefined
  }
  const reader = new Reader(problems)
  const fields = reader.fields(tree, '')
  readVersion(reader, fields.get('version'))
  const description = readMetadata(reader, fields.get('metadata'))
  const context: ModelContext = {
    providers: readProviders(reader, fields.get('providers')),
    ...(options.checkScript && { checkScript: options.checkScript }),
    ...(options.knowsPrice && { knowsPrice: options.knowsPrice }),
  }
  const models = new Models(reader, fields.get('models'), context)
  const budget = readRunBudget(reader, fields.get('budget'))
  const budgets = readPots(reader, fields.get('budgets'))
  const agents = readAgents(reader, tree, fields, { models: models.find, budgets })
  const permissions = readPermissions(reader, fields.get('permissions'), toolNames(agents))
  const said = description ?? agents[0]?.description
  return {
    shape: 1,
    name: basename(options.file, extname(options.file)),
    ...(said && { description: said }),
    agents,
    models: models.definitions(),
    ...(permissions && { permissions }),
    ...(budget && { budget }),
    ...(budgets.size > 0 && { budgets: Object.fromEntries(budgets) }),
  }
}

function readVersion(reader: Reader, entry: Entry | undefined): void {
  const text = reader.text(entry?.value)
  if (text === undefined || !entry) return
  if (!/^\d{1,3}$/.test(text) || Number(text) > HIGHEST_VERSION)
    reader.problems.error(
      entry.value,
      `"version" must be a whole number from 0 to ${HIGHEST_VERSION}, not "${cut(text)}"`,
    )
}

function readMetadata(reader: Reader, entry: Entry | undefined): string | undefined {
  const map = reader.map(entry)
  if (!map) return undefined
  return reader.text(reader.fields(map, 'metadata').get('description')?.value)
}

type KnownNames = Omit<TeamNames, 'agents'>

/** The agent named `root` comes first, as docker-agent begins with it. */
function readAgents(reader: Reader, tree: MapTree, fields: Fields, known: KnownNames): AgentDefinition[] {
  const section = fields.get('agents')
  const entries = [...(reader.map(section)?.entries.values() ?? [])]
  // what is there and no mapping has been reported already
  if (entries.length === 0 && (!section || section.value.kind === 'map' || reader.isEmpty(section.value)))
    reader.problems.error(section?.at ?? tree, 'a team needs at least one agent under "agents"')
  if (entries.length > MAX_AGENTS)
    reader.problems.error(
      entries[MAX_AGENTS]!.at,
      `a team has at most ${MAX_AGENTS} agents; this one has ${entries.length}`,
    )
  const names = new Set(entries.map((e) => e.key))
  const agents = entries
    .map((entry) => readAgent(reader, entry, { ...known, agents: names }))
    .filter((agent) => agent !== undefined)
  return agents.toSorted((a, b) => Number(b.name === 'root') - Number(a.name === 'root'))
}

/** The models of the file, and those that agents name as `provider/model`. */
class Models {
  readonly #reader: Reader
  readonly #context: ModelContext
  readonly #models = new Map<string, ReadModel>()

  constructor(reader: Reader, section: Entry | undefined, context: ModelContext) {
    this.#reader = reader
    this.#context = context
    const entries = [...(reader.map(section)?.entries.values() ?? [])]
    if (entries.length > MAX_MODELS)
      reader.problems.error(
        entries[MAX_MODELS]!.at,
        `a team has at most ${MAX_MODELS} models; this one has ${entries.length}`,
      )
    for (const entry of entries) this.#models.set(entry.key, readModel(reader, entry, context))
  }

  readonly find: FindModel = (name, at) => {
    const { problems } = this.#reader
    if (!this.#models.has(name)) {
      if (name.includes(',')) {
        problems.error(at, `"${cut(name)}" is not supported by this version: an agent uses one model`)
        return undefined
      }
      if (!name.includes('/')) {
        const hint = didYouMean(name, this.#models.keys()) || '; define it under "models", or write provider/model'
        problems.error(at, `there is no model "${cut(name)}"${hint}`)
        return undefined
      }
      this.#models.set(name, readInlineModel(this.#reader, at, name, this.#context))
    }
    if (problems.lenient && this.#models.get(name) === 'left out')
      problems.error(at, `the model "${cut(name)}" is left out; the agent needs another one`)
    return name
  }

  definitions(): { [name: string]: ModelDefinition } {
    const whole = [...this.#models].filter((m): m is [string, ModelDefinition] => typeof m[1] === 'object')
    return Object.fromEntries(whole)
  }
}
