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
  /** regular expression of the addresses that the price list is for */
  readonly address: string
  /** by id: a price as entry.ts writes it, or `= id` for another name of the model with that id */
  readonly models: { readonly [id: string]: string }
}

export interface PriceTable {
  /** Everything known of a model's price, or undefined. Ids are compared exactly. */
  of(model: AskedModel): ModelPrices | undefined
}

const ALIAS = '= '
const LOOPBACK = /^https?:\/\/(localhost|127(\.\d+){3}|\[::1\])(:|\/|$)/

export function priceTable(file: TableFile): PriceTable {
  const { name, version, date } = file.source
  const source = `${name} ${version} (${date})`
  return {
    of({ provider, model, baseUrl }) {
      if (!Object.hasOwn(file.providers, provider)) return undefined
      const { address, models } = file.providers[provider]!
      // what another host charges for a model of the same name is not known; nobody charges on loopback
      if (baseUrl !== undefined && !LOOPBACK.test(baseUrl) && !new RegExp(`^(?:${address})`).test(baseUrl))
        return undefined
      const entry = entryOf(models, model)
      if (entry === undefined) return undefined
      const others = othersOf(models, model, entry)
      return { source, schedule: readEntry(entry), ...(Object.keys(others).length > 0 && { others }) }
    },
  }
}

/** The price behind an id, through its alias if it is one. */
export function entryOf(models: ProviderPrices['models'], id: string): string | undefined {
  const entry = Object.hasOwn(models, id) ? models[id]! : undefined
  return entry?.startsWith(ALIAS) ? models[entry.slice(ALIAS.length)] : entry
}

/**
 * Models that a provider may answer with where `id` was asked for, and that cost something else: those whose id goes on
 * after it, as the snapshots of a model do. `-latest` is no part of a name.
 */
function othersOf(models: ProviderPrices['models'], id: string, entry: string): { [id: string]: PricesFrom[] } {
  const stem = `${id.replace(/-latest$/, '')}-`
  const others: { [id: string]: PricesFrom[] } = {}
  for (const other of Object.keys(models)) {
    const price = other.startsWith(stem) && other !== id ? entryOf(models, other)! : entry
    if (price !== entry) others[other] = readEntry(price)
  }
  return others
}
