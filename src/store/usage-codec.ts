/** Usage items and their folds. Rows stand in bodies, as JSON: a fold of many tags is long, and deflates well. */
import { type ReportRow, tagList, type UsageDay, type UsageItem } from '../domain/report.ts'
import { type BookRow, CALL_OUTCOMES, COUNTS, NO_TOTALS, saturated, type Totals } from '../domain/usage.ts'
import { BadItemError, ItemReader, present } from './item-reader.ts'
import { parseUsageItemKey, parseUsagePartition } from './keys.ts'
import { A, ITEM_VERSION, OUTCOME } from './table.ts'
import type { Item } from './table-client.ts'
import { decodeTags, encodeTags, whole } from './value-codecs.ts'

/** Agent, model, outcome, the counts in the order of COUNTS, and the cost in pico-USD. */
type RowText = readonly [string, string, string, readonly number[], string]
/** Rows that have team and tags in common. */
type GroupText = readonly [string, readonly (readonly [string, string])[], readonly RowText[]]

const rowText = ({ agent, model, outcome, totals }: BookRow): RowText => [
  agent,
  model,
  OUTCOME[outcome],
  COUNTS.map((field) => whole(field, totals[field])),
  totals.cost.toString(),
]

/** Attributes of a usage item without its key and body. */
export const encodeUsageItem = (item: UsageItem): Item =>
  present({
    [A.version]: ITEM_VERSION,
    [A.at]: item.at,
    [A.v]: item.v,
    [A.team]: item.team,
    [A.tags]: encodeTags(item.tags),
    [A.before]: item.before,
    [A.seal]: item.seal ? 1 : null,
  })

export const usageItemBody = (item: UsageItem): string =>
  JSON.stringify({ rows: item.rows.map(rowText), ...(item.base.length > 0 && { base: item.base.map(rowText) }) })

/** @throws BadItemError naming what is missing or of the wrong type */
export function decodeUsageItem(item: Item, body: string | undefined): UsageItem {
  const [pk, sk] = [String(item[A.pk]), String(item[A.sk])]
  const where = `${pk} ${sk}`
  const r = new ItemReader(item, A, where)
  const { runId, round, from } = parseUsageItemKey(sk)
  const value = parse(body, where) as { rows?: unknown; base?: unknown } | null
  return {
    tenant: parseUsagePartition(pk).tenant,
    runId,
    round,
    at: r.whole('at'),
    from,
    v: r.whole('v'),
    team: r.text('team'),
    tags: decodeTags(r.required('tags'), where),
    rows: readRows(value?.rows, where),
    base: value?.base === undefined ? [] : readRows(value.base, where),
    before: r.wholeOrNull('before'),
    seal: r.flag('seal'),
  }
}

export function foldBody(rows: readonly ReportRow[]): string {
  const groups = Map.groupBy(rows, (row) => JSON.stringify([row.team, tagList(row.tags)]))
  return JSON.stringify([...groups.values()].map((g) => [g[0]!.team, tagList(g[0]!.tags), g.map(rowText)]))
}

/** @throws BadItemError */
export function readFold(body: string | undefined, where: string): ReportRow[] {
  const groups = parse(body, where)
  if (!Array.isArray(groups)) throw new BadItemError(`${where}: its body is no list`)
  return (groups as GroupText[]).flatMap((group) => {
    if (!Array.isArray(group) || typeof group[0] !== 'string' || !Array.isArray(group[1]))
      throw new BadItemError(`${where}: its body has a group that is none`)
    const [team, tags, rows] = group
    return readRows(rows, where).map((row) => ({ ...row, team, tags: Object.fromEntries(tags) }))
  })
}

/** @throws BadItemError */
export function readNames(body: string | undefined, where: string): ReadonlySet<string> {
  const names = parse(body, where)
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string'))
    throw new BadItemError(`${where}: its body is no list of names`)
  return new Set(names as string[])
}

export function decodeUsageDay(item: Item): UsageDay {
  const [pk, sk] = [String(item[A.pk]), String(item[A.sk])]
  const r = new ItemReader(item, A, `${pk} ${sk}`)
  return {
    ...parseUsagePartition(pk),
    closing: r.whole('closing'),
    folded: r.whole('folded'),
    dueAt: r.wholeOrNull('dueAt'),
  }
}

function readRows(value: unknown, where: string): BookRow[] {
  if (!Array.isArray(value)) throw new BadItemError(`${where}: its body has no rows`)
  return value.map((row: RowText) => {
    const outcome = Array.isArray(row) ? CALL_OUTCOMES.find((o) => OUTCOME[o] === row[2]) : undefined
    const [agent, model, , counts, cost] = row
    if (!outcome || typeof agent !== 'string' || typeof model !== 'string' || !Array.isArray(counts))
      throw new BadItemError(`${where}: its body has a row that is none`)
    const totals: { -readonly [K in keyof Totals]: Totals[K] } = { ...NO_TOTALS, cost: readCost(cost, where) }
    for (const [i, field] of COUNTS.entries()) totals[field] = readCount(counts[i], where)
    return { agent, model, outcome, totals }
  })
}

function readCount(value: unknown, where: string): number {
  if (typeof value === 'number' && Number.isInteger(value)) return saturated(value)
  throw new BadItemError(`${where}: ${JSON.stringify(value)} is no count`)
}

function readCost(value: unknown, where: string): bigint {
  if (typeof value === 'string' && /^-?\d+$/.test(value)) return BigInt(value)
  throw new BadItemError(`${where}: ${JSON.stringify(value)} is no amount in pico-USD`)
}

function parse(body: string | undefined, where: string): unknown {
  if (body === undefined) throw new BadItemError(`${where}: attribute ${A.body} (body) is missing`)
  try {
    return JSON.parse(body)
  } catch (cause) {
    throw new BadItemError(`${where}: its body is not JSON`, { cause })
  }
}
