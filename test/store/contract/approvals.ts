/** Tool calls that somebody is asked about: asked once, decided once, whoever repeats or races. */
import { describe, expect, test } from 'vitest'
import type { Decision } from '../../../src/domain/approval.ts'
import { childRef, rootRef, T0 } from '../../support/builders.ts'
import type { TestTable } from '../../support/tables.ts'
import { bench } from './write-cases.ts'

export function approvalsContract(open: () => Promise<TestTable>): void {
  const at = bench(open)
  const question = { n: 4, index: 2, round: 1, tool: 'transfer_task', nth: 0, of: 1 }
  const asked = { ...question, askedAt: T0 }
  const unanswered = { ...asked, decision: null, closedAt: null }
  const decision: Decision = { decision: 'deny', by: 'arn:aws:iam::1:user/ä', at: T0 + 1, note: 'nicht 🧾' }

  describe('ask', () => {
    test('is done once, by one of 50, and read back', async () => {
      const ref = rootRef(at.newRun())
      const puts = Array.from({ length: 50 }, (_, i) => at.store.putApproval(ref, { ...asked, askedAt: T0 + i }))
      const outcomes = await Promise.all(puts)
      expect(outcomes.filter((o) => o === 'written')).toHaveLength(1)
      const first = { ...unanswered, askedAt: T0 + outcomes.indexOf('written') }
      expect(await at.store.getApproval(ref, 4, 2)).toEqual(first)
      expect(await at.store.getApproval(ref, 4, 1)).toBeUndefined()
    })

    test('stands with its session and its answer, in the order of the calls', async () => {
      const ref = rootRef(at.newRun())
      const places = [
        [10, 0],
        [4, 11],
        [4, 2],
      ] as const
      for (const [n, index] of places) await at.store.putApproval(ref, { ...asked, n, index })
      await at.store.putApproval(childRef(ref, 0), asked)
      const of = (list: readonly { n: number; index: number }[]) => list.map((a) => [a.n, a.index])
      expect(of(await at.store.listApprovals(ref))).toEqual([
        [4, 2],
        [4, 11],
        [10, 0],
      ])
      expect(of(await at.store.listApprovals(ref, 4))).toEqual([
        [4, 2],
        [4, 11],
      ])
      expect(await at.store.listApprovals(ref, 5)).toEqual([])
    })

    test('is listed for a run page by page, each once', async () => {
      const ref = rootRef(at.newRun())
      for (const session of [ref, childRef(ref, 0)])
        for (const index of [0, 1, 2]) await at.store.putApproval(session, { ...asked, index })
      const seen: string[] = []
      let after: string | undefined
      do {
        const page = await at.store.listRunApprovals(ref, { limit: 2, ...(after !== undefined && { after }) })
        expect(page.items.length).toBeLessThanOrEqual(2)
        seen.push(...page.items.map((a) => `${a.sessionId} ${a.index}`))
        after = page.next
      } while (after !== undefined)
      expect(new Set(seen).size).toBe(6)
      expect(seen).toHaveLength(6)
    })
  })

  describe('decide', () => {
    test.each<[string, object]>([
      ['by is number', { by: 42 }],
      ['by is object', { by: { name: 'somebody' } }],
      ['note is object', { note: ['x'] }],
    ])('%s: what could not be read is refused before it is written', async (message, wrong) => {
      const ref = rootRef(at.newRun())
      await at.store.putApproval(ref, asked)
      await expect(at.store.decideApproval(ref, 4, 2, { ...decision, ...wrong })).rejects.toThrow(message)
      expect(await at.store.getApproval(ref, 4, 2)).toEqual(unanswered)
    })

    test('is done once, by one of 50', async () => {
      const ref = rootRef(at.newRun())
      await at.store.putApproval(ref, asked)
      const all = await Promise.all(
        Array.from({ length: 50 }, (_, i) => at.store.decideApproval(ref, 4, 2, { ...decision, by: `${i}` })),
      )
      const [won, ...more] = all.flatMap((d) => (d.written ? [d.item] : []))
      expect(more).toEqual([])
      expect(won).toEqual({ ...unanswered, decision: { ...decision, by: won!.decision!.by } })
      expect(await at.store.getApproval(ref, 4, 2)).toEqual(won)
      expect(await at.store.putApproval(ref, asked)).toBe('already')
    })

    test('of nobody known and without a note is read back as such', async () => {
      const ref = rootRef(at.newRun())
      await at.store.putApproval(ref, asked)
      const bare: Decision = { decision: 'approve', by: null, at: T0, note: null }
      expect(await at.store.decideApproval(ref, 4, 2, bare)).toEqual({
        written: true,
        item: { ...unanswered, decision: bare },
      })
    })

    test('is refused of what is closed, and what is closed is not asked any more', async () => {
      const ref = rootRef(at.newRun())
      await at.store.putApproval(ref, asked)
      await at.store.closeApproval(ref, question, T0 + 5)
      await at.store.closeApproval(ref, { ...question, index: 3 }, T0 + 5)
      await at.store.closeApproval(ref, question, T0 + 6)
      expect(await at.store.decideApproval(ref, 4, 2, decision)).toEqual({ written: false })
      expect(await at.store.decideApproval(ref, 4, 3, decision)).toEqual({ written: false })
      expect(await at.store.putApproval(ref, { ...asked, index: 3 })).toBe('already')
      expect(await at.store.listApprovals(ref)).toEqual([
        { ...unanswered, closedAt: T0 + 5 },
        { ...unanswered, index: 3, askedAt: null, closedAt: T0 + 5 },
      ])
    })

    test('goes before close', async () => {
      const ref = rootRef(at.newRun())
      await at.store.putApproval(ref, asked)
      await at.store.decideApproval(ref, 4, 2, decision)
      await at.store.closeApproval(ref, question, T0 + 5)
      expect(await at.store.getApproval(ref, 4, 2)).toEqual({ ...unanswered, decision })
    })

    test('about what nobody was asked is refused, and leaves nothing', async () => {
      const ref = rootRef(at.newRun())
      expect(await at.store.decideApproval(ref, 4, 2, decision)).toEqual({ written: false })
      expect(await at.store.getApproval(ref, 4, 2)).toBeUndefined()
    })
  })
}
