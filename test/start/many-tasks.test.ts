import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Product, startProduct, type Workplace, workplace } from '../support/product.ts'

const TASKS = 200
const MAX_CONCURRENCY = 20

const team = `
models:
  script:
    provider: scripted
    model: script
    cost: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }
    provider_opts:
      delayMs: 20
      steps: [{ text: 'Done: {task}', usage: { input: 101, output: 53 } }]
agents:
  worker: { model: script, description: Works, instruction: Do it. }
`

let place: Workplace
let product: Product
beforeAll(async () => {
  place = await workplace({ desk: team })
  product = await startProduct(place, { SUBLEDGER_SCRIPTED_BILL: join(place.data, '..', 'bill.jsonl') })
})
afterAll(async () => {
  await product?.stop()
  await place.remove()
})

test(`a run of ${TASKS} tasks makes ${TASKS} sub-sessions, each once, and books what the model billed`, async () => {
  const tasks = Array.from({ length: TASKS }, (_, i) => ({ agent: 'worker', task: `task ${i}` }))
  const { runId } = await product.post('/runs', { team: 'desk', tasks, maxConcurrency: MAX_CONCURRENCY })
  let most = 0
  let run = await product.get(`/runs/${runId}`)
  while (run.status === 'running') {
    most = Math.max(most, run.sessions.running)
    run = await product.get(`/runs/${runId}`)
  }
  expect(run).toMatchObject({ status: 'completed', sessions: { total: TASKS + 1, completed: TASKS + 1 } })
  expect(most).toBeGreaterThan(1)
  expect(most).toBeLessThanOrEqual(MAX_CONCURRENCY)

  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await product.get(`/runs/${runId}/sessions?limit=100${cursor ? `&cursor=${cursor}` : ''}`)
    for (const s of page.sessions) if (s.kind === 'task') seen.push(s.task)
    cursor = page.next
  } while (cursor)
  expect(seen.sort()).toEqual(tasks.map((t) => t.task).sort())

  const bill = (await readFile(join(place.data, '..', 'bill.jsonl'), 'utf8'))
    .trim()
    .split('\n')
    .map((l) => JSON.parse(l))
  expect(bill).toHaveLength(TASKS)
  const sum = (f: (b: { usage: { inputTokens: number; outputTokens: number } }) => number) =>
    bill.reduce((n, b) => n + f(b), 0)
  expect(run.usage).toMatchObject({
    calls: TASKS,
    inputTokens: sum((b) => b.usage.inputTokens),
    outputTokens: sum((b) => b.usage.outputTokens),
  })
})
