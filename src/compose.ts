/**
 * The only place that chooses adapters for Lambda. One function for each kind of handler, so that a bundle holds no more
 * than it needs: only workers have models, only what starts runs has teams.
 */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { LambdaClient } from '@aws-sdk/client-lambda'
import type { Config } from './config.ts'
import type { EngineContext } from './engine/context.ts'
import { createLambdaInvoker } from './invoke/lambda-invoker.ts'
import { createJsonLogger, type JsonLogger } from './logger.ts'
import type { Model, Teams } from './ports.ts'
import { createDynamoTable } from './store/dynamo-table.ts'
import { createStore } from './store/store.ts'
import { systemClock, systemIds } from './system.ts'

export interface LambdaContext extends EngineContext {
  readonly log: JsonLogger
}

/** For handlers that start runs or show them: no models. */
export async function composeStarter(config: Config): Promise<LambdaContext> {
  const [{ createFolderTeams }, { checkScript }] = await Promise.all([
    import('./team/folder-teams.ts'),
    import('./model/parse-script.ts'),
  ])
  const ctx = common(config)
  return { ...ctx, teams: createFolderTeams(config.teams, { checkScript, log: ctx.log }), model: noModel }
}

/** For the worker: models, and no teams, because a run's team was frozen when it began. */
export async function composeWorker(config: Config): Promise<LambdaContext> {
  const [{ createModel }, { createScriptedModel }] = await Promise.all([
    import('./model/model.ts'),
    import('./model/scripted.ts'),
  ])
  const scripted = createScriptedModel({ clock: systemClock, billFile: config.billFile })
  const model = createModel({ env: (name) => process.env[name], scripted, now: systemClock.now })
  return { ...common(config), teams: noTeams, model }
}

/** For what only looks after runs: neither. */
export function composeSweep(config: Config): LambdaContext {
  return { ...common(config), teams: noTeams, model: noModel }
}

function common(config: Config): Omit<LambdaContext, 'teams' | 'model'> {
  if (!config.workerFunction) throw new Error('SUBLEDGER_WORKER is not set: it names the worker function')
  const dynamodb = new DynamoDBClient({ ...endpoint(config.dynamodbEndpoint), maxAttempts: 5 })
  const lambda = new LambdaClient(endpoint(config.lambdaEndpoint))
  return {
    store: createStore(createDynamoTable(dynamodb, config.table)),
    invoker: createLambdaInvoker(lambda, config.workerFunction),
    clock: systemClock,
    ids: systemIds,
    log: createJsonLogger(),
    settings: { leaseMs: config.leaseMs, eventAgeMs: config.eventAgeMs },
  }
}

/** An endpoint of one's own is an emulator: it gets no real credentials. */
const endpoint = (url: string | undefined) =>
  url ? { endpoint: url, region: 'local', credentials: { accessKeyId: 'local', secretAccessKey: 'local' } } : {}

const noModel: Model = {
  call: () => Promise.reject(new Error('This function calls no models: only the worker does')),
}

const noTeams: Teams = {
  list: () => Promise.reject(new Error('This function knows no teams: a run keeps its own')),
  get: () => Promise.reject(new Error('This function knows no teams: a run keeps its own')),
}

/** Makes a thing at its first use, and once for each container; a failure is not kept. */
export function once<T>(make: () => T | Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= Promise.resolve()
      .then(make)
      .catch((e) => {
        made = undefined
        throw e
      })
    return made
  }
}
