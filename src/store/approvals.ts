/** Tool calls that somebody is asked about: `ASK#<sessionId>#<n>#<i>`. */
import type { Approval } from '../domain/approval.ts'
import type { ApprovalStore } from '../ports/approval-store.ts'
import { ItemReader, present, textOf } from './item-reader.ts'
import { APPROVAL_PREFIX, approvalKey, approvalsPrefix, isApprovalKey, parseApprovalKey, runPartition } from './keys.ts'
import { badCursor, between, collect } from './log-reads.ts'
import { all, putNew, updateItem } from './statements.ts'
import { A, ITEM_VERSION } from './table.ts'
import type { Item, TableClient } from './table-client.ts'

export function approvals(table: TableClient): ApprovalStore {
  const read = (item: Item): Approval & { readonly sessionId: string } => {
    const r = new ItemReader(item, A, `${item[A.pk]} ${item[A.sk]}`)
    return {
      ...parseApprovalKey(r.text('sk')),
      round: r.whole('round'),
      tool: r.text('tool'),
      nth: r.whole('nth'),
      of: r.whole('asked'),
      askedAt: r.has('at') ? r.whole('at') : null,
      decision: r.has('decision')
        ? {
            decision: r.word('decision', ['approve', 'deny']),
            by: r.textOrNull('by'),
            at: r.whole('decidedAt'),
            note: r.textOrNull('note'),
          }
        : null,
      closedAt: r.has('closedAt') ? r.whole('closedAt') : null,
    }
  }
  const ofSession = (item: Item): Approval => {
    const { sessionId: _, ...approval } = read(item)
    return approval
  }

  return {
    putApproval: (ref, { n, index, round, tool, nth, of, askedAt }) =>
      putNew(table, {
        ...approvalKey(ref, n, index),
        [A.version]: ITEM_VERSION,
        [A.round]: round,
        [A.tool]: tool,
        [A.nth]: nth,
        [A.asked]: of,
        [A.at]: askedAt,
      }),

    async closeApproval(ref, { n, index, round, tool, nth, of }, at) {
      await updateItem(
        table,
        approvalKey(ref, n, index),
        all('attribute_not_exists(#decision)', 'attribute_not_exists(#closedAt)'),
        {
          set: [
            '#closedAt = :at',
            ...['version', 'round', 'tool', 'nth', 'asked'].map((name) => `#${name} = :${name}`),
          ],
        },
        { values: { ':at': at, ':version': ITEM_VERSION, ':round': round, ':tool': tool, ':nth': nth, ':asked': of } },
        ofSession,
      )
    },

    async getApproval(ref, n, index) {
      const { item } = await table.get({ key: approvalKey(ref, n, index), consistent: true })
      return item && ofSession(item)
    },

    async listApprovals(ref, n) {
      const prefix = approvalsPrefix(ref, n)
      const items = await collect(table, between(runPartition(ref), prefix, `${prefix}~`, true))
      return items.map(ofSession)
    },

    async listRunApprovals(ref, { limit, after, consistent = false }) {
      const pk = runPartition(ref)
      if (after !== undefined && !isApprovalKey(after)) throw badCursor()
      const page = await table.query({
        ...between(pk, APPROVAL_PREFIX, `${APPROVAL_PREFIX}~`, consistent),
        limit,
        ...(after !== undefined && { startAfter: { [A.pk]: pk, [A.sk]: after } }),
      })
      const items = page.items.map(read)
      return { items, ...(page.last && { next: String(page.last[A.sk]) }) }
    },

    async decideApproval(ref, n, index, { decision, by, at, note }) {
      const given = present({ by: textOf('by', by), note: textOf('note', note) })
      return updateItem(
        table,
        approvalKey(ref, n, index),
        all('attribute_exists(#pk)', 'attribute_not_exists(#decision)', 'attribute_not_exists(#closedAt)'),
        {
          set: [
            '#decision = :decision',
            '#decidedAt = :at',
            ...Object.keys(given).map((name) => `#${name} = :${name}`),
          ],
        },
        {
          values: {
            ':decision': decision,
            ':at': at,
            ...Object.fromEntries(Object.entries(given).map(([name, value]) => [`:${name}`, value])),
          },
        },
        ofSession,
      )
    },
  }
}
