import { LineCounter } from 'yaml'
import { TENANT } from '../domain/ids.ts'
import { type Amount, formatUsd, parseUsd, UNLIMITED } from '../domain/money.ts'
import type { Per } from '../domain/outer-limit.ts'
import { MAX_TEAM_BYTES, TOO_LARGE } from './parse-team.ts'
import { type Place, type Problem, Problems } from './problems.ts'
import { cut, Reader } from './reader.ts'
import { didYouMean } from './suggest.ts'
import { type Entry, type MapTree, readTree, type Tree } from './yaml-tree.ts'

/** One limit over time, as the file says it. */
export interface LimitRule {
  /** null: each tenant by itself */
  readonly tenant: string | null
  readonly of:
    | { readonly kind: 'tenant' }
    | { readonly kind: 'team'; readonly team: string }
    | { readonly kind: 'tag'; readonly tag: string }
  readonly per: Per
  readonly limit: Amount
}

export interface ParsedLimits {
  /** absent when any problem is an error */
  readonly rules?: readonly LimitRule[]
  /** in the order of the text */
  readonly problems: Problem[]
}

const KEYS = ['tenant', 'team', 'tag', 'per', 'max_cost', 'max_tokens'] as const
const MAX_RULES = 100
const MAX_TEXT = 128
/** Beyond this no sum of money can be meant. */
const MOST_USD = parseUsd('100000000')
const TOP: Place = { path: '', offset: 0 }

/** Reads `limits.yaml`. Never throws for what is in the text; everything that is wrong is a problem with its place. */
export function parseLimits(text: string, options: { readonly file: string }): ParsedLimits {
  const lines = new LineCounter()
  const problems = new Problems(options.file, lines, false)
  const rules = read(text, problems, lines)
  return problems.failed ? { problems: problems.list() } : { rules, problems: problems.list() }
}

function read(text: string, problems: Problems, lines: LineCounter): readonly LimitRule[] {
  if (Buffer.byteLength(text) > MAX_TEAM_BYTES) {
    problems.error(TOP, TOO_LARGE)
    return []
  }
  if (text.trim() === '') {
    problems.error(TOP, 'the file is empty; it needs the key "limits" with a list')
    return []
  }
  const tree = readTree(text, lines, problems)
  if (!tree) return []
  if (tree.kind !== 'map') {
    problems.error(tree, 'the file is a mapping with the key "limits"')
    return []
  }
  const reader = new Reader(problems)
  for (const entry of tree.entries.values())
    if (entry.key !== 'limits')
      problems.error(entry.at, `"${cut(entry.key)}" is not a key of this file: there is "limits"`)
  if (!tree.entries.has('limits')) problems.error(tree, 'the file needs the key "limits" with a list')
  const items = reader.list(tree.entries.get('limits'))
  if (items.length > MAX_RULES) problems.error(items[MAX_RULES]!, `there may be at most ${MAX_RULES} limits`)
  const rules: LimitRule[] = []
  const seen = new Set<string>()
  for (const item of items) {
    const rule = readRule(reader, item)
    if (!rule) continue
    const key = JSON.stringify([rule.tenant, rule.of, rule.per])
    if (seen.has(key)) problems.error(item, 'this limit stands here twice')
    seen.add(key)
    rules.push(rule)
  }
  return rules
}

function readRule(reader: Reader, item: Tree): LimitRule | undefined {
  const { problems } = reader
  if (item.kind !== 'map') {
    problems.error(item, 'a limit is a mapping, such as { tenant: acme, per: day, max_cost: 25.00 }')
    return undefined
  }
  for (const { key, at } of item.entries.values()) {
    if (!KEYS.some((k) => k === key))
      problems.error(at, `"${cut(key)}" is not a key of a limit${didYouMean(key, KEYS)}`)
  }
  const of = readWhose(reader, item)
  const tenant = readTenant(reader, item.entries.get('tenant'))
  const per = reader.oneOf(item.entries.get('per'), ['day', 'month'])
  if (!item.entries.has('per')) problems.error(item, 'a limit needs "per": day or month')
  const limit = readAmount(reader, item)
  return of && tenant !== undefined && per && limit ? { tenant, of, per, limit } : undefined
}

function readTenant(reader: Reader, entry: Entry | undefined): string | null | undefined {
  const text = reader.text(entry?.value)
  if (text === undefined || text === '*') return null
  if (TENANT.test(text)) return text
  reader.problems.error(entry!.value, `"${cut(text)}" is no name of a tenant; "*" means each of them`)
  return undefined
}

function readWhose(reader: Reader, item: MapTree): LimitRule['of'] | undefined {
  const [team, tag] = [item.entries.get('team'), item.entries.get('tag')]
  if (team && tag) {
    reader.problems.error(tag.at, 'a limit is of a team or of a tag, not of both')
    return undefined
  }
  const entry = team ?? tag
  if (!entry) return { kind: 'tenant' }
  const text = reader.text(entry.value)
  if (text === undefined || text === '' || Buffer.byteLength(text) > MAX_TEXT) {
    reader.problems.error(entry.value, `"${entry.key}" must be a name of at most ${MAX_TEXT} bytes`)
    return undefined
  }
  return team ? { kind: 'team', team: text } : { kind: 'tag', tag: text }
}

function readAmount(reader: Reader, item: MapTree): Amount | undefined {
  const [cost, tokens] = [item.entries.get('max_cost'), item.entries.get('max_tokens')]
  if (!cost && !tokens) {
    reader.problems.error(item, 'a limit needs "max_cost" (USD), "max_tokens" or both')
    return undefined
  }
  const usd = cost ? readCost(reader, cost.value) : UNLIMITED
  const tok = tokens ? reader.integer(tokens, 0, Number.MAX_SAFE_INTEGER) : undefined
  if (tokens && tok === undefined && reader.isEmpty(tokens.value))
    reader.problems.error(tokens.value, '"max_tokens" needs a number')
  if (usd === undefined || (tokens && tok === undefined)) return undefined
  return { usd, tok: tok === undefined ? UNLIMITED : BigInt(tok) }
}

/** Money is read from the text of the file, so that no float stands between it and the books. */
function readCost(reader: Reader, tree: Tree): bigint | undefined {
  const text = tree.kind === 'scalar' ? tree.text : ''
  if (/^\d{1,20}(\.\d{1,12})?$/.test(text)) {
    const usd = parseUsd(text)
    if (usd <= MOST_USD) return usd
  }
  const most = formatUsd(MOST_USD)
  reader.problems.error(
    tree,
    `"max_cost" is ${cut(text) || 'no number'}: it must be an amount in USD from 0 to ${most}, such as 25.00`,
  )
  return undefined
}
