/** The whole product in one process: emulator, store, workers, sweep and API. Another composition of the same ports. */
import { createFileSchedules } from '../compose-schedules.ts'
import { readConfig, seconds } from '../config.ts'
import { MAX_STREAMS } from '../domain/limits.ts'
import { plainJson } from '../domain/text.ts'
import type { EngineContext } from '../engine/context.ts'
import { runSession } from '../engine/run-session.ts'
import { sweep } from '../engine/sweep.ts'
import { sweepSession } from '../engine/sweep-run.ts'
import { fileTicks, runDueSchedules } from '../engine/tick.ts'
import { createApp } from '../http/app.ts'
import { type Door, doorOf } from '../http/auth/identify.ts'
import { guardLocal } from '../http/local-guard.ts'
import { createLocalInvoker, type LocalInvoker } from '../invoke/local-invoker.ts'
import { createModel } from '../model/model.ts'
import { checkScript } from '../model/parse-script.ts'
import { createScriptedModel, type ScriptedModel } from '../model/scripted.ts'
import type { Logger, OuterLimits } from '../ports.ts'
import { createPrices } from '../prices/prices.ts'
import { createTable } from '../store/create-table.ts'
import { dynamoClient, dynamoTable } from '../store/dynamo-table.ts'
import { type MeteredTable, meteredTable } from '../store/metered-table.ts'
import { createStore } from '../store/store.ts'
import { systemClock, systemIds } from '../system.ts'
import { createFolderLimits } from '../team/folder-limits.ts'
import { createFolderTeams } from '../team/folder-teams.ts'
import { startEmulator } from './emulator.ts'
import { LocalError } from './local-error.ts'

export interface EmbeddedOptions {
  /** where the books are kept; null: in memory */
  readonly dataDir: string | null
  readonly teamsDir: string
  /** providers' keys and settings come from here */
  readonly env: { readonly [name: string]: string | undefined }
  /** whether to sweep, so that unfinished runs found in the data go on */
  readonly work: boolean
  readonly leaseSeconds?: number
  readonly sweepSeconds?: number
  readonly log?: Logger
  /** called before unfinished runs go on */
  readonly beforeWork?: (ctx: EngineContext) => Promise<void>
  /** who may use the API; everybody who reaches it, unless told otherwise */
  readonly door?: Door
}

export interface Embedded {
  readonly ctx: EngineContext
  /** the API, without a network */
  readonly fetch: (request: Request) => Promise<Response>
  /** where a second client finds the same books */
  readonly dynamodb: { readonly endpoint: string; readonly table: string }
  readonly meter: Pick<MeteredTable, 'snapshot' | 'reset'>
  readonly invoker: Pick<LocalInvoker, 'counts' | 'drain'>
  /** keeps the bill of scripted models */
  readonly scripted: ScriptedModel
  stop(): Promise<void>
}

const TABLE = 'subledger'
/** The tenant of everybody who needs no proof. */
export const TENANT = 'local'
const SWEEP_SECONDS = 5
/** A worker's time, as on Lambda. */
const WORKER_TIMEOUT_MS = 900_000
/** Lambda waits a minute or two before it delivers a failed event again; nobody waits so long at a terminal. */
const RETRY_DELAYS_MS = [1_000, 5_000]
/** Events in this process are lost only with it: a queued session is looked at after this, or a lease if that is less. */
const EVENT_AGE_MS = 15_000
/** Workers of all runs at once. */
const CONCURRENCY = 200
/** How long calls under way may take to end when the process is stopped: what is cut off is made again, and paid again. */
const GRACE_MS = 10_000

/** @throws LocalError when another process works on the same data */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { env, log = errorsOnly } = options
  const settings = readSettings(options)
  const outerLimits = createFolderLimits(options.teamsDir)
  if (options.work) await checkLimits(outerLimits)
  const emulator = await startEmulator(options.dataDir)
  const client = dynamoClient({ endpoint: emulator.endpoint })
  await createTable(client, TABLE)
  const meter = meteredTable(dynamoTable(client, TABLE))
  const scripted = createScriptedModel({ clock: systemClock, billFile: settings.billFile })
  const invoker = createLocalInvoker({
    clock: systemClock,
    log,
    worker: (ref, delivery) => runSession(ctx, ref, { deadlineAt: delivery.deadlineAt }),
    onDeadLetter: async (ref) => void (await sweepSession(ctx, ref)),
    settings: { timeoutMs: WORKER_TIMEOUT_MS, retryDelaysMs: RETRY_DELAYS_MS, concurrency: CONCURRENCY },
  })
  const ctx: EngineContext = {
    store: createStore(meter),
    teams: createFolderTeams(options.teamsDir, { checkScript, log }),
    schedules: createFileSchedules(options.teamsDir, TENANT),
    prices: createPrices(),
    outerLimits,
    model: createModel({ env: (name) => env[name], scripted, now: systemClock.now }),
    invoker,
    clock: systemClock,
    ids: systemIds,
    log,
    settings: {
      leaseMs: settings.leaseMs,
      eventAgeMs: Math.min(EVENT_AGE_MS, settings.leaseMs),
      ...(settings.retentionMs !== undefined && { retentionMs: settings.retentionMs }),
      ...(settings.defaultBudgetUsd !== undefined && { defaultBudgetUsd: settings.defaultBudgetUsd }),
      limits: settings.limits,
    },
  }
  const app = createApp(ctx, {
    ...(options.door ?? doorOf({ kind: 'none' }, TENANT)),
    guard: guardLocal,
    streams: MAX_STREAMS,
  })
  if (options.work) await options.beforeWork?.(ctx)
  const sweeping = options.work ? sweepRegularly(ctx, settings.sweepMs) : undefined
  return {
    ctx,
    fetch: async (request) => app.fetch(request),
    dynamodb: { endpoint: emulator.endpoint, table: TABLE },
    meter,
    invoker,
    scripted,
    async stop() {
      await sweeping?.stop()
      await invoker.close(GRACE_MS)
      client.destroy()
      await emulator.stop()
    },
  }
}

/** While the file of limits is wrong no run starts: better to hear of it before one is wanted. */
async function checkLimits(limits: OuterLimits): Promise<void> {
  try {
    await limits.requiredTags(TENANT)
  } catch (cause) {
    throw new LocalError((cause as Error).message, { cause })
  }
}

function readSettings({ env, leaseSeconds, sweepSeconds }: EmbeddedOptions) {
  try {
    const config = readConfig({ ...env, SUBLEDGER_TABLE: TABLE })
    return {
      leaseMs: leaseSeconds === undefined ? config.leaseMs : leaseSeconds * 1000,
      sweepMs: (sweepSeconds ?? seconds(env, 'SUBLEDGER_SWEEP_SECONDS', SWEEP_SECONDS)) * 1000,
      billFile: config.billFile,
      retentionMs: config.retentionMs,
      defaultBudgetUsd: config.defaultBudgetUsd,
      limits: config.limits,
    }
  } catch (cause) {
    throw new LocalError((cause as Error).message, { cause })
  }
}

/** Sweeps at once, and again `everyMs` after each sweep's end. */
function sweepRegularly(ctx: EngineContext, everyMs: number): { stop(): Promise<void> } {
  const stopped = new AbortController()
  // what a file had scheduled while this process was not there is not made up for
  const tickFromFile = fileTicks(ctx, TENANT, ctx.clock.now())
  const done = (async () => {
    while (!stopped.signal.aborted) {
      try {
        const invocation = { deadlineAt: ctx.clock.now() + WORKER_TIMEOUT_MS }
        await sweep(ctx, invocation)
        await runDueSchedules(ctx, invocation)
        await tickFromFile()
      } catch (fault) {
        ctx.log.error('a sweep failed', { fault: String(fault) })
      }
      await ctx.clock.sleep(everyMs, stopped.signal)
    }
  })()
  return {
    stop() {
      stopped.abort()
      return done
    },
  }
}

/** Commands print results; of what happens inside only faults are told. */
const errorsOnly: Logger = {
  info: () => {},
  warn: () => {},
  error: (message, fields) => process.stderr.write(`${plainJson({ message, ...fields })}\n`),
}
