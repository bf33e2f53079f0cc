import type { Approval, Decision } from '../domain/approval.ts'
import type { RunRef, SessionRef } from '../domain/run.ts'
import type { Page, Put, Written } from '../ports.ts'

/** A tool call that somebody has to be asked about. */
export type Question = Pick<Approval, 'n' | 'index' | 'round' | 'tool' | 'nth' | 'of'>

/** Tool calls that somebody is asked about, and what was decided. Every read but `listRunApprovals` is consistent. */
export interface ApprovalStore {
  /** asked once: whoever comes later finds it, perhaps decided */
  putApproval(ref: SessionRef, approval: Question & { readonly askedAt: number }): Promise<Put>
  /** nothing can be decided any more, nor can it be asked; nothing where it is decided or closed */
  closeApproval(ref: SessionRef, question: Question, at: number): Promise<void>
  getApproval(ref: SessionRef, n: number, index: number): Promise<Approval | undefined>
  /** those of a session, or of one answer of it, in the order of the calls */
  listApprovals(ref: SessionRef, n?: number): Promise<readonly Approval[]>
  /** those of all sessions of a run, session by session; consistent where that is asked for */
  listRunApprovals(
    ref: RunRef,
    options: { limit: number; after?: string; consistent?: boolean },
  ): Promise<Page<Approval & { readonly sessionId: string }>>
  /** the first decision stands; of what is closed there is none */
  decideApproval(ref: SessionRef, n: number, index: number, decision: Decision): Promise<Written<Approval>>
}
