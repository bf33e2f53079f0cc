/**
 * Writes src/prices/table.json from the price source, @pydantic/genai-prices, which is a development dependency alone:
 *
 *     npm run prices
 *
 * The same source gives the same table to the last byte.
 */
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { TableFile } from '../src/prices/price-table.ts'
import { type LeftOut, PROVIDERS, type Provider, readProvider } from './prices/source.ts'

export const TABLE = fileURLToPath(new URL('../src/prices/table.json', import.meta.url))
export const SOURCE = '@pydantic/genai-prices'

/** When each version came out, which the package itself does not say (`npm view @pydantic/genai-prices time`). */
const DATES: { readonly [version: string]: string } = { '0.1.8': '2026-09-23' }

export function makeTable(): { table: TableFile; leftOut: LeftOut[] } {
  const { version } = JSON.parse(
    readFileSync(new URL(`../node_modules/${SOURCE}/package.json`, import.meta.url), 'utf8'),
  ) as { version: string }
  const date = DATES[version]
  if (date === undefined) throw new Error(`write down in scripts/prices.ts when ${SOURCE} ${version} came out`)
  const read = (Object.keys(PROVIDERS) as Provider[]).map((p) => [p, readProvider(p)] as const)
  return {
    table: {
      source: { name: SOURCE, version, date },
      providers: Object.fromEntries(read.map(([p, { prices }]) => [p, prices])),
    },
    leftOut: read.flatMap(([, { leftOut }]) => leftOut),
  }
}

export const tableText = (table: TableFile): string => `${JSON.stringify(table, null, 2)}\n`

if (import.meta.main) {
  const { table, leftOut } = makeTable()
  await writeFile(TABLE, tableText(table))
  for (const [provider, { models }] of Object.entries(table.providers)) {
    const entries = Object.values(models)
    const aliases = entries.filter((e) => e.startsWith('= ')).length
    console.log(`${provider.padEnd(15)} ${entries.length - aliases} models, ${aliases} further names`)
  }
  for (const [reason, list] of Object.entries(Object.groupBy(leftOut, (l) => l.reason))) {
    console.log(`\nleft out, because ${reason} (${list.length}):`)
    for (const { provider, model, rate } of list) console.log(`  ${provider}/${model}${rate ? `: ${rate}` : ''}`)
  }
}
