import { positive } from '../domain/budget.ts'
import type { LogState } from '../domain/log.ts'
import { type Amount, add, isZero, sub, ZERO } from '../domain/money.ts'
import { limitedPart } from '../domain/outer-limit.ts'
import { type Drive, refresh } from './drive.ts'
import { restGrants, workOn } from './grants.ts'
import { headerOf } from './header-of.ts'
import { mark } from './mark.ts'
import { gather } from './survey.ts'

/**
 * Nobody in the run can go on, and others hold what it needs of a limit outside. All that it has and cannot use is brought
 * up to its root and given back, so that runs which wait for each other do not wait for ever; the last one is refused.
 * @param hold what the call may cost
 * @returns `again`: something has changed · `marked`: the log has · `wait` · `refused`: everybody waits
 */
export async function rest(
  d: Drive,
  state: LogState,
  path: readonly string[],
  hold: Amount,
): Promise<'again' | 'marked' | 'wait' | 'refused'> {
  const at = (i: number) => headerOf(d.ctx, { ...d.ref, sessionId: path[i]! })
  for (let i = path.length - 1; i > 0; i--) {
    const child = await at(i)
    if (await gather(d.ctx, await at(i - 1), child)) return 'again'
  }
  const left = await leave(d, state, path)
  if (left !== 'done') return left
  const outer = await restGrants(d.ctx, d.ref, hold)
  if (outer === 'again' || outer.enough) return 'again'
  if (outer.wait) return 'wait'
  await workOn(d.ctx, d.ref)
  return 'refused'
}

/** The root gives up what it may still give; where it is this session itself, also what it does not need for its calls. */
async function leave(d: Drive, state: LogState, path: readonly string[]): Promise<'done' | 'again' | 'marked'> {
  const own = path.length === 1
  const root = own ? await refresh(d) : await headerOf(d.ctx, { ...d.ref, sessionId: path[0]! })
  const idle = limitedPart(d.run, positive(root.avail))
  const unspent = own ? limitedPart(d.run, positive(sub(root.own, state.spent))) : ZERO
  if (isZero(idle) && isZero(unspent)) return 'done'
  if (!isZero(unspent) && !(await mark(d, state))) return 'marked'
  const written = await d.ctx.store.giveBack(root, {
    seenGiven: root.given,
    given: add(root.given, add(idle, unspent)),
    avail: idle,
    own: isZero(unspent) ? null : { seen: root.own, to: sub(root.own, unspent), attempt: d.attempt },
  })
  return written.written ? 'done' : 'again'
}
