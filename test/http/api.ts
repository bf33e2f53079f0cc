/** The API over an engine with a scripted model, on a table in memory: requests go in, answers come out, no network. */
import { expect } from 'vitest'
import type { TeamDefinition } from '../../src/domain/team.ts'
import { type AppOptions, createApp } from '../../src/http/app.ts'
import type { Problem } from '../../src/http/problem.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { type MeteredTable, meteredTable } from '../../src/store/metered-table.ts'
import { agent, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'

export interface Answer<T> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}

export interface Api extends TestEngine {
  readonly meter: MeteredTable
  get<T = never>(path: string, headers?: Record<string, string>): Promise<Answer<T>>
  post<T = never>(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer<T>>
  send(path: string, init: RequestInit): Promise<Answer<Problem>>
  /** starts a run and waits until nothing of it works any more */
  run(body: object): Promise<RunView>
  /** all pages of a list */
  pages<T>(path: string, key: string, limit: number): Promise<T[][]>
  close(): Promise<unknown>
}

/** A root that hands a task to a worker, thinks, starts two in the background, waits for them, and answers. */
export const desk: TeamDefinition = scriptedTeam('desk', [
  {
    agent: agent('root', { subAgents: ['worker'], toolsets: ['background_agents', 'think'] }),
    steps: [
      {
        calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'first', expected_output: 'a word' } }],
        usage: { input: 1000, cacheRead: 400, output: 20 },
      },
      { calls: [{ tool: 'think', args: { thought: 'hm' } }], usage: { input: 1100, output: 10 } },
      {
        text: 'now two at once',
        calls: [
          { tool: 'run_background_agent', args: { agent: 'worker', task: 'second' } },
          { tool: 'run_background_agent', args: { agent: 'worker', task: 'third' } },
        ],
        usage: { input: 1200, output: 30 },
      },
      { calls: [{ tool: 'wait_background_agents' }], usage: { input: 1300, output: 5 } },
      { text: 'all done', usage: { input: 1400, output: 8 } },
    ],
  },
  { agent: agent('worker'), steps: [{ text: 'worker done', usage: { input: 100, output: 50 } }] },
])

/** One agent that answers each input. */
export const echo: TeamDefinition = scriptedTeam('echo', [
  { agent: agent('root'), steps: [{ text: 'you said {input}', usage: { input: 10, output: 5 } }] },
])

export function openApi(
  options: { teams?: readonly TeamDefinition[]; app?: Partial<AppOptions>; leaseMs?: number } = {},
): Api {
  const meter = meteredTable(memoryTable())
  const engine = testEngine({
    table: meter,
    teams: options.teams ?? [desk, echo],
    ...(options.leaseMs !== undefined && { leaseMs: options.leaseMs }),
  })
  const app = createApp(engine.ctx, { tenantOf: () => 'local', ...options.app })

  async function request<T>(path: string, init: RequestInit = {}): Promise<Answer<T>> {
    const response = await app.request(path, init)
    const text = await response.text()
    const body = /json/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : text
    return { status: response.status, headers: response.headers, body }
  }
  const post = <T>(path: string, body: unknown, headers: Record<string, string> = {}) =>
    request<T>(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  return {
    ...engine,
    meter,
    get: (path, headers = {}) => request(path, { headers }),
    post,
    send: (path, init) => request<Problem>(path, init),
    async run(body) {
      const { status, body: run } = await post<RunView>('/v1/runs', body)
      expect(status).toBe(202)
      await engine.invoker.drain()
      return (await request<RunView>(`/v1/runs/${run.runId}`)).body
    },
    async pages<T>(path: string, key: string, limit: number) {
      const pages: T[][] = []
      let next: string | null = null
      do {
        const cursor: string = next === null ? '' : `&cursor=${encodeURIComponent(next)}`
        const { status, body }: Answer<{ [key: string]: unknown }> = await request(`${path}?limit=${limit}${cursor}`)
        expect(status).toBe(200)
        pages.push(body[key] as T[])
        next = body.next as string | null
      } while (next !== null)
      return pages
    },
    close: () => engine.invoker.close(),
  }
}

/** A refusal, whole: what a client is told, and in what form. */
export function expectProblem(answer: Answer<unknown>, status: number, code: string): Problem {
  const problem = answer.body as Problem
  expect({ status: answer.status, code: problem.code }).toEqual({ status, code })
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  expect(problem).toMatchObject({ status, type: `urn:subledger:error:${code}` })
  expect(problem.title).not.toBe('')
  expect(problem.detail.length).toBeGreaterThan(10)
  return problem
}
