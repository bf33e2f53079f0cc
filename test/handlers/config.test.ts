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
    tickedOutside: false,
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

test('the place where schedules of the API are made is given whole or not at all', () => {
  const whole = {
    SUBLEDGER_SCHEDULER_GROUP: 'group',
    SUBLEDGER_SCHEDULER_ROLE: 'arn:role',
    SUBLEDGER_SCHEDULER_TARGET: 'arn:function',
    SUBLEDGER_SCHEDULER_DEAD_LETTERS: 'arn:queue',
  }
  const scheduler = { group: 'group', role: 'arn:role', target: 'arn:function', deadLetters: 'arn:queue' }
  expect(readConfig({ ...env, ...whole }).scheduler).toEqual(scheduler)
  for (const name of Object.keys(whole)) {
    expect(() => readConfig({ ...env, ...whole, [name]: '' })).toThrow('set all of them or none')
  }
})

test('who ticks schedules of the API is somebody that there is', () => {
  expect(readConfig({ ...env, SUBLEDGER_SCHEDULER: 'eventbridge' }).tickedOutside).toBe(true)
  expect(readConfig({ ...env, SUBLEDGER_SCHEDULER: 'table' }).tickedOutside).toBe(false)
  expect(() => readConfig({ ...env, SUBLEDGER_SCHEDULER: 'cron' })).toThrow('SUBLEDGER_SCHEDULER is "cron"')
})
