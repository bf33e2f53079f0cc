import { compose, type LambdaContext } from './compose.ts'
import { createFileSchedules } from './compose-schedules.ts'
import type { Config } from './config.ts'
import { checkScript } from './model/parse-script.ts'
import { createPrices } from './prices/prices.ts'
import { createFolderTeams } from './team/folder-teams.ts'

/** For functions that start runs or show them: teams with their prices, and no models. */
export function composeStarter(config: Config): LambdaContext {
  const ctx = compose(config)
  const teams = createFolderTeams(config.teams, { checkScript, log: ctx.log })
  const schedules = createFileSchedules(config.teams, config.tenant)
  return { ...ctx, teams, schedules, prices: createPrices() }
}
