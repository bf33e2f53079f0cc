import { formatUsd, parseUsd } from '../domain/money.ts'
import type { BudgetDefinition } from '../domain/team.ts'
import { parseDuration } from './duration.ts'
import { dotted } from './problems.ts'
import { cut, type Reader } from './reader.ts'
import { didYouMean } from './suggest.ts'
import type { Entry, Tree } from './yaml-tree.ts'

/** A pico-USD has no parts. */
const DECIMALS = 12
/** USD; a limit above it is a slip. */
const HIGHEST = parseUsd('100000000')
/** A time above it is a slip: a year. */
const LONGEST_MS = 366 * 86_400_000
export const MAX_BUDGETS = 20

/** `budget`: the one ceiling of every run of the team. */
export const readRunBudget = (reader: Reader, entry: Entry | undefined): BudgetDefinition | undefined =>
  entry && !reader.isEmpty(entry.value) ? readBudget(reader, entry, 'budget') : undefined

/** `budgets`: pots by name, in the order of the file. Every name of the file is there, also where its limits are wrong. */
export function readPots(reader: Reader, section: Entry | undefined): ReadonlyMap<string, BudgetDefinition> {
  const pots = new Map<string, BudgetDefinition>()
  const entries = [...(reader.map(section)?.entries.values() ?? [])]
  if (entries.length > MAX_BUDGETS)
    reader.problems.error(
      entries[MAX_BUDGETS]!.at,
      `a team has at most ${MAX_BUDGETS} budgets; this one has ${entries.length}`,
    )
  for (const entry of entries)
    if (reader.name(entry, 'a budget')) pots.set(entry.key, readBudget(reader, entry, 'budgets.*') ?? {})
  return pots
}

/** `agents.x.budgets`: names of the pots that an agent draws from. */
export function readPotNames(
  reader: Reader,
  entry: Entry | undefined,
  pots: ReadonlyMap<string, BudgetDefinition>,
): string[] {
  const found: string[] = []
  for (const item of reader.list(entry)) {
    const name = reader.text(item)
    if (name === undefined) {
      if (item.kind === 'scalar') reader.problems.error(item, `"${dotted(item.path)}" must be a name of "budgets"`)
    } else if (!pots.has(name)) {
      const hint = didYouMean(name, pots.keys()) || '; define it under "budgets"'
      reader.problems.error(item, `there is no budget "${cut(name)}"${hint}`)
    } else if (found.includes(name)) reader.problems.warning(item, `the budget "${name}" is named twice`)
    else found.push(name)
  }
  return found
}

function readBudget(reader: Reader, entry: Entry, section: 'budget' | 'budgets.*'): BudgetDefinition | undefined {
  const fields = reader.section(entry, section)
  if (!fields) return undefined
  const [cost, tokens, time] = ['max_cost', 'max_tokens', 'max_time'].map((key) => fields.get(key))
  const given = [cost, tokens, time].filter((field) => field && !reader.isEmpty(field.value))
  // a key that is not known has been reported, and may be meant for one of them
  const stray = entry.value.kind === 'map' && entry.value.entries.size > fields.size
  if (given.length === 0) {
    if (stray) return undefined
    const keys = '"max_cost", "max_tokens" or "max_time"'
    reader.problems.error(entry.at, `"${dotted(entry.at.path)}" limits nothing: it must say ${keys}`)
    return undefined
  }
  const usd = readUsd(reader, cost?.value)
  const most = reader.integer(tokens, 0, Number.MAX_SAFE_INTEGER)
  const timeMs = readTime(reader, time?.value)
  for (const [field, value] of [
    [cost, usd === '0'],
    [tokens, most === 0],
    [time, timeMs === 0],
  ] as const)
    if (field && value)
      reader.problems.warning(field.value, `"${dotted(field.value.path)}" is 0: it lets no call through`)
  return {
    ...(usd !== undefined && { usd }),
    ...(most !== undefined && { tokens: most }),
    ...(timeMs !== undefined && { timeMs }),
  }
}

/** USD out of the text of the file, in its shortest form: no float stands between it and what is held. */
function readUsd(reader: Reader, tree: Tree | undefined): string | undefined {
  if (!tree || reader.isEmpty(tree)) return undefined
  const text = tree.kind === 'scalar' ? tree.text : ''
  const wrong = (why: string) => {
    reader.problems.error(tree, `"${dotted(tree.path)}" is ${cut(text) || 'no number'}: ${why}`)
    return undefined
  }
  if (/^-\d/.test(text)) return wrong('a limit cannot be negative')
  const m = /^\d{1,20}(?:\.(\d{1,30}))?$/.exec(text)
  if (!m) return wrong('a limit is a plain decimal number of USD, such as 0.50')
  if ((m[1] ?? '').replace(/0+$/, '').length > DECIMALS) return wrong(`a limit has at most ${DECIMALS} decimals`)
  const usd = parseUsd(text)
  return usd > HIGHEST ? wrong('a limit is at most 100000000 USD') : formatUsd(usd)
}

function readTime(reader: Reader, tree: Tree | undefined): number | undefined {
  const text = reader.text(tree)
  if (text === undefined || !tree) return undefined
  const ms = parseDuration(text)
  if (ms !== undefined && ms <= LONGEST_MS) return ms
  const why =
    ms === undefined
      ? 'a time is written as 10m, 90s or 1h30m, in whole milliseconds'
      : `a time is at most ${LONGEST_MS / 3_600_000}h`
  reader.problems.error(tree, `"${dotted(tree.path)}" is ${cut(text) || 'empty'}: ${why}`)
  return undefined
}
