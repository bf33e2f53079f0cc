import { describe, expect, test } from 'vitest'
import { MAX_TOOL_CALLS, TOOL_RESULT_BYTES, TOOL_RESULTS_BYTES } from '../../src/domain/limits.ts'
import type { ToolMessage } from '../../src/domain/turn.ts'
import { startRun } from '../../src/engine/start-run.ts'
import { bytesPerResult, cutText, reportsText, reportText, statesText } from '../../src/engine/tools/result-size.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { agent, scriptedTeam, testEngine } from '../support/engine.ts'

const bytes = (text: string) => Buffer.byteLength(text)
const report = (i: number, output: string) => ({ task_id: `task-${i}`, agent: 'worker', status: 'completed', output })

describe('E5: a result that is cut', () => {
  test.each([1_000, 1_001, 1_002, 1_003])('at %i bytes is well-formed and says so', (max) => {
    const cut = cutText('😀'.repeat(5_000), max)
    expect(cut.isWellFormed()).toBe(true)
    expect(bytes(cut)).toBeLessThanOrEqual(max)
    expect(cut).toMatch(/^(😀)+\n\[Cut here: these are the first \d+ of 20000 bytes\.\]$/u)
  })

  test('stands whole where it fits, without half a character', () => {
    expect(cutText('short', 1_000)).toBe('short')
    expect(cutText('half \ud83d', 1_000)).toBe('half \ufffd')
  })

  test('of one task is still JSON', () => {
    for (const text of ['\n"'.repeat(50_000), '\u0001'.repeat(90_000), '😀'.repeat(90_000)]) {
      const cut = reportText(report(0, text), 10_000)
      expect(bytes(cut)).toBeLessThanOrEqual(10_000)
      expect(JSON.parse(cut).output).toContain('[Cut here')
    }
  })

  test('of many tasks leaves short outputs whole and shares the rest among the long ones', () => {
    const all = [report(0, 'short'), report(1, 'a'.repeat(9_000)), report(2, '😀\n'.repeat(9_000))]
    const cut = reportsText(all, {}, 10_000)
    expect(bytes(cut)).toBeLessThanOrEqual(10_000)
    expect(bytes(cut)).toBeGreaterThan(9_000)
    const { tasks } = JSON.parse(cut)
    expect(tasks[0]).toEqual(all[0])
    expect(tasks[1].output).toMatch(/view_background_agent with task-1 shows more/)
    expect(tasks[2].output).toMatch(/^(😀\n)+/u)
    expect(tasks.every((t: { output: string }) => t.output.isWellFormed())).toBe(true)
    expect(reportsText(all, { timed_out: true }, 100_000)).toBe(JSON.stringify({ timed_out: true, tasks: all }))
  })

  test('of more tasks than it can name keeps the newest and counts the others', () => {
    const all = Array.from({ length: 5_000 }, (_, i) => report(i, 'x'.repeat(1_000)))
    const cut = reportsText(all, {}, TOOL_RESULT_BYTES)
    expect(bytes(cut)).toBeLessThanOrEqual(TOOL_RESULT_BYTES)
    const { tasks, left_out } = JSON.parse(cut)
    expect(tasks.at(-1).task_id).toBe('task-4999')
    expect(left_out).toMatch(new RegExp(`^${5_000 - tasks.length} older tasks`))
    const states = statesText(
      all.map(({ output: _, ...state }) => state),
      10_000,
    )
    expect(bytes(states)).toBeLessThanOrEqual(10_000)
    expect(JSON.parse(states)[0].left_out).toMatch(/older tasks/)
  })

  test('takes less the more of them one answer asks for', () => {
    const view = (count: number) => Array.from({ length: count }, () => ({ kind: 'view' as const, ordinal: 0 }))
    expect(bytesPerResult(view(1))).toBe(TOOL_RESULT_BYTES)
    expect(bytesPerResult(view(100)) * 100).toBeLessThanOrEqual(TOOL_RESULTS_BYTES)
  })
})

async function resultsOf(steps: readonly object[], workerSays: string): Promise<ToolMessage[]> {
  const boss = agent('boss', { subAgents: ['worker'], toolsets: ['background_agents', 'think'] })
  const team = scriptedTeam('t', [
    { agent: boss, steps },
    { agent: agent('worker'), steps: [{ text: workerSays }] },
  ])
  const { ctx, invoker, complaints } = testEngine({ table: memoryTable(), teams: [team] })
  const run = await startRun(ctx, { tenant: 'local', team: 't', input: 'go' })
  await invoker.drain()
  expect(complaints).toEqual([])
  const { run: ended, headers } = await ctx.store.getRunWithSessions(run)
  expect(ended!.status).toBe('completed')
  const log = await ctx.store.readLog(headers.find((h) => h.parentId === null)!)
  await invoker.close()
  const messages = [...log.requests.values()].flatMap((r) => r.messages)
  return [...messages, ...[...log.responses.values()].flatMap((r) => r.results ?? [])].filter((m) => m.role === 'tool')
}

test('the outputs of agents are cut at the bound, whichever tool shows them', async () => {
  const task = (tool: string) => ({ tool, args: { agent: 'worker', task: 'write' } })
  const results = await resultsOf(
    [
      { calls: [task('transfer_task'), task('run_background_agent'), task('run_background_agent')] },
      { calls: [{ tool: 'wait_background_agents' }] },
      { calls: [{ tool: 'view_background_agent', args: { task_id: 'task-1' } }] },
      { text: 'done' },
    ],
    '😀'.repeat(100_000),
  )
  const of = (name: string) => results.filter((r) => r.toolName === name).map((r) => r.content)
  for (const name of ['transfer_task', 'wait_background_agents', 'view_background_agent']) {
    const [content] = of(name)
    expect(bytes(content!)).toBeLessThanOrEqual(TOOL_RESULT_BYTES)
    expect(bytes(content!)).toBeGreaterThan(TOOL_RESULT_BYTES * 0.9)
    expect(content!.isWellFormed()).toBe(true)
    expect(content).toContain('Cut here')
  }
})

test('of one answer so many tool calls are run; each further one is told so, and none of them starts an agent', async () => {
  const more = [
    { tool: 'think', args: { thought: 'hm' }, repeat: MAX_TOOL_CALLS },
    { tool: 'run_background_agent', args: { agent: 'worker', task: 'x' }, repeat: 3 },
    { tool: 'stop_background_agent', args: { task_id: 'task-0' }, repeat: MAX_TOOL_CALLS },
  ]
  const results = await resultsOf(
    [{ calls: more.flatMap((call) => (call.repeat === 3 ? [call] : [call, call])) }, { text: 'done' }],
    'x',
  )
  expect(results).toHaveLength(4 * MAX_TOOL_CALLS + 3)
  expect(results.slice(0, MAX_TOOL_CALLS).every((r) => r.content === 'Noted.')).toBe(true)
  const refused = results.slice(MAX_TOOL_CALLS)
  expect(refused.every((r) => r.isError && r.content.startsWith('Not run: of one answer at most 1000'))).toBe(true)
})
