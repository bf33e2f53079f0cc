import { createApp } from '../http/app.ts'
import { createJsonLogger } from '../logger.ts'
import { createPrices } from '../prices/prices.ts'
import { dynamoClient, dynamoTable } from '../store/dynamo-table.ts'
import { createStore } from '../store/store.ts'
import { systemClock, systemIds } from '../system.ts'
import { createFolderTeams } from '../team/folder-teams.ts'

/** The API over a table that somebody else writes, with a client of its own. It drives nothing. */
export function openReader(
  dynamodb: { readonly endpoint: string; readonly table: string },
  teamsDir: string,
): { fetch: (request: Request) => Promise<Response>; close(): void } {
  const client = dynamoClient({ endpoint: dynamodb.endpoint })
  const log = createJsonLogger((line) => process.stderr.write(`${line}\n`))
  const app = createApp(
    {
      store: createStore(dynamoTable(client, dynamodb.table)),
      teams: createFolderTeams(teamsDir, { log }),
      prices: createPrices(),
      model: { call: () => Promise.reject(new Error('a reader calls no models')) },
      invoker: { invoke: () => Promise.reject(new Error('a reader starts no workers')) },
      clock: systemClock,
      ids: systemIds,
      log,
      settings: { leaseMs: 90_000, eventAgeMs: 600_000 },
    },
    { tenantOf: () => 'local' },
  )
  return { fetch: async (request) => app.fetch(request), close: () => client.destroy() }
}
