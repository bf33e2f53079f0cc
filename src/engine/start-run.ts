import { DEFAULT_LIMITS, type Limits } from '../domain/configured-limits.ts'
import { type InputIssue, SubledgerError } from '../domain/errors.ts'
import { definitionHash, rootSessionId, TENANT } from '../domain/ids.ts'
import { DEFAULT_MAX_CONCURRENCY, MAX_TAG_BYTES, MAX_TAGS } from '../domain/limits.ts'
import type { Amount } from '../domain/money.ts'
import { effectiveLimit, firstGrant } from '../domain/outer-limit.ts'
import { FIRST_INPUT_REF, isGone, type Run, type RunInput, type RunRef } from '../domain/run.ts'
import { findAgent, type TeamDefinition } from '../domain/team.ts'
import { byteLength } from '../domain/text.ts'
import type { EngineContext } from './context.ts'
import { definitionOf } from './definition.ts'
import { freezeLimits } from './freeze-limits.ts'
import { freezePrices, unpricedModels, withoutGaps } from './freeze-prices.ts'
import { type Budget, checkPriced, defaultBudget, limitOf, limitsMoney, runLimit } from './limit.ts'
import { rootHeader } from './new-header.ts'
import { takePlace } from './take-place.ts'

/** What a run is started from; checked whole before anything is written. */
export interface StartRun {
  readonly tenant: string
  /** name of a team that `Teams` knows */
  readonly team: string
  /** first agent; the team's first unless told */
  readonly agent?: string | undefined
  /** exactly one of `input` and `tasks`; checked here, so callers may pass on what they got */
  readonly input?: string | undefined
  readonly tasks?: readonly { agent: string; task: string; expectedOutput?: string | undefined }[] | undefined
  readonly maxConcurrency?: number | undefined
  /** the most that the run may cost or use, if the team's own ceiling is not lower; none: no other limit */
  readonly budget?: Budget | undefined
  readonly tags?: { readonly [key: string]: string } | undefined
  /** id of the run, where the caller has chosen one already (an idempotent retry); made here otherwise */
  readonly runId?: string | undefined
}

/**
 * Freezes the team and its prices, stores input and run, puts the root's header and invokes it. A crash between two of
 * these writes leaves nothing (before W1) or a run that the sweep goes on with.
 * @throws SubledgerError unknown_team, unknown_agent, bad_team, bad_request, unpriced_model, too_many_runs, unknown_run
 */
export async function startRun(ctx: EngineContext, request: StartRun): Promise<Run> {
  const limits = ctx.settings.limits ?? DEFAULT_LIMITS
  const input = checkRequest(request, limits)
  if (request.runId !== undefined) {
    const begun = await goOnWith(ctx, { tenant: request.tenant, runId: request.runId })
    if (begun) return begun
  }
  const { team, limit, granted } = await freeze(ctx, request, input, limits)

  const now = ctx.clock.now()
  const ref = { tenant: request.tenant, runId: request.runId ?? ctx.ids.runId(now) }
  const hash = definitionHash(JSON.stringify(team))
  const run: Run = {
    ...ref,
    team: team.name,
    agent: 'tasks' in input ? null : (request.agent ?? team.agents[0]!.name),
    definition: hash,
    status: 'running',
    stop: null,
    stopReason: null,
    error: null,
    round: 1,
    inputRef: FIRST_INPUT_REF,
    inputRound: 1,
    retry: null,
    tasks: 'tasks' in input ? input.tasks.length : null,
    maxConcurrency: request.maxConcurrency ?? Math.min(DEFAULT_MAX_CONCURRENCY, mostAtOnce(limits)),
    limit,
    granted,
    grants: [],
    short: null,
    limitSeq: 0,
    budgetSeq: 0,
    raisedRound: null,
    budgetWarned: null,
    books: {},
    sessions: 0,
    v: 0,
    reportedAt: null,
    tags: request.tags ?? {},
    dueAt: now + ctx.settings.eventAgeMs,
    createdAt: now,
    updatedAt: now,
    cancelRequestedAt: null,
    finishedAt: null,
    expiresAt: null,
  }
  const unpriced = unpricedModels(team)
  if (unpriced.length > 0)
    ctx.log.warn('calls of these models will have no price', { ...ref, team: team.name, models: unpriced })
  await takePlace(ctx, ref, run.maxConcurrency, limits.tenantConcurrency)
  await ctx.store.putDefinition(ref, hash, team)
  await ctx.store.putInput(ref, 1, FIRST_INPUT_REF, input)
  if ((await ctx.store.createRun(run)) === 'already') return (await goOnWith(ctx, ref)) ?? gone(ref)
  await putRoot(ctx, run, team)
  return run
}

/** What may be left to do of a run that is there: whoever began it may have died behind any of its writes. */
async function goOnWith(ctx: EngineContext, ref: RunRef): Promise<Run | undefined> {
  const run = await ctx.store.getRun(ref, { consistent: true, gone: true })
  if (run && isGone(run, ctx.clock.now())) gone(ref)
  // from what is stored: the team's file may say something else by now
  if (run?.status === 'running' && run.round === 1) await putRoot(ctx, run, await definitionOf(ctx, run))
  return run
}

async function putRoot(ctx: EngineContext, run: Run, team: TeamDefinition): Promise<void> {
  const ref = { tenant: run.tenant, runId: run.runId }
  try {
    await ctx.store.putHeader(rootHeader(run, team, ctx.clock.now()))
    await ctx.invoker.invoke({ ...ref, sessionId: rootSessionId(ref.runId) })
  } catch (fault) {
    // the run is a fact by now: a caller who was told of a failure would start it twice. The sweep goes on with it
    ctx.log.warn('a run waits for the sweep: its root could not be invoked', { ...ref, fault: String(fault) })
  }
}

function gone({ runId }: RunRef): never {
  throw new SubledgerError('unknown_run', `The run ${runId} that this request had started is not there any more.`)
}

/**
 * Whether a run could be started so, now.
 * @throws SubledgerError unknown_team, unknown_agent, bad_team, bad_request, unpriced_model
 */
export async function checkStart(
  ctx: Pick<EngineContext, 'teams' | 'settings' | 'prices' | 'outerLimits'>,
  request: StartRun,
): Promise<void> {
  await planStart(ctx, request)
}

/**
 * What a run would begin with, were it started so, now: nothing is written.
 * @throws SubledgerError unknown_team, unknown_agent, bad_team, bad_request, unpriced_model
 */
export async function planStart(
  ctx: Pick<EngineContext, 'teams' | 'settings' | 'prices'>,
  request: StartRun,
): Promise<{ team: TeamDefinition; limit: Amount; input: RunInput }> {
  const limits = ctx.settings.limits ?? DEFAULT_LIMITS
  const input = checkRequest(request, limits)
  return { ...(await freeze(ctx, request, input, limits)), input }
}

/** The team as this run has it: with its prices, without the models that its limit rules out. */
async function freeze(
  ctx: Pick<EngineContext, 'teams' | 'prices' | 'outerLimits' | 'settings'>,
  request: StartRun,
  input: RunInput,
  limits: Limits,
): Promise<{ team: TeamDefinition; limit: Amount; granted: Amount | null }> {
  limitOf(request.budget) // what is wrong with it comes before the team
  const said = await ctx.teams.get(request.team)
  checkAgents(said, request, input)
  const granted = await grantedAtFirst(ctx, request)
  const priced = await freezePrices(ctx.prices, said)
  const fallback = defaultBudget(request.budget, priced, ctx.settings)
  const limit = runLimit(request.budget ?? fallback, priced)
  const money = limitsMoney(effectiveLimit({ limit, granted }), priced)
  if (money)
    checkPriced(priced, firstAgents(priced, request, input), {
      asked: request.budget,
      byDefault: fallback !== undefined,
      limit,
      granted,
    })
  return { team: freezeLimits(money ? withoutGaps(priced) : priced, limits), limit, granted }
}

/** @throws SubledgerError bad_request, when a tag is missing by which spending is limited */
async function grantedAtFirst(ctx: Pick<EngineContext, 'outerLimits'>, request: StartRun): Promise<Amount | null> {
  const { tenant, team, tags = {} } = request
  const required = (await ctx.outerLimits?.requiredTags(tenant)) ?? []
  const issues = required
    .filter((name) => !Object.hasOwn(tags, name) || tags[name] === '')
    .map((name) => ({ path: '/tags', message: `the tag "${name}" is required: what may be spent is limited by it` }))
  if (issues.length > 0)
    throw new SubledgerError('bad_request', issues.map((i) => `${i.path}: ${i.message}`).join('; '), { issues })
  return firstGrant((await ctx.outerLimits?.of({ tenant, team, tags })) ?? [])
}

const firstAgents = (team: TeamDefinition, request: StartRun, input: RunInput): string[] =>
  'tasks' in input ? input.tasks.map((t) => t.agent) : [request.agent ?? team.agents[0]!.name]

/** Sessions at once that one run may ask for. */
const mostAtOnce = (limits: Limits): number => Math.min(limits.concurrency, limits.tenantConcurrency)

function checkRequest(r: StartRun, limits: Limits): RunInput {
  const issues: InputIssue[] = []
  const add = (path: string, message: string) => issues.push({ path, message })
  if (!TENANT.test(r.tenant)) throw new Error(`tenant "${r.tenant}" is not a valid tenant name`)
  if (r.input !== undefined && r.tasks !== undefined) add('/tasks', 'give either "input" or "tasks", not both')
  else if (r.input === undefined && r.tasks === undefined) add('/input', 'give "input" (a text) or "tasks" (a list)')
  else if (r.input !== undefined && r.input.trim() === '') add('/input', 'must not be empty')
  else if (r.tasks !== undefined && (r.tasks.length < 1 || r.tasks.length > limits.tasks)) {
    add('/tasks', `must hold 1 to ${limits.tasks} tasks`)
  }
  for (const [i, t] of (r.tasks ?? []).entries()) if (t.task.trim() === '') add(`/tasks/${i}/task`, 'must not be empty')
  if (r.agent !== undefined && r.tasks !== undefined)
    add('/agent', 'a list of tasks has no first agent: each task names its own')
  const wanted = r.maxConcurrency
  const most = mostAtOnce(limits)
  if (wanted !== undefined && (!Number.isInteger(wanted) || wanted < 1 || wanted > most)) {
    add('/maxConcurrency', `must be a whole number from 1 to ${most}`)
  }
  const tags = Object.entries(r.tags ?? {})
  if (tags.length > MAX_TAGS) add('/tags', `must hold at most ${MAX_TAGS} tags`)
  if (tags.some(([k, v]) => k === '' || byteLength(k) + byteLength(v) > MAX_TAG_BYTES)) {
    add('/tags', `each tag needs a name, and name and value at most ${MAX_TAG_BYTES} bytes together`)
  }
  if (issues.length > 0)
    throw new SubledgerError('bad_request', issues.map((i) => `${i.path}: ${i.message}`).join('; '), { issues })
  return r.tasks
    ? {
        tasks: r.tasks.map((t) => ({
          agent: t.agent,
          task: t.task,
          ...(t.expectedOutput !== undefined && { expectedOutput: t.expectedOutput }),
        })),
      }
    : { input: r.input! }
}

function checkAgents(team: TeamDefinition, request: StartRun, input: RunInput): void {
  const names = team.agents.map((a) => a.name).join(', ')
  const issues: InputIssue[] = []
  if (request.agent !== undefined && !findAgent(team, request.agent)) {
    issues.push({ path: '/agent', message: `there is no agent "${request.agent}"` })
  }
  if ('tasks' in input) {
    for (const [i, t] of input.tasks.entries()) {
      if (!findAgent(team, t.agent))
        issues.push({ path: `/tasks/${i}/agent`, message: `there is no agent "${t.agent}"` })
    }
  }
  if (issues.length === 0) return
  const detail = `${issues[0]!.path}: ${issues[0]!.message}. The agents of team "${team.name}" are: ${names}.`
  throw new SubledgerError('unknown_agent', detail, { issues: issues.slice(0, 20) })
}
