/**
 * Drives every operation of the OpenAPI document to every status and every code that it has there, and holds each answer
 * against the document. Where it is sent is the caller's affair.
 */
import { expect } from 'vitest'
import type { Documented, ReadDocument } from './document.ts'

export interface Target {
  send(path: string, init: RequestInit, code: string | null): Promise<Response>
  /** codes that cannot be provoked here, with the reason */
  readonly beyond?: { readonly [code: string]: string }
}

/**
 * The teams that a target must have: `good`, `slow` (its model answers after minutes), `asking` (its tool call waits for
 * approval), `failing` (its model refuses), `unpriced` (its model has no price), and `broken`, which has errors.
 */
export const TEAMS: { readonly [name: string]: string } = {
  good: teamText('{ text: "heard: {input}", usage: { input: 10, output: 5 } }'),
  failing: teamText('{ error: { class: invalid_request, message: never, usage: { input: 1, output: 0 } } }'),
  slow: teamText('{ delayMs: 600000, text: "late", usage: { input: 10, output: 5 } }'),
  asking: `permissions: { ask: [think] }${teamText('{ calls: [{ tool: think, args: { thought: "hm" } }] }', '{ text: "thought" }')}`,
  unpriced:
    'agents:\n  root:\n    model: m\nmodels:\n  m:\n    provider: scripted\n    model: m\n    provider_opts: { steps: [{ text: x }] }\n',
  broken: 'agents:\n  root:\n    model: nobody\n',
}

function teamText(...steps: readonly string[]): string {
  return `
agents:
  root:
    model: m
    description: answers
    instruction: Answer.
    toolsets: [{ type: think }]
models:
  m:
    provider: scripted
    model: m
    cost: { input: 1, output: 2 }
    provider_opts:
      steps:
${steps.map((step) => `        - ${step}`).join('\n')}
`
}

const NO_RUN = '01K74V2QHG0000000000000007'
const NO_SESSION = '0123456789abcdefghjk'
const json = { 'content-type': 'application/json' }
// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Any = any

/** What there is at the target. */
interface There {
  /** a run that has ended, with its root */
  readonly ended: { readonly runId: string; readonly rootSessionId: string }
  readonly running: { readonly runId: string }
  readonly scheduleId: string
  /** one that was started with a budget */
  readonly budgeted: { readonly runId: string }
  /** one that waits for an approval */
  readonly asking: { readonly runId: string; readonly approvalId: string }
  /** one whose tasks fail, again and again */
  readonly failed: { readonly runId: string; readonly taskId: string }
  /** one that has ended and may be deleted */
  readonly spare: { readonly runId: string }
}

interface Ask {
  readonly path?: { readonly [name: string]: string }
  readonly query?: string
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string
}

type Make = (operation: Documented, there: There, target: Target) => Ask | Promise<Ask>

/** A good body of each operation that takes one. */
const BODIES: { readonly [id: string]: object | undefined } = {
  startRun: { team: 'good', input: 'hello' },
  addInput: { input: 'and on' },
  setBudget: { usd: '2' },
  approve: { decision: 'approve' },
  cancelRun: undefined,
  createSchedule: { rate: '1 day', team: 'good', input: 'hello', budget: { tokens: 1_000_000 } },
  settleReceipts: { receipts: [{ responseId: 'x', inputTokens: 1, outputTokens: 1 }] },
}
/** Another good body of the same operation. */
const OTHER_BODIES: typeof BODIES = {
  startRun: { team: 'good', input: 'something else' },
  addInput: { input: 'something else' },
  approve: { decision: 'approve', note: 'something else' },
  retryRun: {},
  createSchedule: { rate: '2 days', team: 'good', input: 'hello', budget: { tokens: 1_000_000 } },
  settleReceipts: { receipts: [{ responseId: 'y', inputTokens: 1, outputTokens: 1 }] },
}
const withBody = (body: unknown): Ask => ({ headers: json, body: JSON.stringify(body) })
const good: Make = (operation, there) => {
  if (operation.id === 'deleteRun') return { path: { runId: there.spare.runId } }
  const body = BODIES[operation.id]
  if (operation.id === 'retryRun')
    return { ...withBody({ sessions: [there.failed.taskId] }), path: { runId: there.failed.runId } }
  if (operation.id === 'setBudget') return { ...withBody(body), path: { runId: there.budgeted.runId } }
  if (operation.id === 'approve') return { ...withBody(body), path: there.asking }
  return body ? withBody(body) : {}
}

/** How a second good answer of an operation is got. */
const OTHERWISE: { readonly [statusAndId: string]: Make } = {
  '200 startRun': (o, t, at) => merge(good(o, t, at), { query: '?dryRun=true' }),
}

/** How each code is provoked; those of one operation alone are by `code operation`. */
const PROVOKE: { readonly [code: string]: Make } = {
  bad_request: (o, t, at) => merge(good(o, t, at), { query: '?surprise=1' }),
  bad_json: () => ({ headers: json, body: '{"team": ' }),
  bad_cursor: () => ({ query: '?cursor=AAAA' }),
  too_large: () => withBody({ input: 'x'.repeat(1_000_000) }),
  unsupported_media_type: () => ({ headers: { 'content-type': 'text/plain' }, body: '{}' }),
  unknown_run: (o, t, at) => merge(good(o, t, at), { path: { runId: NO_RUN } }),
  unknown_session: () => ({ path: { sessionId: NO_SESSION } }),
  'unknown_session streamEvents': () => ({ query: `?session=${NO_SESSION}` }),
  'unknown_team startRun': () => withBody({ team: 'nobody', input: 'x' }),
  'unknown_team getTeam': () => ({ path: { name: 'nobody' } }),
  'nothing_to_retry retryRun': () => ({}),
  'bad_team startRun': () => withBody({ team: 'broken', input: 'x' }),
  'bad_team getTeam': () => ({ path: { name: 'broken' } }),
  'unknown_team createSchedule': () =>
    withBody({ rate: '1 day', team: 'nobody', input: 'x', budget: { tokens: 1_000_000 } }),
  'bad_team createSchedule': () =>
    withBody({ rate: '1 day', team: 'broken', input: 'x', budget: { tokens: 1_000_000 } }),
  'unknown_agent createSchedule': () =>
    withBody({ rate: '1 day', team: 'good', agent: 'nobody', input: 'x', budget: { tokens: 1_000_000 } }),
  'unpriced_model startRun': () => withBody({ team: 'unpriced', input: 'x', budget: { usd: '1' } }),
  'unpriced_model createSchedule': () =>
    withBody({ rate: '1 day', team: 'unpriced', input: 'x', budget: { usd: '1' } }),
  unknown_approval: (o, t, at) => merge(good(o, t, at), { path: { ...t.asking, approvalId: 'nobody' } }),
  approval_closed: async (o, t, at) => {
    await send(o, await good(o, t, at), t, at, 'first')
    return { ...withBody({ decision: 'deny' }), path: t.asking }
  },
  'unknown_run startRun': (o, t, at) => thenDeleted(o, t, at),
  'unknown_schedule createSchedule': (o, t, at) => thenDeleted(o, t, at),
  unknown_schedule: () => ({ path: { id: 'nobody' } }),
  'unknown_agent startRun': () => withBody({ team: 'good', agent: 'nobody', input: 'x' }),
  'not_supported startRun': () => withBody({ team: 'good', input: 'x', webhook: 'https://example.test' }),
  run_active: (o, t, at) => merge(good(o, t, at), { path: { runId: t.running.runId } }),
  idempotency_mismatch: async (o, t, at) => {
    const key = { 'idempotency-key': `mismatch ${o.id}`.replace(' ', '-') }
    const ask = await merge(good(o, t, at), { headers: key })
    await send(o, ask, t, at, 'first')
    if (o.id === 'retryRun') await settled(at, t.failed.runId)
    return { ...ask, body: JSON.stringify(OTHER_BODIES[o.id]) }
  },
  forbidden: (o, t, at) => merge(good(o, t, at), { headers: { origin: 'https://evil.example' } }),
  unauthorized: good,
  internal: good,
  throttled: good,
  keys_unavailable: good,
  too_many_runs: good,
  too_many_streams: good,
}

/** Makes something with a key, and deletes it. @returns the same request once more */
async function thenDeleted(...[o, there, target]: Parameters<Make>): Promise<Ask> {
  const ask = await merge(good(o, there, target), { headers: { 'idempotency-key': `deleted-${o.id}` } })
  const made = await send(o, ask, there, target, null)
  const { runId }: Any = await made.json()
  if (runId !== undefined) await settled(target, runId)
  expect((await target.send(made.headers.get('location')!, { method: 'DELETE' }, null)).status).toBe(204)
  return ask
}

async function merge(a: Ask | Promise<Ask>, b: Ask): Promise<Ask> {
  const first = await a
  return { ...first, ...b, headers: { ...first.headers, ...b.headers } }
}

/** Every answer that the document knows of: an operation, a status, and a code where it is a refusal. */
export const documentedAnswers = (
  doc: ReadDocument,
): { operation: Documented; status: number; code: string | null }[] =>
  doc.operations.flatMap((operation) =>
    operation.answers.flatMap(({ status, codes }) =>
      (codes.length > 0 ? codes : [null]).map((code) => ({ operation, status, code })),
    ),
  )

/** Gets every documented answer. @returns how many there were, and which codes were beyond the target */
export async function driveContract(doc: ReadDocument, target: Target): Promise<{ driven: number; beyond: string[] }> {
  const there = await prepare(target)
  const beyond = new Set<string>()
  const wrong: string[] = []
  let driven = 0
  for (const { operation, status, code } of documentedAnswers(doc)) {
    if (code !== null && target.beyond?.[code] !== undefined) {
      beyond.add(code)
      continue
    }
    const make =
      code === null
        ? (OTHERWISE[`${status} ${operation.id}`] ?? good)
        : (PROVOKE[`${code} ${operation.id}`] ?? PROVOKE[code])
    if (!make) throw new Error(`nobody knows how ${operation.name} is refused with ${code}`)
    const response = await send(operation, await make(operation, there, target), there, target, code)
    const body = await response.text()
    const found = [...doc.check(operation, response, body)]
    if (response.status !== status)
      found.push(`the status is ${response.status}, and not ${status}: ${body.slice(0, 200)}`)
    else if (code !== null && JSON.parse(body).code !== code) found.push(`the code is ${JSON.parse(body).code}`)
    wrong.push(...found.map((w) => `${operation.name} ${status} ${code ?? ''}: ${w}`))
    driven++
    if (operation.id === 'addInput') await settled(target, there.ended.runId)
    if (operation.id === 'retryRun') await settled(target, there.failed.runId)
  }
  expect(wrong).toEqual([])
  wrong.push(...(await notOperations(doc, target)))
  expect(wrong).toEqual([])
  return { driven, beyond: [...beyond].sort() }
}

/** The two refusals that belong to no operation. */
async function notOperations(doc: ReadDocument, target: Target): Promise<string[]> {
  const wrong: string[] = []
  for (const [path, method, status, code] of [
    ['/v1/nowhere', 'GET', 404, 'not_found'],
    ['/v1/runs', 'PATCH', 405, 'method_not_allowed'],
  ] as const) {
    const response = await target.send(path, { method }, code)
    const body: Any = await response.json()
    if (response.status !== status || body.code !== code)
      wrong.push(`${method} ${path}: ${response.status} ${body.code}`)
    if (status === 405 && !response.headers.has('allow')) wrong.push('405 without Allow')
    if (!doc.codes.includes(code)) wrong.push(`${code} is not in the document`)
  }
  return wrong
}

async function prepare(target: Target): Promise<There> {
  const start = async (team: string, more: object = { input: 'hello' }): Promise<Any> => {
    const init = { method: 'POST', headers: json, body: JSON.stringify({ team, ...more }) }
    const response = await target.send('/v1/runs', init, null)
    expect(response.status).toBe(202)
    return response.json()
  }
  const [ended, running, spare] = [await start('good'), await start('slow'), await start('good')]
  const budgeted = await start('good', { input: 'hello', budget: { usd: '1' } })
  const waiting = await start('asking')
  const asking = { runId: waiting.runId, approvalId: await asked(target, waiting.runId) }
  const { runId: failedId } = await start('failing', { tasks: [{ agent: 'root', task: 'hello' }] })
  await settled(target, ended.runId)
  await settled(target, spare.runId)
  await settled(target, failedId)
  const { sessions }: Any = await (await target.send(`/v1/runs/${failedId}/sessions`, {}, null)).json()
  const failed = { runId: failedId, taskId: sessions.find((s: Any) => s.kind === 'task').sessionId }
  const init = { method: 'POST', headers: json, body: JSON.stringify(BODIES.createSchedule) }
  const { scheduleId }: Any = await (await target.send('/v1/schedules', init, null)).json()
  return { ended, running, spare, budgeted, asking, failed, scheduleId }
}

/** Waits until a run has asked somebody. */
async function asked(target: Target, runId: string): Promise<string> {
  for (;;) {
    const { approvals }: Any = await (await target.send(`/v1/runs/${runId}/approvals`, {}, null)).json()
    if (approvals.length > 0) return approvals[0].approvalId
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Waits for a run to end. */
async function settled(target: Target, runId: string): Promise<void> {
  for (;;) {
    const run: Any = await (await target.send(`/v1/runs/${runId}`, {}, null)).json()
    if (run.status !== 'running') return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function send(operation: Documented, a: Ask, there: There, target: Target, code: string | null): Promise<Response> {
  const values: { [name: string]: string } = {
    runId: there.ended.runId,
    sessionId: there.ended.rootSessionId,
    name: 'good',
    approvalId: 'x',
    id: there.scheduleId,
    ...a.path,
  }
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => values[name]!)
  const init = {
    method: operation.method,
    headers: { ...a.headers },
    ...(a.body !== undefined && { body: a.body }),
  }
  return target.send(`${path}${a.query ?? ''}`, init, code)
}
