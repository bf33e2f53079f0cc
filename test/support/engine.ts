/** The engine over a real store and a scripted model, with workers in this process. */

import { SubledgerError } from '../../src/domain/errors.ts'
import type { SessionRef } from '../../src/domain/run.ts'
import type { AgentDefinition, ModelDefinition, TeamDefinition } from '../../src/domain/team.ts'
import type { EngineContext } from '../../src/engine/context.ts'
import { runSession } from '../../src/engine/run-session.ts'
import { sweepSession } from '../../src/engine/sweep-run.ts'
import { createLocalInvoker, type LocalInvoker } from '../../src/invoke/local-invoker.ts'
import { createModel } from '../../src/model/model.ts'
import { createScriptedModel, type ScriptedModel } from '../../src/model/scripted.ts'
import type { Clock, Logger, OuterLimits, Prices, Teams } from '../../src/ports.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { systemClock, systemIds } from '../../src/system.ts'

export interface TestEngine {
  readonly ctx: EngineContext
  readonly scripted: ScriptedModel
  readonly invoker: LocalInvoker
  /** lines that a worker logged as warnings or errors */
  readonly complaints: string[]
  /** every event that was sent, in order */
  readonly events: SessionRef[]
  /** events for which it says true vanish without a trace */
  lose: (sessionId: string) => boolean
}

export interface TestEngineOptions {
  readonly table: TableClient
  readonly teams: readonly TeamDefinition[]
  /** none unless told: what a test does not say is not known */
  readonly prices?: Prices
  readonly outerLimits?: OuterLimits
  readonly clock?: Clock
  readonly leaseMs?: number
  readonly retentionMs?: number
  readonly retryDelaysMs?: readonly number[]
  /** how long an invocation may take */
  readonly timeoutMs?: number
}

export function testEngine(options: TestEngineOptions): TestEngine {
  const clock = options.clock ?? systemClock
  const complaints: string[] = []
  const log: Logger = {
    info: () => {},
    warn: (m, f) => void complaints.push(`${m} ${JSON.stringify(f)}`),
    error: (m, f) => void complaints.push(`${m} ${JSON.stringify(f)}`),
  }
  const events: SessionRef[] = []
  const scripted = createScriptedModel({ clock })
  const invoker = createLocalInvoker({
    clock,
    log,
    worker: (ref, delivery) => runSession(ctx, ref, { deadlineAt: delivery.deadlineAt }),
    onDeadLetter: async (ref) => void (await sweepSession(ctx, ref)),
    settings: {
      retryDelaysMs: options.retryDelaysMs ?? [5, 10],
      ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
    },
  })
  const ctx: EngineContext = {
    store: createStore(options.table, () => clock.now()),
    teams: fixedTeams(options.teams),
    prices: options.prices ?? { of: async () => undefined },
    ...(options.outerLimits && { outerLimits: options.outerLimits }),
    model: createModel({ env: () => undefined, scripted }),
    invoker: {
      invoke: async (ref) => {
        events.push(ref)
        if (!engine.lose(ref.sessionId)) await invoker.invoke(ref)
      },
    },
    clock,
    ids: systemIds,
    log,
    settings: {
      leaseMs: options.leaseMs ?? 90_000,
      eventAgeMs: 120_000,
      ...(options.retentionMs !== undefined && { retentionMs: options.retentionMs }),
    },
  }
  const engine: TestEngine = { ctx, scripted, invoker, complaints, events, lose: () => false }
  return engine
}

export const fixedTeams = (teams: readonly TeamDefinition[]): Teams => ({
  list: async () => teams.map((t) => ({ name: t.name, description: t.description ?? '' })),
  get: async (name) => {
    const team = teams.find((t) => t.name === name)
    if (!team) throw new SubledgerError('unknown_team', `There is no team "${name}".`)
    return team
  },
})

/** A scripted model: USD 3 in and 15 out per million tokens unless told. */
export const scriptedModel = (steps: readonly object[], of: Partial<ModelDefinition> = {}): ModelDefinition => ({
  provider: 'scripted',
  api: 'scripted',
  model: 'script',
  options: { steps },
  cost: { input: '3', output: '15', cacheRead: '0.3', cacheWrite: '3.75', cacheWrite1h: '6' },
  ...of,
})

export const agent = (name: string, of: Partial<AgentDefinition> = {}): AgentDefinition => ({
  name,
  model: name,
  description: `${name} of the team`,
  instruction: `You are ${name}.`,
  subAgents: [],
  toolsets: [],
  maxIterations: null,
  ...of,
})

/** A team of agents that each play a script of their own. */
export function scriptedTeam(
  name: string,
  members: readonly { agent: AgentDefinition; steps: readonly object[]; model?: Partial<ModelDefinition> }[],
): TeamDefinition {
  return {
    shape: 1,
    name,
    agents: members.map((m) => m.agent),
    models: Object.fromEntries(members.map((m) => [m.agent.model, scriptedModel(m.steps, m.model)])),
  }
}
