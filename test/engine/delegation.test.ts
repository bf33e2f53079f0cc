import { describe, expect, test } from 'vitest'
import type { Run } from '../../src/domain/run.ts'
import type { Message } from '../../src/domain/turn.ts'
import { type StartRun, startRun } from '../../src/engine/start-run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { meteredTable } from '../../src/store/metered-table.ts'
import { expectBalanced } from '../support/balance.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'

type Members = Parameters<typeof scriptedTeam>[1]

const worker: Members[number] = {
  agent: agent('worker'),
  steps: [{ text: 'done: {task}', usage: { input: 100, output: 50 } }],
}
const boss = (steps: readonly object[], of: object = {}): Members[number] => ({
  agent: agent('boss', { subAgents: ['worker'], toolsets: ['background_agents', 'think'], ...of }),
  steps,
})

async function runTeam(members: Members, request: Partial<StartRun> = { input: 'go' }) {
  const table = meteredTable(memoryTable())
  const engine = testEngine({ table, teams: [scriptedTeam('t', members)] })
  const run = await startRun(engine.ctx, { tenant: 'local', team: 't', ...request })
  await engine.invoker.drain()
  await expectBalanced(engine.ctx.store, run, engine.scripted)
  expect(engine.complaints).toEqual([])
  return { ...engine, table, ...(await look(engine.ctx.store, run)) }
}

async function look(store: Parameters<typeof expectBalanced>[0], ref: Run) {
  const { run, headers } = await store.getRunWithSessions(ref)
  const root = headers.find((h) => h.parentId === null)!
  return { run: run!, headers, root, toolResults: await toolResults(store, root) }
}

/** What the tools of a session said, in order. */
async function toolResults(
  store: Parameters<typeof expectBalanced>[0],
  ref: { tenant: string; runId: string; sessionId: string },
) {
  const log = await store.readLog(ref)
  const messages: Message[] = [...log.requests.values()].flatMap((r) => [...r.messages])
  messages.push(...[...log.responses.values()].flatMap((r) => r.results ?? []))
  return messages.filter((m) => m.role === 'tool').map((m) => m.content)
}

describe('transfer_task', () => {
  test('hands a task over, waits without holding an invocation, and returns the answer', async () => {
    const { headers, toolResults, events, root } = await runTeam([
      boss([
        { calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'count', expected_output: 'a number' } }] },
        { text: 'thanks' },
      ]),
      worker,
    ])
    expect(toolResults).toEqual(['done: count\n\nExpected output: a number'])
    expect(headers.map((h) => h.kind).sort()).toEqual(['root', 'transfer'])
    expect(events.filter((e) => e.sessionId === root.sessionId)).toHaveLength(2)
  })

  test('several in one answer work side by side and each gets its own result', async () => {
    const { toolResults, events, root } = await runTeam([
      boss([
        { calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'part {i}' }, repeat: 4 }] },
        { text: 'thanks' },
      ]),
      worker,
    ])
    expect(toolResults).toHaveLength(4)
    expect(new Set(toolResults).size).toBe(4)
    expect(events.filter((e) => e.sessionId === root.sessionId)).toHaveLength(2) // woken once, by the last of them
  })

  test('a failed agent is an error result with its reason, and its parent goes on', async () => {
    const { toolResults, run } = await runTeam([
      boss([{ calls: [{ tool: 'transfer_task', args: { agent: 'worker', task: 'x' } }] }, { text: 'so be it' }]),
      { agent: agent('worker'), steps: [{ error: { class: 'auth', message: 'bad key' } }] },
    ])
    expect(toolResults).toEqual(['The agent worker did not complete the task: bad key'])
    expect(run.status).toBe('completed')
  })

  test('wrong arguments are told to the model, and nothing is started', async () => {
    const calls = [
      { tool: 'transfer_task', args: { agent: 'nobody', task: 'x' } },
      { tool: 'transfer_task', args: { agent: 'worker' } },
      { tool: 'transfer_task', args: '{"agent": "worker", ' },
      { tool: 'shell', args: {} },
      { tool: 'view_background_agent', args: { task_id: 'task-9' } },
      { tool: 'wait_background_agents', args: { ids: ['x'] } },
      { tool: 'wait_background_agents', args: { timeout: 4000 } },
    ]
    const { toolResults, headers } = await runTeam([boss([{ calls }, { text: 'ok' }]), worker])
    expect(headers).toHaveLength(1)
    expect(toolResults.map((r) => r.slice(0, 40))).toEqual([
      '"agent" must be one of: worker.',
      '"task" must be a text that says what to ',
      'The arguments are not valid JSON: Expect',
      'There is no tool "shell". There are: tra',
      'There is no background task task-9.',
      '"ids" must be a list of ids that run_bac',
      '"timeout" must be a number of seconds ab',
    ])
  })
})

describe('background agents', () => {
  test('start, list, view, stop and wait', async () => {
    const { toolResults, headers } = await runTeam(
      [
        boss([
          { calls: [{ tool: 'run_background_agent', args: { agent: 'worker', task: 'part {i}' }, repeat: 3 }] },
          {
            calls: [
              { tool: 'stop_background_agent', args: { task_id: 'task-2' } },
              { tool: 'list_background_agents', args: {} },
            ],
          },
          { calls: [{ tool: 'wait_background_agents', args: { ids: ['task-0', 'task-1'] } }] },
          { calls: [{ tool: 'view_background_agent', args: { task_id: 'task-2' } }] },
          { text: 'ok' },
        ]),
        worker,
      ],
      { input: 'go', maxConcurrency: 1 }, // so that nobody has begun when the third is stopped
    )
    expect(toolResults[0]).toBe('Started worker in the background. Its task id is task-0.')
    expect(toolResults[3]).toBe('task-2 was queued; it has been asked to stop.')
    expect(JSON.parse(toolResults[4]!).map((t: { status: string }) => t.status)).toEqual([
      'queued',
      'queued',
      'cancelled',
    ])
    expect(JSON.parse(toolResults[5]!)).toEqual({
      tasks: [
        { task_id: 'task-0', agent: 'worker', status: 'completed', output: 'done: part 1' },
        { task_id: 'task-1', agent: 'worker', status: 'completed', output: 'done: part 2' },
      ],
    })
    expect(JSON.parse(toolResults[6]!).status).toBe('cancelled')
    expect(headers.map((h) => h.status).sort()).toEqual(['cancelled', 'completed', 'completed', 'completed'])
  })

  test('a wait whose time is up tells what still works, and the child goes on', async () => {
    const { toolResults } = await runTeam([
      boss([
        { calls: [{ tool: 'run_background_agent', args: { agent: 'worker', task: 'slow' } }] },
        { calls: [{ tool: 'wait_background_agents', args: { timeout: 0.001 } }], delayMs: 5 },
        { calls: [{ tool: 'wait_background_agents', args: {} }] },
        { text: 'ok' },
      ]),
      { ...worker, steps: [{ ...worker.steps[0], delayMs: 150 }] },
    ])
    const first = JSON.parse(toolResults[1]!)
    // the first look may come before or after the wait's end; either way nothing is lost
    if (first.timed_out) expect(first.tasks[0].status).not.toBe('completed')
    expect(JSON.parse(toolResults[2]!).tasks[0].status).toBe('completed')
  })

  test('polling is laid to rest: the second look in a row waits until the child has ended', async () => {
    const { toolResults, scripted, root } = await runTeam([
      boss([
        { calls: [{ tool: 'run_background_agent', args: { agent: 'worker', task: 'slow' } }] },
        { calls: [{ tool: 'view_background_agent', args: { task_id: 'task-0' } }] },
        { calls: [{ tool: 'view_background_agent', args: { task_id: 'task-0' } }] },
        { text: 'ok' },
      ]),
      { ...worker, steps: [{ ...worker.steps[0], delayMs: 100 }] },
    ])
    expect(JSON.parse(toolResults[1]!).status).not.toBe('completed')
    expect(JSON.parse(toolResults[2]!)).toMatchObject({ status: 'completed', output: 'done: slow' })
    expect(scripted.bill.filter((b) => b.sessionId === root.sessionId)).toHaveLength(4)
  })

  test('an agent that answers while its children work stops them, and settles after they have', async () => {
    const { headers, run, root } = await runTeam([
      boss([
        { calls: [{ tool: 'run_background_agent', args: { agent: 'worker', task: 'x' }, repeat: 3 }] },
        { text: 'bye' },
      ]),
      { ...worker, steps: [{ ...worker.steps[0], delayMs: 100, chunks: 4 }] },
    ])
    expect(run.status).toBe('completed')
    expect(root.settled).toBe(3)
    expect(headers.filter((h) => h.kind === 'background').map((h) => [h.status, h.stopReason])).toEqual(
      Array(3).fill(['cancelled', 'parent_ended']),
    )
  })

  test('a team may say that it waits for them instead', async () => {
    const { headers } = await runTeam([
      boss(
        [
          { calls: [{ tool: 'run_background_agent', args: { agent: 'worker', task: 'x' }, repeat: 3 }] },
          { text: 'bye' },
        ],
        { atEnd: 'wait' },
      ),
      worker,
    ])
    expect(headers.every((h) => h.status === 'completed')).toBe(true)
  })

  test('at most 100 work for one session at once; the rest are refused with the reason', async () => {
    const { toolResults, headers } = await runTeam([
      boss([
        { calls: [{ tool: 'run_background_agent', args: { agent: 'worker', task: 'part {i}' }, repeat: 103 }] },
        { calls: [{ tool: 'wait_background_agents', args: {} }] },
        { text: 'ok' },
      ]),
      worker,
    ])
    expect(headers).toHaveLength(101)
    expect(toolResults.slice(99, 102)).toEqual([
      'Started worker in the background. Its task id is task-99.',
      ...Array(2).fill(
        'Not started: at most 100 agents may work for one session at once. Wait for some of them first.',
      ),
    ])
  })

  test('agents lead agents five levels deep, and no further', async () => {
    const names = ['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6']
    const { headers } = await runTeam(
      names.map((name, i) => ({
        agent: agent(name, { subAgents: names[i + 1] ? [names[i + 1]!] : [] }),
        steps: names[i + 1]
          ? [{ calls: [{ tool: 'transfer_task', args: { agent: names[i + 1], task: 'deeper' } }] }, { text: '{last}' }]
          : [{ text: 'bottom' }],
      })),
    )
    expect(headers.map((h) => h.depth).sort()).toEqual([0, 1, 2, 3, 4, 5])
  })
})

describe('a list of tasks', () => {
  const tasks = (n: number) => Array.from({ length: n }, (_, i) => ({ agent: 'worker', task: `task ${i}` }))

  test('makes one sub-session for each task, each once, without a root model', async () => {
    const { headers, run, scripted } = await runTeam([worker], { tasks: tasks(7) })
    expect(headers).toHaveLength(8)
    expect(scripted.bill).toHaveLength(7)
    expect(run).toMatchObject({ status: 'completed', agent: null, sessions: 8 })
  })

  test('of more than 100 goes through groups, and no more than maxConcurrency run at once', async () => {
    for (const maxConcurrency of [1, 7, 40]) {
      const { headers, invoker } = await runTeam([worker], { tasks: tasks(230), maxConcurrency })
      const kinds = Object.groupBy(headers, (h) => h.kind)
      expect([kinds.root?.length, kinds.group?.length, kinds.task?.length]).toEqual([1, 3, 230])
      expect(invoker.counts().maxRunning).toBeLessThanOrEqual(maxConcurrency)
    }
  })

  test('a worker of T turns with instantaneous tools costs T + 4 writes, its parent included', async () => {
    const thinking = {
      ...worker,
      agent: agent('worker', { toolsets: ['think'] as const }),
      steps: [
        { calls: [{ tool: 'think', args: { thought: 'a' } }] },
        { calls: [{ tool: 'think', args: { thought: 'b' } }] },
        { text: 'done' },
      ],
    }
    const cost = async (n: number) => (await runTeam([thinking], { tasks: tasks(n) })).table.snapshot().writeUnits
    expect(((await cost(40)) - (await cost(20))) / 20).toBe(3 + 4)
  })
})
