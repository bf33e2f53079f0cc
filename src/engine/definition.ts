import type { Run } from '../domain/run.ts'
import type { TeamDefinition } from '../domain/team.ts'
import type { EngineContext } from './context.ts'

/** Frozen definitions by hash. They never change, so a warm container may keep them; a few, because it serves many runs. */
const KEPT = 20
const cache = new WeakMap<object, Map<string, TeamDefinition>>()

type Ctx = Pick<EngineContext, 'store' | 'teams'>

/** The team as it was when the run began. */
export async function definitionOf(ctx: Ctx, run: Run): Promise<TeamDefinition> {
  const team = await findDefinition(ctx, run)
  if (!team) throw new Error(`run ${run.runId}: its team definition ${run.definition} is not in the table`)
  return team
}

/** The same for those who can do without; undefined: it is not in the table. */
export async function findDefinition(ctx: Ctx, run: Run): Promise<TeamDefinition | undefined> {
  const kept = cache.get(ctx.teams) ?? new Map<string, TeamDefinition>()
  cache.set(ctx.teams, kept)
  // keyed by tenant as well: a hash is no secret, and nothing of one tenant may be served to another
  const key = `${run.tenant}/${run.definition}`
  const known = kept.get(key)
  if (known) return known
  const team = await ctx.store.getDefinition(run, run.definition)
  if (!team) return undefined
  if (kept.size >= KEPT) kept.delete(kept.keys().next().value!)
  kept.set(key, team)
  return team
}
