import { compose, type LambdaContext } from './compose.ts'
import type { Config } from './config.ts'
import { createModel } from './model/model.ts'
import { createScriptedModel } from './model/scripted.ts'

/** For the worker: models, and neither teams nor prices, because a run's were frozen when it began. */
export function composeWorker(config: Config): LambdaContext {
  const ctx = compose(config)
  const scripted = createScriptedModel({ clock: ctx.clock, billFile: config.billFile })
  return { ...ctx, model: createModel({ env: (name) => process.env[name], scripted, now: ctx.clock.now }) }
}
