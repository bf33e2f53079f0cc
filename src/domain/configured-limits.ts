import {
  DEFAULT_POLLS,
  DEFAULT_TENANT_CONCURRENCY,
  HIGHEST_MAX_CONCURRENCY,
  MAX_BODY_BYTES,
  MAX_DEPTH,
  MAX_ITERATIONS,
  MAX_PENDING,
  MAX_TASKS,
} from './limits.ts'

/** Bounds that a deployment may set for itself; limits.ts has what holds where it does not. */
export interface Limits {
  /** bytes of a request's body */
  readonly bodyBytes: number
  /** levels of sub-sessions below the root */
  readonly depth: number
  /** children of one agent's session that may be pending at once */
  readonly width: number
  /** answers of one session in one round, the most that a team file may ask for */
  readonly turns: number
  /** tasks of one run */
  readonly tasks: number
  /** sessions of one run at once, the most that a request may ask for */
  readonly concurrency: number
  /** sessions at once of all runs of a tenant that have not ended, each with the most that it may have */
  readonly tenantConcurrency: number
  /** answers of one tenant that wait for events at once; in one process: its streams */
  readonly polls: number
}

export const DEFAULT_LIMITS: Limits = {
  bodyBytes: MAX_BODY_BYTES,
  depth: MAX_DEPTH,
  width: MAX_PENDING,
  turns: MAX_ITERATIONS,
  tasks: MAX_TASKS,
  concurrency: HIGHEST_MAX_CONCURRENCY,
  tenantConcurrency: DEFAULT_TENANT_CONCURRENCY,
  polls: DEFAULT_POLLS,
}
