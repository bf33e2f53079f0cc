import type { ModelPrices, PricesFrom } from '../domain/team.ts'
import type { AskedModel } from '../ports.ts'
import { readEntry } from './entry.ts'

/** What scripts/prices.ts writes and table.json holds. */
export interface TableFile {
  readonly source: { readonly name: string; readonly version: string; readonly date: string }
  /** by provider, as team files name it */
  readonly providers: { readonly [provider: string]: ProviderPrices }
}

export interface ProviderPrices {
  /** regular expression of the origins (`https://api.openai.com`) that the price list is for */
  readonly address: string
  /** by id: a price as entry.ts writes it, or `= id` for another name of the model with that id */
  readonly models: { readonly [id: string]: string }
}

export interface PriceTable {
  /** Everything known of a model's price, or undefined. Ids are compared exactly. */
  of(model: AskedModel): ModelPrices | undefined
}

const ALIAS = '= '
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

export function priceTable(file: TableFile): PriceTable {
  const { name, version, date } = file.source
  const source = `${name} ${version} (${date})`
  return {
    of({ provider, model, baseUrl }) {
      if (!Object.hasOwn(file.providers, provider)) return undefined
      const { address, models } = file.providers[provider]!
      if (baseUrl !== undefined && !isAt(baseUrl, address)) return undefined
      const entry = entryOf(models, model)
      if (entry === undefined) return undefined
      const others = othersOf(models, model, entry)
      return { source, schedule: readEntry(entry), ...(Object.keys(others).length > 0 && { others }) }
    },
  }
}

/** What another host charges for a model of the same name is not known; nobody charges on loopback. */
function isAt(baseUrl: string, address: string): boolean {
  if (!URL.canParse(baseUrl)) return false
  const { hostname, origin } = new URL(baseUrl)
  return LOOPBACK.test(hostname) || new RegExp(`^(?:${address})$`).test(origin)
}

/** The price behind an id, through its alias if it is one. */
export function entryOf(models: ProviderPrices['models'], id: string): string | undefined {
  const entry = Object.hasOwn(models, id) ? models[id]! : undefined
  return entry?.startsWith(ALIAS) ? models[entry.slice(ALIAS.length)] : entry
}

/** What the id of a snapshot has after the model's: a date (`2024-08-06`, `20250514`, `08-2024`, `2603`) or a number (`001`). */
const SNAPSHOT = /^(?:\d{4}-\d\d-\d\d|\d\d-\d{4}|\d\d-\d\d|\d{8}|\d{6}|\d{3,4})$/
/** Behind the newest of a family may be any of its versions too: `3`, `4.3`, `2-1212`. */
const VERSION = /^\d+(?:[.-]\d+)*$/

/**
 * The snapshots of a model that cost something else: a provider may answer with one of them where `id` was asked for.
 * `-latest` is no part of a name. A model whose id goes on otherwise (`o3-deep-research`) is another one, which does not
 * answer for `o3`.
 */
function othersOf(models: ProviderPrices['models'], id: string, entry: string): { [id: string]: PricesFrom[] } {
  const name = id.replace(/-latest$/, '')
  const suffix = name === id ? SNAPSHOT : VERSION
  const others: { [id: string]: PricesFrom[] } = {}
  for (const other of Object.keys(models)) {
    if (!other.startsWith(`${name}-`) || !suffix.test(other.slice(name.length + 1))) continue
    const price = entryOf(models, other)!
    if (price !== entry) others[other] = readEntry(price)
  }
  return others
}
