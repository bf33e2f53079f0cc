/**
 * docs/protocol.md has each write's expressions as the store sends them: the store runs over a table that writes them
 * down, and each must stand in the page's section on that write.
 */
import { describe, expect, test } from 'vitest'
import { NO_STATE } from '../../src/domain/schedule.ts'
import type { Store } from '../../src/ports.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import {
  aHeader,
  anIntent,
  aRequest,
  aResponse,
  aRun,
  aToolResult,
  DRIVER,
  money,
  rootRef,
  runRef,
  T0,
} from '../support/builders.ts'
import { page } from './pages.ts'

const doc = page('docs/protocol.md')
const plain = (text: string) => text.replaceAll('#', '').replace(/\s+/g, ' ').trim()

interface Sent {
  readonly condition: string
  readonly update: string
}

/** What the store sends for one call. The writes need not succeed. */
async function sentBy(write: (store: Store) => Promise<unknown>): Promise<Sent[]> {
  const sent: Sent[] = []
  const table = memoryTable()
  const listening: TableClient = {
    get: (request) => table.get(request),
    query: (request) => table.query(request),
    delete(request) {
      sent.push({ condition: request.condition ?? '', update: '' })
      return table.delete(request)
    },
    put(request) {
      sent.push({ condition: request.condition ?? '', update: '' })
      return table.put(request)
    },
    update(request) {
      sent.push({ condition: request.condition, update: request.update })
      return table.update(request)
    },
  }
  await write(createStore(listening))
  return sent
}

const [ref, run, now] = [rootRef(), runRef(), T0]
const pot = { ...run, pot: 'research' }
const once = { tenant: 'local', route: 'POST /v1/runs', key: 'k' }
const ERROR = { code: 'x', message: 'y' }
const suspend = { rows: [], now, closed: false, wakeAt: T0 }
const end = { status: 'completed', stopReason: 'end_turn', error: ERROR, now } as const
const given = {
  seenGiven: money(1),
  given: money(2),
  avail: money(1),
  own: { seen: money(1), to: money(1), attempt: 1 },
}
const grants = [{ period: '2026-11-30', name: 'tenant', from: money(0), hold: money(1) }]
const short = { need: money(1), resumeAt: T0 }
const up = { given: money(2), seenOwn: money(1), own: money(1), avail: money(1) }
const question = { n: 0, index: 0, round: 1, tool: 'think', nth: 0, of: 1 }
const settlement = { ordinal: 0, books: {}, sessions: 1, back: money(1) }

/** Each write in its fullest form; and the forms in which its condition is another. */
const FULL: readonly [section: string, write: (s: Store) => Promise<unknown>][] = [
  ['W1', (s) => s.createRun(aRun())],
  ['W2', (s) => s.putHeader(aHeader())],
  ['W3', (s) => s.claim(ref, { seenAttempt: 0, driver: DRIVER, now, lease: T0, first: anIntent() })],
  ['W4', (s) => s.release(ref, 1, { continues: true, now: now })],
  ['W4b', (s) => s.heartbeat(ref, 1, { lease: T0, rows: [], now })],
  ['W5', (s) => s.putRequest(ref, aRequest(), DRIVER)],
  ['W6', (s) => s.putResponse(ref, aResponse(), DRIVER)],
  ['W7', (s) => s.putResponse(ref, aResponse(), DRIVER)],
  ['W8', (s) => s.putRequest(ref, aRequest(), DRIVER)],
  ['W10', (s) => s.putToolResult(ref, aToolResult(), DRIVER)],
  [
    'W11',
    (s) => s.delegate(ref, { round: 1, turn: 0, from: 0, count: 2, share: money(1), funded: 1, needs: [1], now }),
  ],
  ['W12', (s) => s.suspend(ref, 1, { ...suspend, on: 'all' })],
  ['W12', (s) => s.suspend(ref, 1, { ...suspend, on: { ordinals: [0], settled: 0 } })],
  ['W12', (s) => s.suspend(ref, 1, { ...suspend, on: 'time' })],
  ['W12', (s) => s.suspend(ref, 1, { ...suspend, on: 'money' })],
  ['W12', (s) => s.suspend(ref, 1, { ...suspend, on: { asks: ['0#0'] } })],
  ['W13', (s) => s.stop(ref, { reason: 'cancelled', round: 1, now: now })],
  ['W13b', (s) => s.cancelUnclaimed(ref, { reason: 'cancelled', round: 1, now: now })],
  ['W14', (s) => s.cancelRun(run, { now })],
  ['W15', (s) => s.finish(ref, { ...end, round: 1, rows: [], unknowns: {}, finalTurn: 1, outputPreview: 'x' })],
  ['W16', (s) => s.settle(ref, { ...settlement, lent: money(1), returned: money(1), seen: { v: 0, books: {} } }, now)],
  [
    'W17',
    (s) =>
      s.finishRun(run, { ...end, round: 1, books: {}, sessions: 1, v: 1, reportedAt: T0, dueAt: T0, seenLimitSeq: 0 }),
  ],
  ['A run is deleted', (s) => s.deleteRun(run, { dueAt: T0, now })],
  ['A run is deleted', (s) => s.purgeRun(aRun({ expiresAt: 1 }), 10)],
  ['W18', (s) => s.lend(ref, 0, money(1), money(1))],
  ['W18', (s) => s.lend(ref, 0, money(1), money(1), { avail: money(1), next: 1, attempt: 1 })],
  ['W19', (s) => s.takeLoan(ref, money(1), money(2), 'own')],
  ['W20', (s) => s.raiseOwn(ref, money(1), money(1))],
  ['W21', (s) => s.correctOwn(ref, 0, 1, [], now)],
  ['W22', (s) => s.correctParent(ref, 0, 1, { seen: { v: 2, books: {} }, difference: {}, back: money(1), now })],
  ['W23', (s) => s.correctRun(run, 0, { v: 1, books: {}, now })],
  ['W24', (s) => s.undueRun(run, { v: 1, dueAt: T0 })],
  ['W25', (s) => s.pushDue(run, { dueAt: T0, updatedAt: T0 }, T0)],
  ['W26', (s) => s.putLimit(pot, money(1))],
  ['W26', (s) => s.moveLimit(pot, money(1), money(2))],
  ['W26', (s) => s.hold(pot, 'a', { hold: null, v: 0 }, money(1))],
  ['W26', (s) => s.hold(pot, 'a', { hold: money(1), v: 0 }, money(2))],
  ['W26', (s) => s.hold(pot, 'a', { hold: { ...money(1), seq: 1 }, v: 0 }, { ...money(2), seq: 2 })],
  ['W26', (s) => s.settleHold(pot, 'a', money(1), money(1))],
  ['W26', (s) => s.settleHold(pot, 'a', { ...money(1), seq: 1 }, money(1))],
  ['W26', (s) => s.settleHold(pot, 'a', null, money(0))],
  ['W26b', (s) => s.moveGrants(run, aRun(), { granted: money(1), grants, short, due: { at: T0 }, now })],
  ['W26b', (s) => s.moveGrants(run, aRun(), { granted: money(1), grants: [], now })],
  ['W26c', (s) => s.giveUp(ref, { ...up, seenGiven: money(1) })],
  ['W26c', (s) => s.giveUp(ref, { ...up, seenGiven: money(0) })],
  ['W29', (s) => s.closeUsageHours({ tenant: 'local', day: '2026-01-31' }, 3)],
  ['W33', (s) => s.moveUsageFolded({ tenant: 'local', day: '2026-01-31' }, { folded: 3, dueAt: T0 })],
  ['W34', (s) => s.takePlace('local', { runId: run.runId, sessions: 50 }, 100)],
  ['W35', (s) => s.givePlaceBack('local', { runId: run.runId, sessions: 50 })],
  ['A long poll', (s) => s.takePoll('local', run.runId, 20)],
  ['A long poll', (s) => s.givePollBack('local', run.runId)],
  ['W36', (s) => s.need(ref, 0, 'needs')],
  ['W37', (s) => s.giveBack(ref, given)],
  ['W38', (s) => s.takeBack(ref, 0, money(1), money(2), true)],
  ['W39', (s) => s.takeLimit(ref, 0, { seq: 1, limit: money(1), more: money(1), now })],
  ['W40', (s) => s.unask(ref, now)],
  ['W41', (s) => s.changeLimit(run, { seen: aRun(), limit: money(1), resume: { dueAt: T0 }, now })],
  ['W42', (s) => s.failWaiting(run, 1, { now })],
  ['W43', (s) => s.warnBudget(run, 0, now)],
  ['A new round', (s) => s.openRound(run, { seenRound: 1, inputRef: DRIVER, dueAt: T0, now })],
  ['A new round', (s) => s.openRound(run, { seenRound: 1, retryRef: DRIVER, inputRound: 1, dueAt: T0, now })],
  ['A new round', (s) => s.reopenRoot(ref, 1, now)],
  ['An approval', (s) => s.putApproval(ref, { ...question, askedAt: T0 })],
  ['An approval', (s) => s.closeApproval(ref, question, T0)],
  ['An approval', (s) => s.decideApproval(ref, 0, 0, { decision: 'deny', by: 'x', at: T0, note: 'y' })],
  ['A pause of a model', (s) => s.coolDown('local', 'crew', 'mini', T0)],
  ['An idempotency record', (s) => s.putOnce(once, { bodyHash: 'x', token: 'y', createdAt: T0, expiresAt: 1 }, T0)],
  [
    'An idempotency record',
    (s) => s.answerOnce(once, { token: 'y', expiresAt: 1 }, { status: 202, location: '/x', body: '{}' }, DRIVER),
  ],
  ['An idempotency record', (s) => s.releaseOnce(once, 'y')],
  ['A schedule', (s) => s.moveSchedule({ tenant: 'local', id: 'a' }, 1, { ...NO_STATE, dueAt: T0 })],
]
const OTHER_CONDITIONS: typeof FULL = [
  ['W9', (s) => s.bookLate(ref, aResponse(), DRIVER)],
  ['W16', (s) => s.settle(ref, { ...settlement, lent: null, seen: null }, now)],
]

/** The text of the section whose heading names the write. */
function sectionOn(name: string): string {
  const sections = doc.text.split(/^### /m).slice(1)
  const found = sections.filter((s) => new RegExp(`(^|[ ,])${name}\\b`).test(s.split('\n')[0]!))
  if (found.length !== 1) throw new Error(`${found.length} sections of docs/protocol.md are on ${name}`)
  return plain(found[0]!.split(/^## /m)[0]!)
}

/** The clauses of an update, each with its word. */
const clauses = (update: string) => plain(update).split(/ (?=(?:REMOVE|ADD|DELETE) )/)

describe('docs/protocol.md', () => {
  test.each(FULL)('has %s as the store sends it', async (name, write) => {
    const section = sectionOn(name)
    const sent = await sentBy(write)
    expect(sent.length).toBeGreaterThan(0)
    for (const { condition, update } of sent) {
      expect(section).toContain(`if ${plain(condition)}`)
      for (const clause of clauses(update)) expect(section).toContain(clause)
    }
  })

  test.each(OTHER_CONDITIONS)('has the other condition of %s', async (name, write) => {
    for (const { condition } of await sentBy(write)) expect(sectionOn(name)).toContain(plain(condition))
  })

  test('has a section for every write that the store has', () => {
    const methods = [
      ...'createRun cancelRun finishRun correctRun undueRun pushDue openRound deleteRun purgeRun changeLimit failWaiting warnBudget'.split(
        ' ',
      ),
      ...'putHeader claim release heartbeat suspend unask stop cancelUnclaimed finish reopenRoot'.split(' '),
      ...'delegate settle lend takeLoan raiseOwn need giveBack takeBack takeLimit correctOwn correctParent'.split(' '),
      ...'putRequest putResponse bookLate putToolResult putDefinition putInput coolDown'.split(' '),
      ...'putUsage openUsageDay closeUsageHours putUsageHour putLateUsage putUsageDay moveUsageFolded'.split(' '),
      ...'putOnce answerOnce releaseOnce putSchedule moveSchedule deleteSchedule'.split(' '),
      ...'takePlace givePlaceBack takePoll givePollBack putApproval closeApproval decideApproval'.split(' '),
      ...'putLimit moveLimit hold settleHold moveGrants giveUp'.split(' '),
    ]
    const reads = /^(get|list|read|due|has|is)/
    expect(
      Object.keys(createStore(memoryTable()))
        .filter((m) => !reads.test(m))
        .sort(),
    ).toEqual(methods.sort())
  })

  test('control: another condition would be found', () => {
    expect(sectionOn('W4')).not.toContain('if status = :running AND attempt = :other')
    expect(() => sectionOn('W99')).toThrow()
  })
})
