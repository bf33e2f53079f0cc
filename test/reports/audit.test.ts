/** The audit says "balanced" of a sound run, and names what differs in one that somebody has tampered with. */
import { beforeAll, describe, expect, test } from 'vitest'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import type { RunRef } from '../../src/domain/run.ts'
import { amountOf } from '../../src/domain/usage.ts'
import { addInput } from '../../src/engine/add-input.ts'
import { type AuditReport, auditRun } from '../../src/engine/audit.ts'
import { settleUp } from '../../src/engine/settle.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { A, kidsAttribute, OUTCOME, ROW, TOTALS } from '../../src/store/table.ts'
import type { Attribute, Item } from '../../src/store/table-client.ts'
import { money, rootRef, runRef, totals } from '../support/builders.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'
import { BOUND, endedRun, endedRunWithUnknown, foldLater, worldOn } from './support.ts'

/** A root over a lead over a worker that fails once; then a second round. */
const team = scriptedTeam('desk', [
  {
    agent: agent('root', { subAgents: ['lead'] }),
    steps: [
      {
        calls: [{ tool: 'transfer_task', args: { agent: 'lead', task: 'x' }, repeat: 2 }],
        usage: { input: 50, output: 5 },
      },
      { text: 'done', usage: { input: 100, output: 10 } },
    ],
  },
  {
    agent: agent('lead', { subAgents: ['worker'] }),
    steps: [
      { calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'y' } }], usage: { input: 30, output: 3 } },
      { text: 'led', usage: { input: 40, output: 4 } },
    ],
  },
  {
    agent: agent('worker'),
    steps: [
      {
        text: 'worked',
        usage: { input: 100, output: 50 },
        error: { class: 'server', message: 'busy', times: 1, usage: { input: 40, output: 4 } },
      },
    ],
  },
])

let items: readonly Item[]
let run: RunRef
let lead: string
let worker: string

beforeAll(async () => {
  const table = memoryTable()
  const engine = testEngine({ table, teams: [team], clock: createVirtualClock() })
  const clock = engine.ctx.clock as ReturnType<typeof createVirtualClock>
  const started = await startRun(engine.ctx, { tenant: 'local', team: 'desk', input: 'go' })
  await clock.advance(60_000)
  await addInput(engine.ctx, started, 'again')
  await clock.advance(60_000)
  items = table.items()
  run = { tenant: started.tenant, runId: started.runId }
  lead = childSessionId(rootSessionId(run.runId), 0)
  worker = childSessionId(lead, 0)
})

async function auditOf(changed: readonly Item[]): Promise<AuditReport> {
  const table = memoryTable()
  for (const item of changed) await table.put({ item })
  return auditRun(worldOn(table).ctx, run)
}

/** The items with one of them changed; null: without it. */
function tampered(sk: string, change: ((item: { [name: string]: Attribute }) => void) | null): readonly Item[] {
  let hits = 0
  const changed = items.flatMap((item) => {
    if (item[A.sk] !== sk) return [item]
    hits++
    if (!change) return []
    const copy = structuredClone(item) as { [name: string]: Attribute }
    change(copy)
    return [copy]
  })
  if (hits !== 1) throw new Error(`${hits} items have the key ${sk}`)
  return changed
}

const turn = (session: string, n: number, slot = 1) => `TURN#${session}#${String(n).padStart(6, '0')}#${slot}`
const plus = (item: { [name: string]: Attribute }, name: string, n: bigint) => {
  item[name] = BigInt(item[name] as number) + n
}
const messages = async (changed: readonly Item[]) => (await auditOf(changed)).differences.map((d) => d.message)

test('a sound run is balanced, all of its sessions, calls and usage items', async () => {
  const report = await auditOf(items)
  expect(report).toEqual({
    runId: run.runId,
    status: 'completed',
    balanced: true,
    // in each round the root makes two calls and has two leads; each of those makes two and has a worker, which fails once
    checked: { calls: 4 + 4 * 2 + 4 * 2, sessions: 9, usageItems: 2 },
    live: 0,
    differing: 0,
    differences: [],
  })
})

describe('tampering is found, and what differs is named', () => {
  test('a call whose cost has been changed', async () => {
    const found = await messages(tampered(turn(worker, 1), (item) => plus(item, A.cost, 1n)))
    const call = `call 1 of session ${worker} (worker)`
    expect(found).toContain(`${call}: cost is $0.001050000001, but by its tokens at its price it is $0.00105`)
    expect(found).toContain(
      `session ${worker} (worker): rows[worker, worker].accepted.cost is $0.00105, but by its calls it is $0.001050000001`,
    )
    expect(found.filter((m) => m.startsWith('the run: totals.accepted.cost'))).toHaveLength(1)
    expect(found).toHaveLength(3)
  })

  test('a call whose tokens have been changed', async () => {
    const change = (item: { [name: string]: Attribute }) => {
      item[A.usage] = { [TOTALS.inputTokens]: 99, [TOTALS.outputTokens]: 50 }
    }
    const found = await messages(tampered(turn(worker, 1), change))
    expect(found).toContain(
      `session ${worker} (worker): rows[worker, worker].accepted.inputTokens is 100, but by its calls it is 99`,
    )
  })

  test('a call that failed and is said to be accepted', async () => {
    const found = await messages(tampered(turn(worker, 0), (item) => void (item[A.outcome] = 'accepted')))
    expect(found).toContain(
      `session ${worker} (worker): rows[worker, worker].failed.calls is 1, but by its calls it is 0`,
    )
  })

  test('a call that cannot be read', async () => {
    const found = await messages(tampered(turn(worker, 1), (item) => void (item[A.usage] = 'much')))
    expect(found[0]).toContain(`call 1 of session ${worker} cannot be read`)
  })

  test('a call that is gone', async () => {
    const found = await messages(tampered(turn(worker, 0), null))
    expect(found).toContain(
      `session ${worker} (worker): rows[worker, worker].failed.calls is 1, but by its calls it is 0`,
    )
    expect(found).toContain(
      `call 0 of session ${worker} (worker): it has an intent and no outcome, but the session is completed`,
    )
  })

  test('a settled total off by one pico-USD', async () => {
    const root = rootSessionId(run.runId)
    const settled = kidsAttribute('accepted', 'cost')
    const cost = items.find((item) => item[A.sk] === `SESSION#${root}`)![settled] as number
    expect(cost).toBe(5_460_000_000)
    const found = await messages(tampered(`SESSION#${root}`, (item) => plus(item, settled, 1n)))
    expect(found).toEqual([
      `session ${root} (root): kids.accepted.cost is $0.005460000001, but by its children it is $0.00546`,
      expect.stringMatching(/^the run: totals.accepted.cost is .*, but by its root it is .*000001$/),
    ])
  })

  test('a missing child', async () => {
    const found = await messages(tampered(`SESSION#${worker}`, null))
    expect(found).toContain(`session ${lead} (lead): its child 0, session ${worker}, is missing`)
    expect(found).toContain(`session ${worker}: it has calls, and its header is missing`)
    expect(found).toContain(`session ${lead} (lead): kids.failed.calls is 1, but by its children it is 0`)
  })

  test('a waste item missing from the totals of the run', async () => {
    const found = await messages(
      tampered('RUN', (item) => {
        const { [OUTCOME.failed]: _, ...books } = item[A.books] as { [name: string]: Attribute }
        item[A.books] = books
      }),
    )
    expect(found).toContain('the run: totals.failed.calls is 0, but by its root it is 4')
    expect(found).toContain('the run: totals.failed.calls is 0, but by all calls it is 4')
  })

  test("a session's own total", async () => {
    const change = (item: { [name: string]: Attribute }) => {
      const rows = item[A.rows] as { [name: string]: Attribute }[]
      const totals = rows[0]![ROW.totals] as { [name: string]: Attribute }
      item[A.rows] = [{ ...rows[0], [ROW.totals]: { ...totals, [TOTALS.outputTokens]: 1_000 } }, ...rows.slice(1)]
    }
    const found = await messages(tampered(`SESSION#${worker}`, change))
    expect(
      found.some((m) => m.startsWith(`session ${worker} (worker): rows[worker, worker].failed.outputTokens is 1000`)),
    ).toBe(true)
    expect(found.some((m) => m.startsWith(`session ${lead} (lead): kids.failed.outputTokens`))).toBe(true)
    expect(found.some((m) => m.startsWith('the usage item of round 2: reported[worker, scripted/script].failed'))).toBe(
      true,
    )
  })

  test('a child that nobody has', async () => {
    const found = await messages(tampered(`SESSION#${worker}`, (item) => void (item[A.ordinal] = 7)))
    expect(found).toContain(
      `session ${worker} (worker): no session has given away its place (parent ${lead}, ordinal 7)`,
    )
  })

  test('counts of sessions and settlements', async () => {
    expect(await messages(tampered('RUN', (item) => plus(item, A.sessions, 1n)))).toEqual([
      'the run: sessions is 10, but by the headers it is 9',
    ])
    expect(await messages(tampered(`SESSION#${lead}`, (item) => plus(item, A.settled, 1n)))).toEqual([
      `session ${lead} (lead): settled is 2, but by the ordinals that it has given away it is 1`,
    ])
  })

  test('a usage item that is gone, and one that says something else', async () => {
    const keys = items.map((item) => String(item[A.sk])).filter((sk) => sk.startsWith('ROUND#'))
    const [first, , second] = keys
    expect(keys).toHaveLength(3) // two rounds, and the seal of the first
    expect(await messages(tampered(second!, null))).toEqual(['the usage item of round 2 is missing'])
    const body = (item: { [name: string]: Attribute }) => {
      item[A.body] = String(item[A.body]).replace(
        '["worker","scripted/script","a",[2,',
        '["worker","scripted/script","a",[1,',
      )
    }
    expect(await messages(tampered(first!, body))).toEqual([
      'the usage item of round 1: reported[worker, scripted/script].accepted.calls is 1, but by the base of round 2 it is 2',
    ])
  })
})

describe('a usage item', () => {
  test('that was put after the fold of its hour, and is in no report, is found', async () => {
    const table = memoryTable()
    const world = worldOn(table)
    await endedRun(world.store, runRef(1))
    await endedRun(world.store, runRef(2))
    await settleUp(world.ctx, rootRef(runRef(1)))
    await foldLater(world, 3)
    expect(await auditRun(world.ctx, runRef(1))).toMatchObject({ checked: { usageItems: 1 } })
    await settleUp(world.ctx, rootRef(runRef(2)))
    const reports = (r: AuditReport) => r.differences.filter((d) => d.field === 'report').map((d) => d.message)
    expect(reports(await auditRun(world.ctx, runRef(2)))).toEqual([])
    const without = memoryTable()
    for (const item of table.items()) if (!String(item[A.sk]).startsWith('LATE#')) await without.put({ item })
    expect(reports(await auditRun(worldOn(without).ctx, runRef(2)))).toEqual([
      'the usage item of round 1 is in no report of 2026-03-01',
    ])
  })
})

describe('money of a run with a limit', () => {
  const kids = { accepted: totals(2), unknown: BOUND }
  async function limited(more: bigint) {
    const table = memoryTable()
    const world = worldOn(table)
    await endedRunWithUnknown(world.store, runRef())
    const spent = amountOf(kids)
    for (const item of table.items()) {
      if (item[A.sk] !== `SESSION#${rootSessionId(runRef().runId)}`) continue
      const avail = { [A.availUsd]: money(4).usd - spent.usd + more, [A.availTok]: money(4).tok - spent.tok }
      await table.put({ item: { ...item, ...avail } })
    }
    await settleUp(world.ctx, rootRef(runRef()))
    return (await auditRun(world.ctx, runRef())).differences.filter((d) => d.field.startsWith('own +'))
  }

  test('is neither made nor lost', async () => {
    expect(await limited(0n)).toEqual([])
    expect((await limited(1n)).map((d) => [d.field, d.found, d.expected])).toEqual([
      ['own + available + settled, USD', '$5.000000000001', '$5'],
    ])
  })
})

test('an unknown run is refused', async () => {
  await expect(auditRun(worldOn(memoryTable()).ctx, runRef(77))).rejects.toThrow('There is no run')
})
