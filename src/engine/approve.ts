import { type ApprovalRef, askOf, awaitsApproval, type Decision, parseApprovalId } from '../domain/approval.ts'
import { SubledgerError } from '../domain/errors.ts'
import type { Run, RunRef, SessionRef } from '../domain/run.ts'
import { isTerminal, type SessionHeader } from '../domain/session.ts'
import { bringForward } from './bring-forward.ts'
import type { EngineContext } from './context.ts'
import { takeOff } from './wake.ts'

type Ctx = Pick<EngineContext, 'store' | 'invoker' | 'clock' | 'log' | 'settings'>

/** What somebody says about a tool call. */
export interface Verdict {
  readonly decision: Decision['decision']
  readonly note?: string | undefined
  /** the principal; null: it is not known */
  readonly by: string | null
}

/**
 * Decides about a tool call that waits for it. The first decision stands; the same one again is the same answer. Then the
 * session is woken, when it was the last that it waits for. The sweep is told first, so that whoever dies in between
 * leaves a session that goes on.
 * @returns the run
 * @throws SubledgerError unknown_run, unknown_approval, approval_closed
 */
export async function decideApproval(ctx: Ctx, ref: RunRef, approvalId: string, verdict: Verdict): Promise<Run> {
  const run = await ctx.store.getRun(ref, { consistent: true })
  if (!run) throw new SubledgerError('unknown_run', `There is no run ${ref.runId}.`)
  const place = parseApprovalId(approvalId)
  const seen = place && (await find(ctx, ref, place))
  if (!place || !seen || seen.askedAt === null) {
    const id = JSON.stringify(approvalId.slice(0, 40))
    throw new SubledgerError('unknown_approval', `There is no approval ${id} in run ${ref.runId}.`)
  }
  const session = { ...ref, sessionId: place.sessionId }
  if (seen.closedAt !== null) throw closed()
  if (!seen.decision) {
    await checkOpen(ctx, session, seen.round)
    await tellSweep(ctx, ref)
  }
  const { n, index } = place
  const at = ctx.clock.now()
  const decision = { decision: verdict.decision, by: verdict.by, at, note: verdict.note ?? null }
  const written = seen.decision ? undefined : await ctx.store.decideApproval(session, n, index, decision)
  const now = written?.written ? undefined : await find(ctx, ref, place)
  if (now && now.closedAt !== null) throw closed()
  const stands = written?.written ? decision : now?.decision
  if (stands?.decision !== verdict.decision)
    throw new SubledgerError('approval_closed', `It was decided already: ${stands?.decision ?? 'it is gone'}.`)
  // a sweep that came between the telling and the decision has put the run off
  await tellSweep(ctx, ref)
  try {
    await takeOff(ctx, session, askOf(place))
  } catch (fault) {
    // it is decided by now: a caller who was told of a failure would think that it is not
    ctx.log.warn('a decision waits for the sweep: its session could not be woken', { ...session, fault: String(fault) })
  }
  return (await ctx.store.getRun(ref, { consistent: true })) ?? run
}

const find = (ctx: Ctx, ref: RunRef, { sessionId, n, index }: ApprovalRef) =>
  ctx.store.getApproval({ ...ref, sessionId }, n, index)

/** A decision about what nobody waits for any more would be none. */
async function checkOpen(ctx: Ctx, ref: SessionRef, round: number): Promise<void> {
  const h = await ctx.store.getHeader(ref)
  if (h && !isTerminal(h) && !h.stop && h.round === round) return
  throw closed()
}

const closed = () =>
  new SubledgerError('approval_closed', 'The session has ended, or is going to: nothing waits for this any more.')

/** The sweep looks at the run soon, and not only when the wait has lasted as long as it may. */
const tellSweep = (ctx: Ctx, ref: RunRef): Promise<void> =>
  bringForward(ctx, ref, ctx.clock.now() + ctx.settings.eventAgeMs, { moved: true })

/**
 * What is decided about a session's questions and has not reached it, because whoever decided came before it lay down or
 * died behind it.
 * @returns whether it was woken
 */
export async function passDecisions(ctx: Ctx, ref: SessionRef, h: SessionHeader): Promise<boolean> {
  if (!awaitsApproval(h)) return false
  const all = await ctx.store.listApprovals(ref)
  let woken = false
  for (const a of all) if (a.decision && h.asks.has(askOf(a))) woken = (await takeOff(ctx, ref, askOf(a))).woken
  return woken
}
