import { setTimeout } from 'node:timers/promises'
import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeTableCommand,
  type DynamoDBClient,
  ResourceInUseException,
  ResourceNotFoundException,
} from '@aws-sdk/client-dynamodb'
import { TABLE_DEFINITION } from './table.ts'

const LOOKS = 600
const PAUSE_MS = 50

/**
 * Creates the table on an emulator, for local mode and tests, and waits until it can be used. A table that is there
 * already is left as it is. (On AWS the deployment creates it.)
 * @throws Error when the table does not become active in about half a minute
 */
export async function createTable(client: DynamoDBClient, name: string): Promise<void> {
  try {
    // the definition is read-only, the SDK's types are not
    await client.send(
      new CreateTableCommand({ TableName: name, ...TABLE_DEFINITION } as unknown as CreateTableCommandInput),
    )
  } catch (e) {
    if (!(e instanceof ResourceInUseException)) throw e
  }
  for (let look = 0; look < LOOKS; look++) {
    if (await isActive(client, name)) return
    await setTimeout(PAUSE_MS)
  }
  throw new Error(`table ${name} was created, but is not active after ${(LOOKS * PAUSE_MS) / 1000} s`)
}

async function isActive(client: DynamoDBClient, name: string): Promise<boolean> {
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: name }))
    return (
      Table?.TableStatus === 'ACTIVE' &&
      (Table.GlobalSecondaryIndexes ?? []).every((index) => index.IndexStatus === 'ACTIVE')
    )
  } catch (e) {
    if (e instanceof ResourceNotFoundException) return false
    throw e
  }
}
