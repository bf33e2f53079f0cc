import { isBlocked } from '../domain/budget.ts'
import { covers, ZERO } from '../domain/money.ts'
import { effectiveLimit } from '../domain/outer-limit.ts'
import { potsOf } from '../domain/pot.ts'
import type { Run, SessionRef } from '../domain/run.ts'
import { isClaimable, isTerminal, type SessionHeader } from '../domain/session.ts'
import { type AgentDefinition, findAgent, type TeamDefinition } from '../domain/team.ts'
import type { Intent, UserMessage } from '../domain/turn.ts'
import type { EngineContext, Invocation } from './context.ts'
import { definitionOf } from './definition.ts'
import { type Drive, leaseUntil, reload } from './drive.ts'
import { fenced } from './fence.ts'
import { boundFor, intentFor } from './intent.ts'
import { loop } from './loop.ts'
import { settleUp } from './settle.ts'
import { taskMessage, taskOf } from './task-of.ts'

/**
 * Claims a session and drives it until it ends, waits, or the deadline is near. Safe to call at any time, any number of
 * times: whoever cannot claim does nothing, and an ended session is only made to settle.
 */
export async function runSession(outer: EngineContext, ref: SessionRef, invocation: Invocation): Promise<void> {
  const fence = fenced(outer, invocation.deadlineAt)
  try {
    await claimAndDrive(fence.ctx, ref, invocation)
  } finally {
    fence.close()
  }
}

async function claimAndDrive(ctx: EngineContext, ref: SessionRef, { deadlineAt }: Invocation): Promise<void> {
  const startedAt = ctx.clock.now()
  const run = await ctx.store.getRun(ref, { consistent: true })
  const seen = await ctx.store.getHeader(ref)
  if (!run || !seen) {
    ctx.log.warn('event for a session that is not there', { ...ref, run: run !== undefined })
    return
  }
  if (isTerminal(seen)) return settleUp(ctx, ref)
  const free =
    isClaimable(seen, startedAt) || (seen.status === 'running' && seen.lease !== null && seen.lease < startedAt)
  if (!free) return

  const team = await definitionOf(ctx, run)
  const agent = seen.agent === null ? null : (findAgent(team, seen.agent) ?? null)
  if (seen.agent !== null && !agent) throw new Error(`run ${run.runId}: its team has no agent ${seen.agent}`)
  const driver = ctx.ids.nonce()
  const first = agent && !run.stop ? await firstIntent(ctx, run, team, agent, seen, driver) : undefined

  const at = ctx.clock.now()
  const lease = leaseUntil(at, ctx.settings.leaseMs, deadlineAt)
  const claim = { seenAttempt: seen.attempt, driver, now: at, lease, first: first?.intent ?? null }
  const claimed = await ctx.store.claim(ref, claim)
  const header = claimed.written ? claimed.item : await ctx.store.getHeader(ref)
  if (!header) throw new Error(`session ${ref.sessionId} has lost its header`)
  if (isTerminal(header)) return settleUp(ctx, ref)
  if (header.driver !== driver) return // another one was faster

  const d: Drive = {
    ctx,
    ref,
    run,
    team,
    agent,
    driver,
    attempt: header.attempt,
    startedAt,
    deadlineAt,
    header,
    slots: { requests: new Map(), responses: new Map(), results: new Map() },
    called: new Set(),
    // a session lies down in order only after all its children have their headers
    childrenPut: seen.status === 'waiting' ? seen.deleg.turn : -1,
    leaseAt: at,
    marked: -1,
    pots: new Map(),
    potsSettled: false,
    warnedSeq: -1,
    retryAt: 0,
    ...(first && { task: first.task }),
  }
  try {
    // a session that was never claimed before has an empty log: nothing to read
    if (header.attempt > 1) await reload(d)
    await loop(d)
  } catch (fault) {
    await letGo(d)
    throw fault // the platform delivers the event again
  }
}

/** A driver that knows that it fails gives the session back, so that the event's next delivery need not wait for the lease. */
async function letGo(d: Drive): Promise<void> {
  try {
    await d.ctx.store.release(d.ref, d.attempt, { continues: false, now: d.ctx.clock.now() })
  } catch (fault) {
    d.ctx.log.warn('could not give a session back; its lease will run out', { ...d.ref, fault: String(fault) })
  }
}

/** The intent of call 0 rides on the first claim and saves a write. */
async function firstIntent(
  ctx: EngineContext,
  run: Run,
  team: TeamDefinition,
  agent: AgentDefinition,
  seen: SessionHeader,
  driver: string,
): Promise<{ intent: Intent | null; task: UserMessage } | undefined> {
  if (seen.attempt > 0 || seen.stop) return undefined
  // a root that was cancelled before it began opens its next round with both inputs, in a request of its own
  if (seen.parentId === null && seen.round > 1) return undefined
  const text = await taskOf(ctx.store, run, seen)
  if (!text) throw new Error(`the task of session ${seen.sessionId} of run ${run.runId} is not in the table`)
  const task: UserMessage = { role: 'user', content: taskMessage(text) }
  const at = ctx.clock.now()
  const call = boundFor({ team, agent }, [task], at)
  // what is held in pots is held before the intent
  const drawn = potsOf(team, agent).length > 0
  if (drawn || isBlocked(effectiveLimit(run)) || !covers(seen.own, call.hold) || covers(ZERO, seen.own))
    return { intent: null, task }
  const intent = intentFor({ team, agent, driver, attempt: 1 }, call, at)
  return { intent, task }
}
