/**
 * The closed set of error codes. Each says what it ends, whether the same request may be tried again, and whether a
 * client may read its text. HTTP statuses are assigned here too, so that docs, OpenAPI and handlers agree.
 */
export interface ErrorKind {
  /** HTTP status where it reaches a client of the API */
  readonly status: number
  /** short, constant title for problem+json */
  readonly title: string
  /** whether the same request may succeed later */
  readonly retryable: boolean
}

export const ERRORS = {
  bad_request: { status: 400, title: 'The request is not valid', retryable: false },
  bad_json: { status: 400, title: 'The body is not valid JSON', retryable: false },
  bad_cursor: { status: 400, title: 'The cursor is not valid here', retryable: false },
  bad_team: { status: 400, title: 'The team file is not valid', retryable: false },
  unpriced_model: { status: 400, title: 'A model has no known price', retryable: false },
  unauthorized: { status: 401, title: 'Authentication is required', retryable: false },
  forbidden: { status: 403, title: 'Not allowed', retryable: false },
  not_found: { status: 404, title: 'Not found', retryable: false },
  unknown_run: { status: 404, title: 'There is no such run', retryable: false },
  unknown_session: { status: 404, title: 'There is no such session', retryable: false },
  unknown_team: { status: 404, title: 'There is no such team', retryable: false },
  unknown_schedule: { status: 404, title: 'There is no such schedule', retryable: false },
  unknown_approval: { status: 404, title: 'There is no such approval', retryable: false },
  unknown_agent: { status: 400, title: 'The team has no such agent', retryable: false },
  method_not_allowed: { status: 405, title: 'The method is not allowed here', retryable: false },
  run_active: { status: 409, title: 'The run has not ended', retryable: true },
  approval_closed: { status: 409, title: 'The approval is not open any more', retryable: false },
  nothing_to_retry: { status: 409, title: 'There is nothing to retry', retryable: false },
  too_many_runs: { status: 429, title: 'The tenant has as much going on as it may', retryable: true },
  too_many_streams: { status: 429, title: 'Too many streams are open', retryable: true },
  too_large: { status: 413, title: 'The body is too large', retryable: false },
  unsupported_media_type: { status: 415, title: 'Only application/json is accepted', retryable: false },
  idempotency_mismatch: { status: 422, title: 'The idempotency key was used for another body', retryable: false },
  not_supported: { status: 501, title: 'Not supported by this version', retryable: false },
  keys_unavailable: { status: 503, title: 'Tokens cannot be checked now', retryable: true },
  throttled: { status: 503, title: 'The table is busy', retryable: true },
  internal: { status: 500, title: 'Something went wrong here', retryable: true },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof ERRORS

/** One thing that is wrong with an input: where (a JSON pointer or `line:column`), and what. */
export interface InputIssue {
  readonly path: string
  readonly message: string
}

/** A refusal that a caller can do something about. Everything else that is thrown is a fault and becomes `internal`. */
export class SubledgerError extends Error {
  override readonly name = 'SubledgerError'
  readonly code: ErrorCode
  readonly issues: readonly InputIssue[]

  /** @param detail what is wrong, where, and what to do; shown to the client as it is */
  constructor(code: ErrorCode, detail: string, options: { cause?: unknown; issues?: readonly InputIssue[] } = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.issues = options.issues ?? []
  }

  get status(): number {
    return ERRORS[this.code].status
  }

  /** By name, because errors cross bundle boundaries. */
  static is(e: unknown): e is SubledgerError {
    return e instanceof Error && e.name === 'SubledgerError'
  }
}
