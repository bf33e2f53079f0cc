import type { Store } from '../ports.ts'
import { approvals } from './approvals.ts'
import { bookSlots } from './book-slots.ts'
import { correctionWrites } from './correction-writes.ts'
import { delegationWrites } from './delegation-writes.ts'
import { grantWrites } from './grant-writes.ts'
import { idempotency } from './idempotency.ts'
import { limitWrites } from './limit-writes.ts'
import { logReads } from './log-reads.ts'
import { logWrites } from './log-writes.ts'
import { placeWrites } from './place-writes.ts'
import { purge } from './purge.ts'
import { runBodies } from './run-bodies.ts'
import { runReads } from './run-reads.ts'
import { runWrites } from './run-writes.ts'
import { schedules } from './schedules.ts'
import { sessionWrites } from './session-writes.ts'
import type { TableClient } from './table-client.ts'
import { teamState } from './team-state.ts'
import { usageReads } from './usage-reads.ts'
import { usageWrites } from './usage-writes.ts'

/**
 * The books on a table. Every write is one conditional write on one item; a condition that does not hold is a value,
 * everything else that goes wrong (throttling, a broken connection, a damaged item) is thrown.
 * @param now epoch ms, for runs whose time is over
 */
export const createStore = (table: TableClient, now: () => number = Date.now): Store => ({
  ...runBodies(table),
  ...runWrites(table),
  ...purge(table),
  ...runReads(table, now),
  ...sessionWrites(table),
  ...delegationWrites(table),
  ...correctionWrites(table),
  ...logWrites(table),
  ...logReads(table),
  ...bookSlots(table),
  ...teamState(table),
  ...usageWrites(table),
  ...usageReads(table),
  ...idempotency(table),
  ...schedules(table),
  ...placeWrites(table),
  ...approvals(table),
  ...limitWrites(table),
  ...grantWrites(table),
})
