import { readLimits } from './config-limits.ts'
import type { Limits } from './domain/configured-limits.ts'
import type { TimerSettings } from './invoke/schedule-timer.ts'

/** Settings from the environment, read once and checked. Nothing is read or written on import. */
export interface Config {
  /** name of the table; there is no default: a wrong table is worse than none */
  readonly table: string
  /** `SUBLEDGER_LEASE_SECONDS`, 90 */
  readonly leaseMs: number
  /** `SUBLEDGER_EVENT_AGE_SECONDS`, 120: how long a session may wait for its event before the sweep sends another one */
  readonly eventAgeMs: number
  /** `SUBLEDGER_TEAMS`: folder of team files */
  readonly teams: string
  /** `SUBLEDGER_WORKER`: name of the worker function; absent where workers run in this process */
  readonly workerFunction: string | undefined
  /** `SUBLEDGER_TENANT`: the tenant of directly invoked starts and of unauthenticated local mode, `local` */
  readonly tenant: string
  /** `SUBLEDGER_RETENTION_DAYS`: how long a run is kept after its end; absent: for ever */
  readonly retentionMs: number | undefined
  /** `SUBLEDGER_DEFAULT_BUDGET_USD`: the budget of runs that name none; absent: they have none */
  readonly defaultBudgetUsd: string | undefined
  readonly dynamodbEndpoint: string | undefined
  readonly lambdaEndpoint: string | undefined
  /** `SUBLEDGER_SCRIPTED_BILL`: a file to which the scripted model appends what it would bill, for comparisons */
  readonly billFile: string | undefined
  /** run by serverless-offline on somebody's own machine, and not on Lambda */
  readonly offline: boolean
  /** `SUBLEDGER_METRICS`, `on` or `off`: whether figures of finished rounds are logged for CloudWatch; on Lambda they are */
  readonly metrics: boolean
  /** `SUBLEDGER_SCHEDULER_GROUP` and its three: where schedules of the API are made; absent: the timer of the table ticks them */
  readonly scheduler: TimerSettings | undefined
  /** `SUBLEDGER_SCHEDULER`, `eventbridge` or `table`: who ticks schedules of the API, as it is told to the function that ticks reach */
  readonly tickedOutside: boolean
  /** bounds that this deployment sets for itself */
  readonly limits: Limits
}

type Env = { readonly [name: string]: string | undefined }

/** @throws Error with the variable's name and what it should be */
export function readConfig(env: Env): Config {
  const table = env.SUBLEDGER_TABLE
  if (!table) throw new Error('SUBLEDGER_TABLE is not set: it names the DynamoDB table')
  return {
    table,
    leaseMs: seconds(env, 'SUBLEDGER_LEASE_SECONDS', 90) * 1000,
    eventAgeMs: seconds(env, 'SUBLEDGER_EVENT_AGE_SECONDS', 120) * 1000,
    teams: env.SUBLEDGER_TEAMS || 'teams',
    workerFunction: env.SUBLEDGER_WORKER || undefined,
    tenant: env.SUBLEDGER_TENANT || 'local',
    retentionMs: retention(env),
    defaultBudgetUsd: defaultBudget(env),
    dynamodbEndpoint: env.SUBLEDGER_DYNAMODB_ENDPOINT || undefined,
    lambdaEndpoint: env.SUBLEDGER_LAMBDA_ENDPOINT || undefined,
    billFile: env.SUBLEDGER_SCRIPTED_BILL || undefined,
    // Lambda sets AWS_LAMBDA_RUNTIME_API itself and lets nobody unset it, so a deployed function cannot be made offline
    offline: env.IS_OFFLINE === 'true' && !env.AWS_LAMBDA_RUNTIME_API,
    metrics: onOrOff(env, 'SUBLEDGER_METRICS', Boolean(env.AWS_LAMBDA_RUNTIME_API)),
    scheduler: scheduler(env),
    tickedOutside: tickedOutside(env),
    limits: readLimits(env),
  }
}

function scheduler(env: Env): TimerSettings | undefined {
  const found = {
    group: env.SUBLEDGER_SCHEDULER_GROUP ?? '',
    role: env.SUBLEDGER_SCHEDULER_ROLE ?? '',
    target: env.SUBLEDGER_SCHEDULER_TARGET ?? '',
    deadLetters: env.SUBLEDGER_SCHEDULER_DEAD_LETTERS ?? '',
  }
  const missing = Object.entries(found).filter(([, value]) => value === '')
  if (missing.length === Object.keys(found).length) return undefined
  if (missing.length > 0)
    throw new Error(
      'SUBLEDGER_SCHEDULER_GROUP, SUBLEDGER_SCHEDULER_ROLE, SUBLEDGER_SCHEDULER_TARGET and SUBLEDGER_SCHEDULER_DEAD_LETTERS belong together: set all of them or none',
    )
  return found
}

function tickedOutside(env: Env): boolean {
  const text = env.SUBLEDGER_SCHEDULER
  if (text === undefined || text === '') return false
  if (text !== 'eventbridge' && text !== 'table')
    throw new Error(`SUBLEDGER_SCHEDULER is "${text}": it must be eventbridge or table`)
  return text === 'eventbridge'
}

function onOrOff(env: Env, name: string, fallback: boolean): boolean {
  const text = env[name]
  if (text === undefined || text === '') return fallback
  if (text !== 'on' && text !== 'off') throw new Error(`${name} is "${text}": it must be on or off`)
  return text === 'on'
}

function defaultBudget(env: Env): string | undefined {
  const text = env.SUBLEDGER_DEFAULT_BUDGET_USD
  if (text === undefined || text === '') return undefined
  if (!/^\d{1,8}(\.\d{1,12})?$/.test(text))
    throw new Error(
      `SUBLEDGER_DEFAULT_BUDGET_USD is "${text}": it must be an amount in USD such as 10 or 2.50, or not set`,
    )
  return text
}

/** Less than a day would be no time for late answers and reports. */
function retention(env: Env): number | undefined {
  const text = env.SUBLEDGER_RETENTION_DAYS
  if (text === undefined || text === '') return undefined
  const days = Number(text)
  if (!Number.isFinite(days) || days < 1 || days > 36_500)
    throw new Error(`SUBLEDGER_RETENTION_DAYS is "${text}": it must be a number of days from 1 to 36500, or not set`)
  return days * 86_400_000
}

export function seconds(env: Env, name: string, fallback: number): number {
  const text = env[name]
  if (text === undefined || text === '') return fallback
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0)
    throw new Error(`${name} is "${text}": it must be a number of seconds above 0`)
  return value
}
