import { isUnlimited } from '../domain/budget.ts'
import { childSessionId, rootSessionId } from '../domain/ids.ts'
import { GROUP_SIZE } from '../domain/limits.ts'
import type { LogState } from '../domain/log.ts'
import { effectiveLimit } from '../domain/outer-limit.ts'
import { FIRST_INPUT_REF } from '../domain/run.ts'
import { isOutOfBudget, isTask, type SessionHeader } from '../domain/session.ts'
import type { End, RequestSlot } from '../domain/turn.ts'
import { delegate, type Kid } from './delegate.ts'
import { type Drive, now, reload, type Step } from './drive.ts'
import { waitFor } from './wait.ts'

/** Children read at once. */
const AT_ONCE = 25

/**
 * One step of a session without a model: delegate everything, wait for everything, done. A list of more than 100 tasks
 * goes through groups, so that no header grows; a group is such a list itself. A list that goes on in a later round makes
 * new children: of the tasks that are to be tried again, or, with more money than before, of those that were refused for
 * want of it.
 */
export async function listStep(d: Drive, state: LogState): Promise<Step> {
  const turn = d.header.round - 1
  const done = d.header.deleg.turn >= turn && d.childrenPut >= turn
  const given = await delegate(d, turn, done ? [] : await kidsOf(d, turn))
  if (typeof given === 'string') return given
  if (given.count > 0) {
    const waited = await waitFor(d, { ordinals: 'all', wakeAt: null, closed: false, rows: [] })
    if (waited !== 'ready') return waited
  }
  const { n } = state.next
  const slot: RequestSlot = { n, round: d.header.round, messages: [], end: await endOf(d), at: now(d) }
  const put = await d.ctx.store.putRequest(d.ref, slot, d.driver)
  if (put === 'written') d.slots.requests.set(n, slot)
  else await reload(d)
  return 'again'
}

async function endOf(d: Drive): Promise<End> {
  const left = isUnlimited(effectiveLimit(d.run)) ? 0 : (await refusedOnes(d, placesOf(d), d.header.next)).length
  if (left === 0) return { status: 'completed', reason: 'end_turn' }
  const what = hasGroups(d) ? `some tasks in ${left} hundreds of them` : `${left} of the tasks`
  // what is short is noted where it is a limit outside of the run: no larger budget helps then, but time does
  const short = (await d.ctx.store.getRun(d.ref, { consistent: true }))?.short
  const message = `${short ? 'What is left of a limit over time' : 'The budget'} does not cover ${what}.`
  return { status: 'failed', reason: 'budget', error: { code: short ? 'limit' : 'budget', message } }
}

const hasGroups = (d: Drive): boolean => d.header.kind === 'root' && (d.run.tasks ?? 0) > GROUP_SIZE

/** Places in the input of what this list is made of: its tasks, or the first task of each group. */
function placesOf(d: Drive): number[] {
  const total = d.run.tasks ?? 0
  if (hasGroups(d)) return Array.from({ length: Math.ceil(total / GROUP_SIZE) }, (_, g) => g * GROUP_SIZE)
  const start = d.header.via.index
  return Array.from({ length: Math.min(GROUP_SIZE, total - start) }, (_, i) => start + i)
}

async function kidsOf(d: Drive, turn: number): Promise<Kid[]> {
  const { deleg, next } = d.header
  const places = placesOf(d)
  const asked = await askedOnes(d)
  const left = asked
    ? places.filter((p) => asked.has(p))
    : // as it was before this round's children, should they have been given their ordinals already
      await refusedOnes(d, places, deleg.turn === turn ? deleg.from : next)
  if (hasGroups(d)) {
    return left.map((index) => ({
      agent: null,
      kind: 'group',
      via: { turn: null, index },
      weight: GROUP_SIZE,
      task: null,
    }))
  }
  const start = d.header.via.index
  const tasks = await d.ctx.store.getTasks(d.ref, 1, FIRST_INPUT_REF, start)
  return left.map((index) => {
    const { agent, task } = tasks[index - start]!
    return { agent, kind: 'task', via: { turn: null, index }, weight: 1, task }
  })
}

/** Those places that this round was opened to try again; undefined: it was not opened for that. */
async function askedOnes(d: Drive): Promise<ReadonlySet<number> | undefined> {
  if (d.header.round === 1) return undefined
  // the run may have been read before the round was opened
  const run = await d.ctx.store.getRun(d.ref, { consistent: true })
  if (run?.retry?.round !== d.header.round) return undefined
  const input = await d.ctx.store.getInput(d.ref, run.retry.round, run.retry.ref)
  if (!input || !('retry' in input)) throw new Error(`what round ${run.retry.round} tries again is not in the table`)
  return new Set(hasGroups(d) ? input.retry.map((i) => i - (i % GROUP_SIZE)) : input.retry)
}

/** Those places of which no child has been made yet, or the last one was refused for want of money. */
async function refusedOnes(d: Drive, places: readonly number[], next: number): Promise<number[]> {
  const last = new Map<number, SessionHeader>()
  for (const h of [...(await earlierOnes(d)), ...(await childrenOf(d, d.ref.sessionId, next))])
    if (h.kind === 'group' || isTask(h)) last.set(h.via.index, h)
  return places.filter((index) => {
    const h = last.get(index)
    return !h || isOutOfBudget(h)
  })
}

/** Children of the groups that were made of the same tasks in earlier rounds. */
async function earlierOnes(d: Drive): Promise<SessionHeader[]> {
  if (d.header.kind !== 'group' || d.header.ordinal < Math.ceil((d.run.tasks ?? 0) / GROUP_SIZE)) return []
  const groups = await childrenOf(d, rootSessionId(d.run.runId), d.header.ordinal)
  const same = groups.filter((g) => g.via.index === d.header.via.index)
  const children = await Promise.all(same.map((g) => childrenOf(d, g.sessionId, g.next)))
  return children.flat()
}

/** Headers of the first `count` children of a session, in their order. */
async function childrenOf(d: Drive, sessionId: string, count: number): Promise<SessionHeader[]> {
  const found: SessionHeader[] = []
  for (let from = 0; from < count; from += AT_ONCE) {
    const ids = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, i) => childSessionId(sessionId, from + i))
    const headers = await Promise.all(ids.map((id) => d.ctx.store.getHeader({ ...d.ref, sessionId: id })))
    found.push(...headers.filter((h) => h !== undefined))
  }
  return found
}
