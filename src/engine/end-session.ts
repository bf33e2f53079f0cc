import { childSessionId } from '../domain/ids.ts'
import { PREVIEW_BYTES } from '../domain/limits.ts'
import type { LogState } from '../domain/log.ts'
import { ZERO } from '../domain/money.ts'
import type { SessionRef } from '../domain/run.ts'
import { isClaimable, isTerminal, type SessionHeader } from '../domain/session.ts'
import { canDelegate } from '../domain/team.ts'
import { cutBytes } from '../domain/text.ts'
import type { End, ResponseSlot } from '../domain/turn.ts'
import { type Drive, now, refresh, type Step } from './drive.ts'
import { newHeader } from './new-header.ts'
import { settlePots } from './pots.ts'
import { settleUp } from './settle.ts'
import { waitFor } from './wait.ts'

/** Children looked at at once while a session ends. */
const AT_ONCE = 10

/**
 * The log is closed. Stops what still works below (or waits for it, if the team file says so), waits until it has
 * settled, writes the totals and settles. A settled subtree is complete.
 */
export async function endSession(d: Drive, state: LogState): Promise<Step> {
  const h = d.header
  // no call can begin any more: what is left in its pots is for the others
  await settlePots(d)
  if (h.pending.size > 0) {
    const leave = d.agent?.atEnd === 'wait' && state.kind === 'final' && !h.stop && !d.run.stop
    if (!leave) await stopChildren(d, h)
    const waited = await waitFor(d, { ordinals: 'all', wakeAt: null, closed: true, rows: state.rows })
    return waited === 'ready' ? 'again' : waited
  }
  const end = endOf(state)
  const answer = state.kind === 'final' ? state.last : undefined
  const finished = await d.ctx.store.finish(d.ref, {
    round: h.round,
    status: end.status,
    stopReason: end.reason,
    error: end.error ?? null,
    rows: state.rows,
    unknowns: state.unknowns,
    finalTurn: answer ? answer.n : null,
    outputPreview: answer?.message && isLeaf(d) ? cutBytes(answer.message.content, PREVIEW_BYTES) : null,
    now: now(d),
  })
  if (!finished.written) {
    const g = await refresh(d)
    if (!isTerminal(g)) return g.attempt === d.attempt && g.status === 'running' ? 'again' : 'gone'
  }
  await settleUp(d.ctx, d.ref, finished.written ? finished.item : undefined)
  return 'gone'
}

const isLeaf = (d: Drive) => d.agent !== null && !canDelegate(d.agent)

/** How a session with a closed log has ended. */
function endOf(state: LogState): End {
  if (state.end) return state.end
  return endOfAnswer(state.last)
}

/** A last answer ends the session as its finish reason says. */
export function endOfAnswer(answer: ResponseSlot | undefined): End {
  switch (answer?.finishReason) {
    case 'length':
      return { status: 'completed', reason: 'max_tokens' }
    case 'content_filter':
      return {
        status: 'failed',
        reason: 'content_filter',
        error: { code: 'content_filter', message: 'The provider held the answer back.' },
      }
    case 'refusal':
      return {
        status: 'failed',
        reason: 'refusal',
        error: { code: 'refusal', message: 'The model refused to answer.' },
      }
    default:
      return { status: 'completed', reason: 'end_turn' }
  }
}

async function stopChildren(d: Drive, h: SessionHeader): Promise<void> {
  const ordinals = [...h.pending]
  for (let i = 0; i < ordinals.length; i += AT_ONCE) {
    await Promise.all(ordinals.slice(i, i + AT_ONCE).map((o) => stopChild(d, h, o)))
  }
}

async function stopChild(d: Drive, parent: SessionHeader, ordinal: number): Promise<void> {
  const { store } = d.ctx
  const ref: SessionRef = { ...d.ref, sessionId: childSessionId(d.ref.sessionId, ordinal) }
  let child = await store.getHeader(ref)
  if (!child) {
    await store.putHeader(tombstone(d, parent, ordinal))
    child = await store.getHeader(ref)
    if (!child) throw new Error(`child ${ordinal} of session ${d.ref.sessionId} has no header`)
  }
  if (isTerminal(child)) return settleUp(d.ctx, ref)
  await stopSession(d.ctx, ref, child, d.header.stop ?? 'parent_ended')
}

/**
 * Asks one session to stop. One that nobody has ever claimed ends at once; another one is told, and woken if nobody
 * drives it. Children of its own are its own affair.
 */
export async function stopSession(
  ctx: Drive['ctx'],
  ref: SessionRef,
  h: SessionHeader,
  reason: NonNullable<SessionHeader['stop']>,
): Promise<void> {
  const at = ctx.clock.now()
  const to = { reason, round: h.round, now: at }
  if (h.status === 'queued' && h.attempt === 0) {
    const ended = await ctx.store.cancelUnclaimed(ref, to)
    if (ended.written) return settleUp(ctx, ref)
  }
  const stopped = await ctx.store.stop(ref, to)
  const now = stopped.written ? stopped.item : await ctx.store.getHeader(ref)
  if (!now) return
  if (isTerminal(now)) return settleUp(ctx, ref)
  // one that was stopped before and is queued has its event, or the sweep finds that it has lost it
  if (isClaimable(now, at) && (stopped.written || now.status !== 'queued')) await ctx.invoker.invoke(ref)
}

/** A child that was given its ordinal but never its header: it is put as cancelled, so that it can settle. */
function tombstone(d: Drive, parent: SessionHeader, ordinal: number): SessionHeader {
  const { deleg } = parent
  const funded = ordinal >= deleg.from && ordinal < deleg.from + deleg.funded
  const at = now(d)
  return {
    ...newHeader(d.run, d.team, {
      sessionId: childSessionId(d.ref.sessionId, ordinal),
      parentId: d.ref.sessionId,
      ordinal,
      agent: null,
      kind: parent.agent === null ? 'task' : 'background',
      depth: parent.depth + 1,
      round: parent.round,
      via: { turn: parent.agent === null ? null : deleg.turn, index: 0 },
      width: 1,
      share: funded ? deleg.share : ZERO,
      taskPreview: null,
      now: at,
    }),
    status: 'cancelled',
    stop: 'parent_ended',
    stopReason: 'parent_ended',
    finishedAt: at,
  }
}
