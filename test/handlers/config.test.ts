import { expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { DEFAULT_LIMITS } from '../../src/domain/configured-limits.ts'

const env = { SUBLEDGER_TABLE: 'books' }

test('what is not set has its usual value', () => {
  expect(readConfig(env)).toEqual({
    table: 'books',
    leaseMs: 90_000,
    eventAgeMs: 120_000,
    teams: 'teams',
    workerFunction: undefined,
    tenant: 'local',
    dynamodbEndpoint: undefined,
    lambdaEndpoint: undefined,
    billFile: undefined,
    offline: false,
    metrics: false,
    limits: DEFAULT_LIMITS,
  })
})

test('there is no table by default', () => {
  expect(() => readConfig({})).toThrow('SUBLEDGER_TABLE is not set')
})

test.each(['0', '-1', 'soon', 'Infinity', '1e999'])('a lease of "%s" seconds is refused by name', (text) => {
  expect(() => readConfig({ ...env, SUBLEDGER_LEASE_SECONDS: text })).toThrow(
    `SUBLEDGER_LEASE_SECONDS is "${text}": it must be a number of seconds above 0`,
  )
})

test('nothing that is deployed can be made to believe that it runs offline', () => {
  expect(readConfig({ ...env, IS_OFFLINE: 'true' }).offline).toBe(true)
  expect(readConfig({ ...env, IS_OFFLINE: 'true', AWS_LAMBDA_RUNTIME_API: '127.0.0.1:9001' }).offline).toBe(false)
})

test('figures are logged on Lambda, and elsewhere for who asks', () => {
  expect(readConfig({ ...env, AWS_LAMBDA_RUNTIME_API: '127.0.0.1:9001' }).metrics).toBe(true)
  expect(readConfig({ ...env, AWS_LAMBDA_RUNTIME_API: '127.0.0.1:9001', SUBLEDGER_METRICS: 'off' }).metrics).toBe(false)
  expect(readConfig({ ...env, SUBLEDGER_METRICS: 'on' }).metrics).toBe(true)
  expect(() => readConfig({ ...env, SUBLEDGER_METRICS: 'yes' })).toThrow('SUBLEDGER_METRICS is "yes"')
})
