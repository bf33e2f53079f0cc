import { describe, test } from 'vitest'
import { DYNAMODB_LOCAL, dynaliteTable, dynamodbLocalTable, memoryTable } from '../support/tables.ts'
import { storeContract } from './contract.ts'

describe('the store on a table in memory', () => storeContract(() => memoryTable()))
describe('the store on the embedded emulator', () => storeContract(dynaliteTable))

if (DYNAMODB_LOCAL) describe('the store on DynamoDB Local', () => storeContract(dynamodbLocalTable))
else
  test.skip('the store on DynamoDB Local: SUBLEDGER_TEST_DYNAMODB is not set, `npm run test:dynamodb-local` sets it', () => {})
