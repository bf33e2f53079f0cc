/** The table on DynamoDB, or on anything that speaks its protocol. */
import { ConditionalCheckFailedException, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  UpdateCommand,
  type UpdateCommandInput,
} from '@aws-sdk/lib-dynamodb'
import type {
  DeleteRequest,
  GetRequest,
  GetResult,
  Item,
  PutRequest,
  PutResult,
  QueryRequest,
  QueryResult,
  TableClient,
  UpdateRequest,
  UpdateResult,
} from './table-client.ts'

/** Attempts of one request: the SDK waits between them, ever longer and with jitter. Every write is safe to repeat. */
const MAX_ATTEMPTS = 6
/** An answer takes milliseconds; a connection that says nothing for so long is dead, and the request is tried again. */
const REQUEST_TIMEOUT_MS = 10_000

/**
 * A client with this project's settings.
 * @param options.endpoint address of an emulator; it takes any credentials, so none of the machine's are used
 */
export function dynamoClient(options: { endpoint?: string | undefined } = {}): DynamoDBClient {
  return new DynamoDBClient({
    maxAttempts: MAX_ATTEMPTS,
    requestHandler: {
      connectionTimeout: 2_000,
      requestTimeout: REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
    ...(options.endpoint && {
      endpoint: options.endpoint,
      region: 'local',
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    }),
  })
}

const INTEGER = /^-?\d+$/
const SCIENTIFIC = /^(-?)(\d+)(?:\.(\d+))?[eE]\+?(\d+)$/

/** A number as DynamoDB sends it: a bigint where a JavaScript number would round a whole one. */
export function readNumber(text: string): number | bigint {
  const value = Number(text)
  if (Number.isSafeInteger(value) || !Number.isInteger(value)) return value
  if (INTEGER.test(text)) return BigInt(text)
  const m = SCIENTIFIC.exec(text)
  const fraction = m?.[3] ?? ''
  const zeros = Number(m?.[4]) - fraction.length
  return m && zeros >= 0 ? BigInt(m[1]! + m[2]! + fraction) * 10n ** BigInt(zeros) : value
}

/** Units of the table alone: writes of indexes are counted elsewhere, since not every emulator tells them. */
const tableUnits = (used: { CapacityUnits?: number; Table?: { CapacityUnits?: number } } | undefined): number =>
  used?.Table?.CapacityUnits ?? used?.CapacityUnits ?? 0

/** A refused condition is charged like the write of the item that is there; no answer says how much that is. */
const REFUSED = { written: false, units: 1 } as const

/**
 * @param client is used as it is: its retries and time-outs are the caller's choice, see `dynamoClient`
 * @param table name of the table
 */
export function dynamoTable(client: DynamoDBClient, table: string): TableClient {
  const documents = DynamoDBDocumentClient.from(client, {
    marshallOptions: { removeUndefinedValues: true },
    unmarshallOptions: { wrapNumbers: readNumber },
  })
  const request = { TableName: table, ReturnConsumedCapacity: 'INDEXES' } as const

  /** Null where the condition did not hold; every other fault goes on. */
  async function unlessRefused<T>(sent: Promise<T>): Promise<T | null> {
    try {
      return await sent
    } catch (e) {
      if (e instanceof ConditionalCheckFailedException) return null
      throw e
    }
  }

  return {
    async get({ key, consistent }: GetRequest): Promise<GetResult> {
      const out = await documents.send(new GetCommand({ ...request, Key: { ...key }, ConsistentRead: consistent }))
      return { item: out.Item as Item | undefined, units: tableUnits(out.ConsumedCapacity) }
    },

    async put({ item, condition, names, values }: PutRequest): Promise<PutResult> {
      const out = await unlessRefused(
        documents.send(
          new PutCommand({
            ...request,
            Item: item,
            ConditionExpression: condition,
            ExpressionAttributeNames: given(names),
            ExpressionAttributeValues: given(values),
          }),
        ),
      )
      return out ? { written: true, units: tableUnits(out.ConsumedCapacity) } : REFUSED
    },

    async update({ key, condition, update, names, values }: UpdateRequest): Promise<UpdateResult> {
      const input: UpdateCommandInput = {
        ...request,
        Key: { ...key },
        ConditionExpression: condition,
        UpdateExpression: update,
        ExpressionAttributeNames: given(names),
        ExpressionAttributeValues: given(values),
        ReturnValues: 'ALL_NEW',
      }
      const out = await unlessRefused(documents.send(new UpdateCommand(input)))
      if (!out) return REFUSED
      return { written: true, item: out.Attributes as Item, units: tableUnits(out.ConsumedCapacity) }
    },

    async delete({ key, condition, names, values }: DeleteRequest): Promise<PutResult> {
      const out = await unlessRefused(
        documents.send(
          new DeleteCommand({
            ...request,
            Key: { ...key },
            ConditionExpression: condition,
            ExpressionAttributeNames: given(names),
            ExpressionAttributeValues: given(values),
          }),
        ),
      )
      return out ? { written: true, units: tableUnits(out.ConsumedCapacity) } : REFUSED
    },

    async query(query: QueryRequest): Promise<QueryResult> {
      const out = await documents.send(
        new QueryCommand({
          ...request,
          IndexName: query.index,
          KeyConditionExpression: query.keyCondition,
          FilterExpression: query.filter,
          ProjectionExpression: query.projection,
          ExpressionAttributeNames: given(query.names),
          ExpressionAttributeValues: given(query.values),
          Limit: query.limit,
          ScanIndexForward: !query.backwards,
          ExclusiveStartKey: query.startAfter,
          ConsistentRead: query.consistent,
        }),
      )
      return {
        items: (out.Items ?? []) as Item[],
        ...(out.LastEvaluatedKey && { last: out.LastEvaluatedKey as Item }),
        units: out.ConsumedCapacity?.CapacityUnits ?? 0,
      }
    },
  }
}

/** DynamoDB refuses an empty map of names or values. */
const given = <T extends object>(map: T | undefined): T | undefined =>
  map && Object.keys(map).length > 0 ? map : undefined
