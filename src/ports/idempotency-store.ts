import type { Put } from '../ports.ts'

/** Names what a caller wants done once: an `Idempotency-Key` of a route, or a tick of a schedule. */
export interface OnceRef {
  readonly tenant: string
  /** method and path */
  readonly route: string
  /** the caller's own text */
  readonly key: string
}

/** What has been answered, as it is given again. */
export interface StoredAnswer {
  readonly status: number
  readonly location: string | null
  readonly body: string
}

export interface OnceRecord {
  /** of the body that came first */
  readonly bodyHash: string
  /** names the work, so that a retry finds what it has made: the id of a run, the name of an input */
  readonly token: string
  readonly createdAt: number
  /** epoch seconds: from then on the record is not there, whether or not the table has removed it */
  readonly expiresAt: number
  /** null: it is being made, or whoever made it is dead */
  readonly answer: StoredAnswer | null
}

/** Idempotency records. Every read is consistent; `now` is epoch ms. */
export interface IdempotencyStore {
  /** put before anything is done; a record that has expired is replaced */
  putOnce(ref: OnceRef, record: Omit<OnceRecord, 'answer'>, now: number): Promise<Put>
  getOnce(ref: OnceRef, now: number): Promise<OnceRecord | undefined>
  /** the first answer stands. `nonce` names parts of one that an item cannot hold */
  answerOnce(
    ref: OnceRef,
    record: Pick<OnceRecord, 'token' | 'expiresAt'>,
    answer: StoredAnswer,
    nonce: string,
  ): Promise<Put>
  /** takes a record without an answer back: the request was refused, and may be sent again with another body */
  releaseOnce(ref: OnceRef, token: string): Promise<void>
}
