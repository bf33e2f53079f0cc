/** A fresh table of each kind, for tests. Close what you open. */
import { randomUUID } from 'node:crypto'
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoDBDocumentClient, paginateScan } from '@aws-sdk/lib-dynamodb'
import { startEmulator } from '../../src/local/emulator.ts'
import { createTable } from '../../src/store/create-table.ts'
import { dynamoClient, dynamoTable, readNumber } from '../../src/store/dynamo-table.ts'
import { type MemoryTableOptions, memoryTable as newMemoryTable } from '../../src/store/memory-table.ts'
import type { Item, TableClient } from '../../src/store/table-client.ts'

export interface TestTable {
  readonly table: TableClient
  /** where it is a server: its address, the table's name and a client of it, for a second look at what was stored */
  readonly server?: { readonly endpoint: string; readonly name: string; readonly client: DynamoDBClient }
  /** everything in it, in the order of the keys */
  items(): Promise<readonly Item[]>
  close(): Promise<void>
}

/** Address of a DynamoDB Local, where there is one: `npm run test:dynamodb-local` sets it. */
export const DYNAMODB_LOCAL = process.env.SUBLEDGER_TEST_DYNAMODB

export async function memoryTable(options: MemoryTableOptions = {}): Promise<TestTable> {
  const table = newMemoryTable(options)
  return { table, items: async () => table.items(), close: async () => {} }
}

/** The embedded emulator, in this process, on a port of its own. */
export async function dynaliteTable(): Promise<TestTable> {
  const { endpoint, stop } = await startEmulator(null)
  return serverTable(endpoint, stop)
}

/** A new table in AWS's DynamoDB Local. @throws Error when SUBLEDGER_TEST_DYNAMODB is not set */
export async function dynamodbLocalTable(): Promise<TestTable> {
  if (!DYNAMODB_LOCAL) throw new Error('SUBLEDGER_TEST_DYNAMODB is not set: run `npm run test:dynamodb-local`')
  return serverTable(DYNAMODB_LOCAL, async () => {})
}

async function serverTable(endpoint: string, stop: () => Promise<void>): Promise<TestTable> {
  const client = dynamoClient({ endpoint })
  const name = `subledger-${randomUUID()}`
  await createTable(client, name)
  return {
    table: dynamoTable(client, name),
    server: { endpoint, name, client },
    items: () => scan(client, name),
    async close() {
      client.destroy()
      await stop()
    },
  }
}

async function scan(client: DynamoDBClient, name: string): Promise<readonly Item[]> {
  const documents = DynamoDBDocumentClient.from(client, { unmarshallOptions: { wrapNumbers: readNumber } })
  const items: Item[] = []
  for await (const page of paginateScan({ client: documents }, { TableName: name, ConsistentRead: true }))
    items.push(...((page.Items ?? []) as Item[]))
  const key = (item: Item) => `${item.pk}\u0000${item.sk}`
  return items.sort((a, b) => (key(a) < key(b) ? -1 : 1))
}

/** Every kind of table that can be had here, for suites that must hold on all of them. */
export const TABLES: readonly { readonly name: string; readonly open: () => Promise<TestTable> }[] = [
  { name: 'the table in memory', open: () => memoryTable() },
  { name: 'the embedded emulator', open: dynaliteTable },
  ...(DYNAMODB_LOCAL ? [{ name: 'DynamoDB Local', open: dynamodbLocalTable }] : []),
]
