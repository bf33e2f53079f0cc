import type { RunRef, SessionRef } from '../domain/run.ts'
import type { LogSlots, RequestSlot, ResponseSlot, ToolResultSlot } from '../domain/turn.ts'
import type { BookSlot, Page, Put } from '../ports.ts'

/** The logs of sessions: slots of which each is put once. */
export interface LogStore {
  readLog(ref: SessionRef): Promise<LogSlots>
  /** slots of a session from call `from` on, for reading only; eventually consistent unless told otherwise */
  listSlots(
    ref: SessionRef,
    options: { from?: number; limit: number; consistent?: boolean },
  ): Promise<{ slots: LogSlots; nextTurn?: number }>
  /** outcomes of all calls of a run in the order of their keys, for reading only */
  listCalls(
    ref: RunRef,
    options: { limit: number; after?: string },
  ): Promise<Page<ResponseSlot & { readonly sessionId: string }>>
  /** requests and outcomes of all sessions of a run without their texts, in the order of their keys; consistent */
  listBookSlots(ref: RunRef, options: { after?: string }): Promise<Page<BookSlot>>
  getResponse(ref: SessionRef, n: number): Promise<ResponseSlot | undefined>
  /** W5, W8 (`end` in a request slot). `driver` names body parts */
  putRequest(ref: SessionRef, slot: RequestSlot, driver: string): Promise<Put>
  /** W6, W7, W8 (outcome none) */
  putResponse(ref: SessionRef, slot: ResponseSlot, driver: string): Promise<Put>
  /** W9: replaces an unknown outcome of this driver by what became known */
  bookLate(ref: SessionRef, slot: ResponseSlot, driver: string): Promise<'written' | 'lost'>
  getToolResult(ref: SessionRef, n: number, index: number): Promise<ToolResultSlot | undefined>
  /** W10 */
  putToolResult(ref: SessionRef, slot: ToolResultSlot, driver: string): Promise<Put>
}
