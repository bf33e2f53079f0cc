import type { Prices } from '../ports.ts'
import { type PriceTable, priceTable } from './price-table.ts'

/** The built-in table. It is loaded when it is asked for: most invocations price nothing. */
export async function loadPrices(): Promise<PriceTable> {
  const { default: file } = await import('./table.json', { with: { type: 'json' } })
  return priceTable(file)
}

/** Prices out of the built-in table, which `npm run prices` makes. */
export function createPrices(): Prices {
  let table: Promise<PriceTable> | undefined
  return {
    async of(model) {
      table ??= loadPrices()
      return (await table).of(model)
    },
  }
}
