/** An API whose every call of a port can be made to fail, for requests that are sent again. */
import { createApp } from '../../src/http/app.ts'
import type { RunView } from '../../src/http/views/run.ts'
import type { ScheduleTimer } from '../../src/ports/schedule-timer.ts'
import type { Clock } from '../../src/ports.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'
import { systemClock } from '../../src/system.ts'
import { agent, fixedTeams, scriptedTeam, type TestEngine, testEngine } from '../support/engine.ts'

const echo = scriptedTeam('echo', [
  { agent: agent('root'), steps: [{ text: 'you said {input}', usage: { input: 10, output: 5 } }] },
])
const slow = scriptedTeam('slow', [
  { agent: agent('root'), steps: [{ delayMs: 600_000, text: 'late', usage: { input: 1, output: 1 } }] },
])
const asking = {
  ...scriptedTeam('asking', [
    {
      agent: agent('root', { toolsets: ['think'] }),
      steps: [{ calls: [{ tool: 'think', args: { thought: 'hm' } }] }, { text: 'end' }],
    },
  ]),
  permissions: { ask: ['think'] },
}
const refused = scriptedTeam('refused', [
  { agent: agent('root'), steps: [{ error: { class: 'invalid_request', message: 'never' } }] },
])
export const good = { team: 'echo', input: 'go' }

/** The machine's own time, moved on. */
export const time = { ahead: 0 }
export const clock: Clock = { now: () => systemClock.now() + time.ahead, sleep: systemClock.sleep }

export interface World {
  readonly engine: TestEngine
  /** schedules that are ticked from outside */
  readonly outside: ReadonlySet<string>
  /** calls of ports so far: of the table, of the timer of schedules, and events */
  calls(): number
  /** of these, those that change the table */
  writes(): number
  /** the call of this number fails, before or after it was done */
  failAt: number
  how: 'before' | 'after'
  /** the files of all teams are gone from now on */
  forgetTeams(): void
  post(
    path: string,
    body: unknown,
    key: string | undefined,
  ): Promise<{ status: number; text: string; location: string | null }>
}

const open: TestEngine[] = []
export function openWorld(): World {
  const table = memoryTable()
  let count = 0
  let writes = 0
  const call = async <T>(apply: () => Promise<T>): Promise<T> => {
    const fails = ++count === world.failAt
    if (fails && world.how === 'before') throw new Error('the process is gone')
    const result = await apply()
    if (fails) throw new Error('the process is gone')
    return result
  }
  const write = <T>(apply: () => Promise<T>): Promise<T> => {
    writes++
    return call(apply)
  }
  const engine = testEngine({ table, teams: [echo, slow, asking, refused], clock })
  const outside = new Set<string>()
  // the API's own table fails; the workers' does not
  const failing: TableClient = {
    get: (request) => call(() => table.get(request)),
    query: (request) => call(() => table.query(request)),
    put: (request) => write(() => table.put(request)),
    update: (request) => write(() => table.update(request)),
    delete: (request) => write(() => table.delete(request)),
  }
  const scheduleTimer: ScheduleTimer = {
    start: (_tenant, { id }) => call(async () => void outside.add(id)),
    stop: ({ id }) => call(async () => void outside.delete(id)),
  }
  let teams = engine.ctx.teams
  const app = createApp(
    {
      ...engine.ctx,
      teams: { list: () => teams.list(), get: (name) => teams.get(name) },
      store: createStore(failing, clock.now),
      invoker: { invoke: (ref) => call(() => engine.ctx.invoker.invoke(ref)) },
      scheduleTimer,
    },
    { tenantOf: () => 'local' },
  )
  open.push(engine)
  const world: World = {
    engine,
    outside,
    calls: () => count,
    writes: () => writes,
    failAt: 0,
    how: 'before',
    forgetTeams() {
      teams = fixedTeams([])
    },
    async post(path, body, key) {
      const headers = { 'content-type': 'application/json', ...(key !== undefined && { 'idempotency-key': key }) }
      const response = await app.request(path, { method: 'POST', headers, body: JSON.stringify(body) })
      return { status: response.status, text: await response.text(), location: response.headers.get('location') }
    },
  }
  return world
}
export const idOf = (answer: { text: string }): string => (JSON.parse(answer.text) as RunView).runId
export const runsOf = async (world: World) => (await world.engine.ctx.store.listRuns('local', { limit: 100 })).items

/** Closes all worlds that are open, and sets the time right. */
export async function closeWorlds(): Promise<void> {
  time.ahead = 0
  for (const engine of open.splice(0)) await engine.invoker.close()
}
