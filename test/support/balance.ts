import { expect } from 'vitest'
import { totalsOf } from '../../src/domain/log.ts'
import type { RunRef } from '../../src/domain/run.ts'
import { addRow, type BookRow, booksOf, type CallOutcome } from '../../src/domain/usage.ts'
import type { ScriptedModel } from '../../src/model/scripted.ts'
import type { Store } from '../../src/ports.ts'

/** Every call item of a run, as rows by session. */
async function rowsOfCalls(store: Store, run: RunRef): Promise<Map<string, BookRow[]>> {
  const rows = new Map<string, BookRow[]>()
  let after: string | undefined
  do {
    const page = await store.listCalls(run, { limit: 100, ...(after !== undefined && { after }) })
    for (const c of page.items) {
      const row = { agent: c.agent, model: c.model, outcome: c.outcome as CallOutcome, totals: totalsOf(c) }
      rows.set(c.sessionId, addRow(rows.get(c.sessionId) ?? [], row))
    }
    after = page.next
  } while (after !== undefined)
  return rows
}

/** The parts are the whole: call items = sessions = run, and the run's books cover the model's own bill exactly. */
export async function expectBalanced(store: Store, run: RunRef, scripted?: ScriptedModel): Promise<void> {
  const { run: stored, headers } = await store.getRunWithSessions(run)
  const rows = await rowsOfCalls(store, run)
  for (const h of headers)
    expect({ [h.sessionId]: booksOf(h.rows) }).toEqual({ [h.sessionId]: booksOf(rows.get(h.sessionId) ?? []) })
  expect(stored!.books).toEqual(booksOf([...rows.values()].flat()))
  expect(stored!.sessions).toBe(headers.filter((h) => h.kind !== 'group').length)
  if (!scripted) return
  const ids = new Set(headers.map((h) => h.sessionId))
  const bill = scripted.bill.filter((b) => ids.has(b.sessionId))
  const calls = [...rows.values()].flat().reduce((n, r) => n + r.totals.calls, 0)
  const tokens = [...rows.values()].flat().reduce((n, r) => n + r.totals.inputTokens + r.totals.outputTokens, 0)
  expect({ calls, tokens }).toEqual({
    calls: bill.length,
    tokens: bill.reduce((n, b) => n + b.usage.inputTokens + b.usage.outputTokens, 0),
  })
}
