import type { Limits } from '../domain/configured-limits.ts'
import type {
  Clock,
  Ids,
  Invoker,
  Logger,
  Metrics,
  Model,
  OuterLimits,
  Prices,
  Schedules,
  Store,
  Teams,
} from '../ports.ts'

/** Everything the engine needs of the outside world; `compose.ts` chooses the adapters. */
export interface EngineContext {
  readonly store: Store
  readonly teams: Teams
  readonly prices: Prices
  readonly model: Model
  /** left out: there is no file of schedules */
  readonly schedules?: Schedules
  /** left out: nothing limits runs from outside */
  readonly outerLimits?: OuterLimits
  readonly invoker: Invoker
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Logger
  /** left out: nobody counts */
  readonly metrics?: Metrics
  readonly settings: EngineSettings
}

export interface EngineSettings {
  /** how long a driver may be presumed alive without a sign of life; renewed at two thirds of it */
  readonly leaseMs: number
  /** how long a queued session may wait for its event before the sweep sends another one */
  readonly eventAgeMs: number
  /** how long a run is kept after its end; left out: for ever */
  readonly retentionMs?: number
  /** the most in USD that a run may cost which says nothing of a budget, and whose team does not either; left out: no limit */
  readonly defaultBudgetUsd?: string
  /** bounds of this deployment; those of limits.ts where it is left out */
  readonly limits?: Limits
}

/** What an engine function knows of the invocation that runs it. */
export interface Invocation {
  /** epoch ms at which the platform will kill it */
  readonly deadlineAt: number
}
