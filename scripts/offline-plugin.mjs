/**
 * Makes `serverless offline start` behave like Lambda where it does not by itself: see offline-lambda.ts (retries, event
 * age, failure destination) and offline-runtime.mjs (a crash of a handler). It is started by offline.ts, which sets what
 * is read from the environment here, and does nothing in any other command.
 */
const RUNTIME = 'scripts/offline-runtime.handler'
/** what Lambda takes for a function that says nothing */
const DEFAULTS = { timeout: 6, maximumRetryAttempts: 2, maximumEventAge: 21_600 }

export default class OfflinePlugin {
  constructor(serverless) {
    this.serverless = serverless
    this.hooks = {
      'before:offline:start:init': () => this.start(),
      'before:offline:start:end': () => this.stop(),
    }
  }

  async start() {
    const settings = JSON.parse(process.env.SUBLEDGER_OFFLINE ?? 'null')
    if (!settings) throw new Error('Start it with: npm run offline')
    this.guard()
    // whoever started us is gone: so are we
    process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
    const { startOfflineLambda } = await import('./offline-lambda.ts')
    const { createJsonLogger } = await import('../src/logger.ts')
    this.log = createJsonLogger()
    this.lambda = await startOfflineLambda({
      functions: this.functions(settings),
      innerPort: settings.innerPort,
      port: settings.lambdaPort,
      retryDelaysMs: settings.retryDelaysMs,
      log: this.log,
    })
    this.sweepEvery(settings.sweepMs)
  }

  async stop() {
    clearTimeout(this.timer)
    await this.lambda?.close()
  }

  /** A thread that dies is told to this process as an exception that nobody handles. It shall not end it. */
  guard() {
    for (const event of ['uncaughtException', 'unhandledRejection']) {
      process.removeAllListeners(event)
      process.on(event, (error) => process.stderr.write(`${event} in a handler: ${error?.stack ?? error}\n`))
    }
  }

  /** Puts our runtime before each handler, takes the real schedules away, and tells what serverless.yml says. */
  functions({ code, handlers }) {
    const { service } = this.serverless
    return service.getAllFunctions().map((key) => {
      const f = service.getFunction(key)
      const events = f.events ?? []
      f.environment = {
        ...f.environment,
        SUBLEDGER_OFFLINE_HANDLER: handlers[key] ?? f.handler.replace(/^dist/, code),
        ...(process.env.SUBLEDGER_TEAMS && { SUBLEDGER_TEAMS: process.env.SUBLEDGER_TEAMS }),
      }
      f.handler = RUNTIME
      // the schedules of the file tick by serverless-offline's own clock; the timers are ours
      f.events = events.filter((event) => !event.schedule || event.schedule.method === 'scheduler')
      return {
        name: f.name,
        timeout: f.timeout ?? DEFAULTS.timeout,
        maximumRetryAttempts: f.maximumRetryAttempts ?? DEFAULTS.maximumRetryAttempts,
        maximumEventAge: f.maximumEventAge ?? DEFAULTS.maximumEventAge,
        ...(f.destinations?.onFailure && { onFailure: JSON.stringify(f.destinations.onFailure.arn) }),
        reads: events.filter((event) => event.sqs).map((event) => JSON.stringify(event.sqs.arn)),
      }
    })
  }

  /** The sweep, more often than a schedule could, and never beside itself. */
  sweepEvery(ms) {
    const { name } = this.serverless.service.getFunction('sweep')
    const { name: timer } = this.serverless.service.getFunction('startRun')
    const tick = async () => {
      await this.lambda.invoke(name, '{}').catch((error) => this.log.warn('sweep failed', { error: error.message }))
      await this.lambda
        .invoke(timer, '{"due":true}')
        .catch((error) => this.log.warn('schedules failed', { error: error.message }))
      this.timer = setTimeout(tick, ms)
    }
    this.timer = setTimeout(tick, ms)
  }
}
