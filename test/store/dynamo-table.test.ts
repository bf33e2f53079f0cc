import {
  type DynamoDBClient,
  ProvisionedThroughputExceededException,
  ResourceNotFoundException,
  ThrottlingException,
} from '@aws-sdk/client-dynamodb'
import { DynamoDBDocumentClient, GetCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { mockClient } from 'aws-sdk-client-mock'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ZERO } from '../../src/domain/money.ts'
import type { Store } from '../../src/ports.ts'
import { createTable } from '../../src/store/create-table.ts'
import { dynamoClient, dynamoTable, readNumber } from '../../src/store/dynamo-table.ts'
import { createStore } from '../../src/store/store.ts'
import { aRunningHeader, books, money, rootRef, runRef, T0 } from '../support/builders.ts'
import { dynaliteTable, type TestTable } from '../support/tables.ts'

let opened: TestTable
let client: DynamoDBClient
let store: Store
let runs = 0

beforeAll(async () => {
  opened = await dynaliteTable()
})
afterAll(() => opened.close())

/** What happens to one attempt of a request, below the SDK's retries: it reaches the table, or it does not, and its answer comes, or it does not. */
type Fault = 'answer lost' | 'throttled' | undefined

function faultyClient(faults: Fault[]): { attempts: () => number } {
  let attempts = 0
  client = dynamoClient({ endpoint: opened.server!.endpoint })
  client.middlewareStack.add(
    (next) => async (args) => {
      attempts++
      const fault = faults.shift()
      if (fault === 'throttled') throw new ThrottlingException({ message: 'Rate exceeded', $metadata: {} })
      const answer = await next(args)
      if (fault === 'answer lost')
        throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError', code: 'ECONNRESET' })
      return answer
    },
    { step: 'finalizeRequest', priority: 'low', name: 'faults' },
  )
  store = createStore(dynamoTable(client, opened.server!.name))
  return { attempts: () => attempts }
}
afterEach(() => client?.destroy())

const parent = async () => {
  const ref = rootRef(runRef(++runs))
  await createStore(opened.table).putHeader(aRunningHeader({ ...ref, pending: new Set([3, 4]), avail: ZERO }))
  return ref
}
const settlement = { ordinal: 4, books: books(2), sessions: 1, lent: null, back: money(0.4), seen: null }
const settledOnce = {
  pending: new Set([3]),
  settled: 1,
  v: 1,
  kids: books(2),
  kidsSessions: 1,
  avail: money(0.4),
}

describe('answers that are lost', () => {
  test('D10: a settlement whose answer was lost is sent again by the SDK, and the total rises once', async () => {
    const ref = await parent()
    const { attempts } = faultyClient(['answer lost'])
    expect(await store.settle(ref, settlement, T0)).toEqual({ written: false })
    expect(attempts()).toBe(2)
    expect(await createStore(opened.table).getHeader(ref)).toMatchObject(settledOnce)
  })

  test('the control: an ADD without the condition would count twice', async () => {
    const ref = await parent()
    faultyClient(['answer lost'])
    const documents = DynamoDBDocumentClient.from(client)
    const key = { pk: `T#local#RUN#${ref.runId}`, sk: `SESSION#${ref.sessionId}` }
    await documents.send(
      new UpdateCommand({
        TableName: opened.server!.name,
        Key: key,
        UpdateExpression: 'ADD #x :five',
        ExpressionAttributeNames: { '#x': 'x5' },
        ExpressionAttributeValues: { ':five': 5 },
      }),
    )
    const { item } = await opened.table.get({ key, consistent: true })
    expect(item?.x5).toBe(10)
  })

  test('a claim whose answer was lost reads as refused, and the header names its driver', async () => {
    const ref = rootRef(runRef(++runs))
    await createStore(opened.table).putHeader(aRunningHeader({ ...ref, status: 'queued', attempt: 0 }))
    faultyClient(['answer lost'])
    const claim = { seenAttempt: 0, driver: 'mine', now: T0, lease: T0 + 1, first: null }
    expect(await store.claim(ref, claim)).toEqual({ written: false })
    expect(await store.getHeader(ref)).toMatchObject({ attempt: 1, driver: 'mine', status: 'running' })
  })
})

describe('a busy table', () => {
  test('a throttled write is tried again and written once', async () => {
    const ref = await parent()
    const { attempts } = faultyClient(['throttled', 'throttled'])
    expect(await store.settle(ref, settlement, T0)).toMatchObject({ written: true, item: settledOnce })
    expect(attempts()).toBe(3)
  })

  test.each([
    new ProvisionedThroughputExceededException({ message: 'too much', $metadata: {} }),
    new ResourceNotFoundException({ message: 'no table', $metadata: {} }),
    new Error('socket hang up'),
  ])('what the SDK gives up on is thrown, and is not taken for a refusal: $name', async (fault) => {
    const sdk = mockClient(DynamoDBDocumentClient)
    sdk.on(UpdateCommand).rejects(fault).on(GetCommand).rejects(fault)
    try {
      const mocked = createStore(dynamoTable(dynamoClient({ endpoint: opened.server!.endpoint }), 'some-table'))
      await expect(mocked.settle(rootRef(), settlement, T0)).rejects.toBe(fault)
      await expect(mocked.getHeader(rootRef())).rejects.toBe(fault)
      expect(sdk.commandCalls(UpdateCommand)).toHaveLength(1)
    } finally {
      sdk.restore()
    }
  })
})

describe('numbers as DynamoDB sends them', () => {
  test.each([
    ['0', 0],
    ['-12', -12],
    ['9007199254740991', 9_007_199_254_740_991],
    ['9007199254740992', 9_007_199_254_740_992n],
    ['9007199254740993', 9_007_199_254_740_993n],
    ['-9007199254740993', -9_007_199_254_740_993n],
    ['999999999999999999999999', 999_999_999_999_999_999_999_999n],
    ['1E+24', 10n ** 24n],
    ['1.5e+24', 15n * 10n ** 23n],
    ['-1.25E24', -125n * 10n ** 22n],
    ['0.5', 0.5],
    ['2E-7', 2e-7],
  ])('%s is exact', (text, value) => expect(readNumber(text)).toBe(value))
})

test('a table that is there already is left as it is', async () => {
  const { name, client: own } = opened.server!
  const ref = await parent()
  await createTable(own, name)
  expect(await createStore(opened.table).getHeader(ref)).toMatchObject({ settled: 0 })
})
