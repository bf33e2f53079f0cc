import type { Approval, Decision } from '../domain/approval.ts'
import type { RunRef, SessionRef } from '../domain/run.ts'
import type { Page, Put, Written } from '../ports.ts'

/** Tool calls that somebody is asked about, and what was decided. Every read but `listRunApprovals` is consistent. */
export interface ApprovalStore {
  /** asked once: whoever comes later finds it, perhaps decided */
  putApproval(ref: SessionRef, approval: Omit<Approval, 'decision'>): Promise<Put>
  getApproval(ref: SessionRef, n: number, index: number): Promise<Approval | undefined>
  /** those of a session, or of one answer of it, in the order of the calls */
  listApprovals(ref: SessionRef, n?: number): Promise<readonly Approval[]>
  /** those of all sessions of a run, session by session */
  listRunApprovals(
    ref: RunRef,
    options: { limit: number; after?: string },
  ): Promise<Page<Approval & { readonly sessionId: string }>>
  /** the first decision stands */
  decideApproval(ref: SessionRef, n: number, index: number, decision: Decision): Promise<Written<Approval>>
}
