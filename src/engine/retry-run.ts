import { type InputIssue, SubledgerError } from '../domain/errors.ts'
import type { Run, RunRef } from '../domain/run.ts'
import { isTask, isTerminal, type SessionHeader } from '../domain/session.ts'
import type { EngineContext } from './context.ts'
import { active, type Opening, openedBefore, openRound } from './open-round.ts'

/** What makes a retry of its own out of a request that may be sent again. */
export interface OnceRetry {
  /** the round that the run was in when it was sent first */
  readonly seenRound: number
  readonly retryRef: string
}

/** Headers read with one request. */
const PAGE = 500
const MOST_ISSUES = 20

/**
 * Has what was not completed tried once more, in a new round. Of a list each task whose last session was not completed
 * gets a new one, or those of them that `sessions` names. A run from an input goes on where it stopped.
 * @param sessions of the tasks that are meant, any of each; left out: all
 * @param once of a request that may have been sent before: it opens one round at most, and finishes what it finds
 * @throws SubledgerError unknown_run, run_active, nothing_to_retry, bad_request, too_many_runs
 */
export async function retryRun(
  ctx: EngineContext,
  ref: RunRef,
  sessions?: readonly string[],
  once?: OnceRetry,
): Promise<Run> {
  const run = await ctx.store.getRun(ref, { consistent: true })
  if (!run) throw new SubledgerError('unknown_run', `There is no run ${ref.runId}.`)
  const opening: Opening = { name: once?.retryRef ?? ctx.ids.nonce(), input: null, retry: true }
  const before = once && (await openedBefore(ctx, run, once.seenRound, opening))
  if (before) return before
  if (run.status === 'waiting') {
    throw new SubledgerError(
      'run_active',
      run.error?.code === 'limit'
        ? `Run ${ref.runId} waits for a limit over time, and goes on by itself when there is enough again.`
        : `Run ${ref.runId} waits for its budget: raise it with PUT /v1/runs/${ref.runId}/budget, and it goes on by itself.`,
    )
  }
  if (!isTerminal(run)) throw active(ref)
  if (run.tasks !== null) {
    return openRound(ctx, run, { ...opening, input: { retry: await placesToRetry(ctx, run, run.tasks, sessions) } })
  }
  if (sessions) {
    throw new SubledgerError(
      'bad_request',
      '/sessions: this run was started from an input and goes on as a whole: leave "sessions" out.',
      { issues: [{ path: '/sessions', message: 'is for runs that were started from a list of tasks' }] },
    )
  }
  if (run.status === 'completed') throw nothing('the run was completed')
  return openRound(ctx, run, opening)
}

const nothing = (why: string): SubledgerError =>
  new SubledgerError('nothing_to_retry', `There is nothing to retry: ${why}.`)

/** Places in the list of the tasks that are to be tried again, in order. */
async function placesToRetry(
  ctx: Pick<EngineContext, 'store'>,
  run: Run,
  tasks: number,
  sessions: readonly string[] | undefined,
): Promise<number[]> {
  const last = new Map<number, SessionHeader>()
  const placeOf = new Map<string, number>()
  let after: string | undefined
  do {
    const options = { consistent: true, limit: PAGE, ...(after !== undefined && { after }) }
    const page = await ctx.store.listHeaders(run, options)
    for (const h of page.items) {
      if (!isTask(h)) continue
      placeOf.set(h.sessionId, h.via.index)
      // a round makes one session of a task at most
      if (h.round > (last.get(h.via.index)?.round ?? 0)) last.set(h.via.index, h)
    }
    after = page.next
  } while (after !== undefined)
  if (sessions) checkNamed(sessions, placeOf)
  const named = sessions && new Set(sessions.map((id) => placeOf.get(id)!))
  const all = Array.from({ length: tasks }, (_, i) => i)
  const places = all.filter((i) => (!named || named.has(i)) && last.get(i)?.status !== 'completed')
  if (places.length === 0) throw nothing(named ? 'these tasks were completed' : 'all tasks were completed')
  return places
}

function checkNamed(sessions: readonly string[], placeOf: ReadonlyMap<string, number>): void {
  const issues = sessions.flatMap((id, i): InputIssue[] =>
    placeOf.has(id)
      ? []
      : [{ path: `/sessions/${i}`, message: `${JSON.stringify(id.slice(0, 40))} is no task of the list` }],
  )
  if (issues.length === 0) return
  const { path, message } = issues[0]!
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  throw new SubledgerError('bad_request', `${path}: ${message}${more}. GET /v1/runs/{runId}/sessions lists them.`, {
    issues: issues.slice(0, MOST_ISSUES),
  })
}
