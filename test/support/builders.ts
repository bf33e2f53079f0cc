/** Builders of runs, headers and slots: a whole thing of each kind, of which a test says only what it is about. */
import { createHash } from 'node:crypto'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import { type Amount, ZERO } from '../../src/domain/money.ts'
import type { Run, RunRef, SessionRef } from '../../src/domain/run.ts'
import type { SessionHeader } from '../../src/domain/session.ts'
import type { Intent, RequestSlot, ResponseSlot, ToolResultSlot } from '../../src/domain/turn.ts'
import { type BookRow, type Books, NO_TOTALS, NO_USAGE, type TokenUsage, type Totals } from '../../src/domain/usage.ts'

/** A time like those of real runs: thirteen digits. */
export const T0 = 1_760_000_000_000
export const DRIVER = 'Xk3pQ9vLm2Rt7yBw'
export const OTHER_DRIVER = 'aB8dE1fG4hJ6kM0n'

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A run id that sorts by `n`. */
export function runId(n = 1): string {
  let text = ''
  for (let rest = n, i = 0; i < 16; i++, rest = Math.floor(rest / 32)) text = CROCKFORD[rest % 32] + text
  return `01K74V2QHG${text}`
}

export const runRef = (n = 1, tenant = 'local'): RunRef => ({ tenant, runId: runId(n) })
export const rootRef = (run: RunRef = runRef()): SessionRef => ({
  tenant: run.tenant,
  runId: run.runId,
  sessionId: rootSessionId(run.runId),
})
export const childRef = (parent: SessionRef, ordinal: number): SessionRef => ({
  tenant: parent.tenant,
  runId: parent.runId,
  sessionId: childSessionId(parent.sessionId, ordinal),
})

/** 1 is one US dollar and a million tokens. */
export const money = (n: number): Amount => ({
  usd: BigInt(Math.round(n * 1_000_000)) * 1_000_000n,
  tok: BigInt(Math.round(n * 1_000_000)),
})

export const usage = (inputTokens: number, outputTokens: number): TokenUsage => ({
  ...NO_USAGE,
  inputTokens,
  outputTokens,
})

/** Totals of `calls` calls of 100 in, 50 out and 450 millionths of a dollar each. */
export const totals = (calls: number): Totals => ({
  ...NO_TOTALS,
  calls,
  inputTokens: 100 * calls,
  outputTokens: 50 * calls,
  cost: 450_000_000n * BigInt(calls),
})
export const books = (accepted: number, unknown = 0): Books => ({
  ...(accepted > 0 && { accepted: totals(accepted) }),
  ...(unknown > 0 && { unknown: totals(unknown) }),
})
export const row = (calls: number, of: Partial<BookRow> = {}): BookRow => ({
  agent: 'worker',
  model: 'openai/gpt-5-mini',
  outcome: 'accepted',
  totals: totals(calls),
  ...of,
})

export function aRun(of: Partial<Run> = {}): Run {
  return {
    ...runRef(),
    team: 'crew',
    agent: 'root',
    definition: 'd'.repeat(64),
    status: 'running',
    stop: null,
    stopReason: null,
    error: null,
    round: 1,
    inputRef: DRIVER,
    inputRound: 1,
    retry: null,
    tasks: null,
    maxConcurrency: 50,
    limit: money(5),
    granted: null,
    grants: [],
    short: null,
    limitSeq: 0,
    budgetSeq: 0,
    raisedRound: null,
    budgetWarned: null,
    books: {},
    sessions: 0,
    v: 0,
    reportedAt: null,
    tags: {},
    dueAt: T0 + 60_000,
    createdAt: T0,
    updatedAt: T0,
    cancelRequestedAt: null,
    finishedAt: null,
    expiresAt: null,
    ...of,
  }
}

/** A queued root of `aRun`, which may give four of its five dollars away. */
export function aHeader(of: Partial<SessionHeader> = {}): SessionHeader {
  return {
    ...rootRef(),
    parentId: null,
    ordinal: 0,
    agent: 'root',
    kind: 'root',
    depth: 0,
    round: 1,
    limitSeq: 0,
    via: { turn: null, index: 0 },
    status: 'queued',
    stop: null,
    stopReason: null,
    error: null,
    attempt: 0,
    driver: null,
    lease: null,
    continuations: 0,
    continuationsBefore: 0,
    waits: 0,
    asks: new Set(),
    wakeAt: null,
    width: 50,
    share: money(5),
    own: money(1),
    avail: money(4),
    taken: ZERO,
    lent: {},
    given: ZERO,
    returned: {},
    next: 0,
    deleg: { turn: -1, from: 0, count: 0, share: ZERO, funded: 0 },
    pending: new Set(),
    waitingOn: new Set(),
    waitAll: false,
    settled: 0,
    needs: new Set(),
    wants: new Set(),
    rows: [],
    unknowns: {},
    kids: {},
    kidsSessions: 0,
    seen: {},
    v: 0,
    first: null,
    createdAt: T0,
    startedAt: null,
    updatedAt: T0,
    finishedAt: null,
    taskPreview: null,
    outputPreview: null,
    finalTurn: null,
    ...of,
  }
}

/** A running root, claimed once. */
export const aRunningHeader = (of: Partial<SessionHeader> = {}): SessionHeader =>
  aHeader({ status: 'running', attempt: 1, driver: DRIVER, lease: T0 + 90_000, startedAt: T0, ...of })

/** A worker of that root, queued. */
export function aChild(ordinal = 0, of: Partial<SessionHeader> = {}): SessionHeader {
  const parent = rootRef()
  return aHeader({
    ...childRef(parent, ordinal),
    parentId: parent.sessionId,
    ordinal,
    agent: 'worker',
    kind: 'background',
    depth: 1,
    via: { turn: 0, index: ordinal },
    width: 1,
    share: money(0.5),
    own: money(0.5),
    avail: ZERO,
    taskPreview: 'Read the file and say what is in it',
    ...of,
  })
}

export const anIntent = (of: Partial<Intent> = {}): Intent => ({
  hold: money(0.5),
  driver: DRIVER,
  attempt: 1,
  agent: 'worker',
  model: 'mini',
  estimate: 1200,
  cap: 4096,
  at: T0 + 1_500,
  ...of,
})

export const aRequest = (n = 0, of: Partial<RequestSlot> = {}): RequestSlot => ({
  n,
  round: 1,
  messages: [{ role: 'user', content: 'Read the file and say what is in it' }],
  intent: anIntent(),
  at: T0 + 1_500,
  ...of,
})

/** An accepted answer of 100 in and 50 out. */
export const aResponse = (n = 0, of: Partial<ResponseSlot> = {}): ResponseSlot => ({
  n,
  outcome: 'accepted',
  of: DRIVER,
  attempt: 1,
  agent: 'worker',
  model: 'mini',
  usage: usage(100, 50),
  usageSource: 'reported',
  cost: 450_000_000n,
  price: { input: 2_000_000n, output: 5_000_000n },
  message: { role: 'assistant', content: 'worker done', toolCalls: [] },
  finishReason: 'stop',
  responseId: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
  startedAt: T0 + 1_500,
  durationMs: 2_340,
  ...of,
})

/** A call that was written off at its bound by another driver. */
export const anUnknown = (n = 0, of: Partial<ResponseSlot> = {}): ResponseSlot => {
  const { message: _, finishReason: __, responseId: ___, ...rest } = aResponse(n)
  return {
    ...rest,
    outcome: 'unknown',
    cause: 'lost',
    usage: usage(1200, 4096),
    usageSource: 'estimated',
    cost: 22_880_000_000n,
    bound: { hold: money(0.5), estimate: 1200, cap: 4096 },
    ...of,
  }
}

export const aToolResult = (n = 0, index = 0, of: Partial<ToolResultSlot> = {}): ToolResultSlot => ({
  n,
  index,
  content: 'the result',
  at: T0 + 2_000,
  ...of,
})

/** Text that no compressor makes smaller than three quarters: the same for the same seed. */
export function noise(bytes: number, seed: string): string {
  const blocks: string[] = []
  for (let i = 0; blocks.length * 88 < bytes; i++)
    blocks.push(createHash('sha512').update(`${seed}/${i}`).digest('base64'))
  return blocks.join('').slice(0, bytes)
}
