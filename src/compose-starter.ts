import { compose, type LambdaContext } from './compose.ts'
import type { Config } from './config.ts'
import { checkScript } from './model/parse-script.ts'
import { createFolderTeams } from './team/folder-teams.ts'

/** For functions that start runs or show them: teams, and no models. */
export function composeStarter(config: Config): LambdaContext {
  const ctx = compose(config)
  return { ...ctx, teams: createFolderTeams(config.teams, { checkScript, log: ctx.log }) }
}
