/**
 * The only place that chooses adapters for Lambda, with compose-starter.ts, compose-http.ts and compose-worker.ts: one file for each kind of
 * function, so that a bundle holds no more than its function needs. This one holds what all of them need.
 */
import { LambdaClient } from '@aws-sdk/client-lambda'
import type { Config } from './config.ts'
import type { EngineContext } from './engine/context.ts'
import { createLambdaInvoker } from './invoke/lambda-invoker.ts'
import { createJsonLogger, type JsonLogger } from './logger.ts'
import { createEmbeddedMetrics } from './metrics.ts'
import type { Model, Prices, Teams } from './ports.ts'
import { dynamoClient, dynamoTable } from './store/dynamo-table.ts'
import { createStore } from './store/store.ts'
import { systemClock, systemIds } from './system.ts'
import { createFolderLimits } from './team/folder-limits.ts'

export { once } from './system.ts'

export interface LambdaContext extends EngineContext {
  readonly log: JsonLogger
}

/** For functions that look after runs: they start none and call no models. */
export function compose(config: Config): LambdaContext {
  if (!config.workerFunction) throw new Error('SUBLEDGER_WORKER is not set: it names the worker function')
  return {
    store: createStore(dynamoTable(dynamoClient({ endpoint: config.dynamodbEndpoint }), config.table)),
    invoker: createLambdaInvoker(lambdaClient(config.lambdaEndpoint), config.workerFunction),
    teams: noTeams,
    prices: noPrices,
    outerLimits: createFolderLimits(config.teams),
    model: noModel,
    clock: systemClock,
    ids: systemIds,
    log: createJsonLogger(),
    ...(config.metrics && { metrics: createEmbeddedMetrics() }),
    settings: {
      leaseMs: config.leaseMs,
      eventAgeMs: config.eventAgeMs,
      limits: config.limits,
      ...(config.retentionMs !== undefined && { retentionMs: config.retentionMs }),
      ...(config.defaultBudgetUsd !== undefined && { defaultBudgetUsd: config.defaultBudgetUsd }),
    },
  }
}

/** @param endpoint address of an emulator; it takes any credentials, so none of the machine's are used */
function lambdaClient(endpoint: string | undefined): LambdaClient {
  if (endpoint === undefined) return new LambdaClient({})
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
  return new LambdaClient({ endpoint, region: 'local', credentials })
}

const noModel: Model = {
  call: () => Promise.reject(new Error('This function calls no models: only the worker does')),
}

const noTeams: Teams = {
  list: () => Promise.reject(new Error('This function knows no teams: a run keeps its own')),
  get: () => Promise.reject(new Error('This function knows no teams: a run keeps its own')),
}

const noPrices: Prices = {
  of: () => Promise.reject(new Error('This function knows no prices: a run keeps its own')),
}
