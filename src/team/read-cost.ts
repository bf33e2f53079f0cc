import { formatUsd, parseUsd } from '../domain/money.ts'
import type { PricePerMillion } from '../domain/team.ts'
import { dotted } from './problems.ts'
import { cut, type Reader } from './reader.ts'
import type { Entry, Tree } from './yaml-tree.ts'

/** Decimals of USD per million tokens: with more, a token would cost a broken number of pico-USD. */
const DECIMALS = 6
/** USD per million tokens; a price above it is a slip. */
const HIGHEST = parseUsd('1000000')

const FIELDS = [
  ['input', 'input'],
  ['output', 'output'],
  ['cache_read', 'cacheRead'],
  ['cache_write', 'cacheWrite'],
  ['cache_write_1h', 'cacheWrite1h'],
] as const satisfies readonly (readonly [string, keyof PricePerMillion])[]

/** `models.x.cost`. Prices are read from the text of the file, so that no float stands between it and the books. */
export function readCost(reader: Reader, entry: Entry | undefined): PricePerMillion | undefined {
  const map = reader.map(entry)
  if (!map || !entry) return undefined
  const fields = reader.fields(map, 'models.*.cost')
  const cost: { -readonly [K in keyof PricePerMillion]?: string } = {}
  let whole = true
  for (const [key, name] of FIELDS) {
    const price = readPrice(reader, fields.get(key)?.value)
    if (price === null) whole = false
    else if (price !== undefined) cost[name] = price
    else if (key === 'input' || key === 'output') {
      reader.problems.error(entry.at, `"${dotted(entry.at.path)}" must say "${key}", in USD per million tokens`)
      whole = false
    }
  }
  if (!whole) return undefined
  const missing = (['cache_read', 'cache_write'] as const).filter((key) => !fields.has(key))
  if (missing.length > 0)
    reader.problems.warning(
      entry.at,
      `"${dotted(entry.at.path)}" has no ${missing.join(' and no ')}: calls that use the prompt cache so will have no price`,
    )
  return cost as PricePerMillion
}

/** A price in its shortest form, so that 3, 3.0 and "3.00" are one price. Null: it is wrong, and reported. */
function readPrice(reader: Reader, tree: Tree | undefined): string | null | undefined {
  if (!tree || (tree.kind === 'scalar' && tree.value === null)) return undefined
  const text = tree.kind === 'scalar' ? tree.text : ''
  const wrong = (why: string) => {
    reader.problems.error(tree, `"${dotted(tree.path)}" is ${cut(text) || 'no number'}: ${why}`)
    return null
  }
  if (/^-\d/.test(text)) return wrong('a price cannot be negative')
  const m = /^\d{1,20}(?:\.(\d{1,30}))?$/.exec(text)
  if (!m) return wrong('a price is a plain decimal number of USD per million tokens, such as 0.25')
  if ((m[1] ?? '').replace(/0+$/, '').length > DECIMALS)
    return wrong(`a price has at most ${DECIMALS} decimals per million tokens`)
  const pico = parseUsd(text)
  if (pico > HIGHEST) return wrong('a price is at most 1000000 USD per million tokens')
  return formatUsd(pico)
}
