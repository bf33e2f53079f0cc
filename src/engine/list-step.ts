import { GROUP_SIZE } from '../domain/limits.ts'
import { FIRST_INPUT_REF } from '../domain/run.ts'
import type { End, RequestSlot } from '../domain/turn.ts'
import { delegate, type Kid } from './delegate.ts'
import { type Drive, now, reload, type Step } from './drive.ts'
import { waitFor } from './wait.ts'

/**
 * One step of a session without a model: delegate everything, wait for everything, done. A list of more than 100 tasks
 * goes through groups, so that no header grows; a group is such a list itself.
 */
export async function listStep(d: Drive): Promise<Step> {
  const done = d.header.deleg.turn >= 0 && d.childrenPut >= 0
  const given = await delegate(d, 0, done ? [] : await kidsOf(d))
  if (typeof given === 'string') return given
  if (given.count > 0) {
    const waited = await waitFor(d, { ordinals: 'all', wakeAt: null, closed: false, rows: [] })
    if (waited !== 'ready') return waited
  }
  const end: End =
    given.count > 0
      ? { status: 'completed', reason: 'end_turn' }
      : {
          status: 'failed',
          reason: 'budget',
          error: { code: 'budget', message: 'The budget does not cover one call of a task.' },
        }
  const slot: RequestSlot = { n: 0, round: d.header.round, messages: [], end, at: now(d) }
  const put = await d.ctx.store.putRequest(d.ref, slot, d.driver)
  if (put === 'written') d.slots.requests.set(0, slot)
  else await reload(d)
  return 'again'
}

async function kidsOf(d: Drive): Promise<Kid[]> {
  const total = d.run.tasks ?? 0
  if (d.header.kind === 'root' && total > GROUP_SIZE) {
    return Array.from({ length: Math.ceil(total / GROUP_SIZE) }, (_, g) => ({
      agent: null,
      kind: 'group',
      via: { turn: null, index: g * GROUP_SIZE },
      weight: GROUP_SIZE,
      task: null,
    }))
  }
  const start = d.header.via.index
  const tasks = await d.ctx.store.getTasks(d.ref, 1, FIRST_INPUT_REF, start)
  return tasks.map((t, i) => ({
    agent: t.agent,
    kind: 'task',
    via: { turn: null, index: start + i },
    weight: 1,
    task: t.task,
  }))
}
