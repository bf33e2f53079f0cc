/**
 * The product is killed at random moments, as a machine dies, and started again on the same data; a provider on loopback
 * keeps its own bill. The run must finish, and the books must cover the bill. SUBLEDGER_TEST_KILLS says how often (4).
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { type Product, startProduct, workplace } from '../support/product.ts'
import { chatEvents, events } from '../support/provider-server.ts'

const KILLS = Number(process.env.SUBLEDGER_TEST_KILLS ?? 4)
const WORKERS = 8
const TURNS = 5
const LEASE_SECONDS = 2

const team = (url: string) => `
providers:
  here: { api_type: openai_chatcompletions, base_url: ${url}/v1 }
models:
  slow: { provider: here, model: slow, max_tokens: 500, cost: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 } }
agents:
  root:
    { model: slow, description: Leads, instruction: You are root., sub_agents: [worker], toolsets: [{ type: background_agents }] }
  worker: { model: slow, description: Works, instruction: You are worker., toolsets: [{ type: think }] }
`

interface Billed {
  readonly id: string
  readonly input: number
  readonly output: number
}

/** A provider that answers by how far the conversation has come, slowly enough to be killed in the middle. */
async function slowProvider() {
  const bill: Billed[] = []
  const server = createServer(async (req, res) => {
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part as Buffer)
    const { messages } = JSON.parse(Buffer.concat(parts).toString('utf8'))
    const answers = messages.filter((m: { role: string }) => m.role === 'assistant').length
    const root = JSON.stringify(messages[0]).includes('You are root')
    const id = `answer-${bill.length}`
    const billed = { id, input: 100 + 10 * answers, output: 20 + answers }
    bill.push(billed) // from here on it is paid for, whoever listens
    await answer(res, billed, root ? rootSays(answers) : workerSays(answers))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bill,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const call = (name: string, args: object, i = 0) => ({ id: `call_${i}`, name, args: [JSON.stringify(args)] })
const rootSays = (answers: number) =>
  answers === 0
    ? {
        calls: Array.from({ length: WORKERS }, (_, i) =>
          call('run_background_agent', { agent: 'worker', task: `part ${i}` }, i),
        ),
      }
    : answers === 1
      ? { calls: [call('wait_background_agents', {})] }
      : { text: ['all ', 'done'] }
const workerSays = (answers: number) =>
  answers < TURNS - 1 ? { calls: [call('think', { thought: `step ${answers}` })] } : { text: ['worker ', 'done'] }

async function answer(res: ServerResponse, billed: Billed, said: Parameters<typeof chatEvents>[0]): Promise<void> {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  const usage = {
    prompt_tokens: billed.input,
    completion_tokens: billed.output,
    total_tokens: billed.input + billed.output,
  }
  const text = events(chatEvents(said, usage)).map((e) => e.replace(/"id":"chatcmpl[^"]*"/, `"id":"${billed.id}"`))
  for (const chunk of text) {
    await new Promise((resolve) => setTimeout(resolve, 150))
    if (res.destroyed) return
    res.write(chunk)
  }
  res.end()
}

test(`killed ${KILLS} times, a run of ${WORKERS} workers with ${TURNS} turns each completes, and its books cover the bill`, async () => {
  const provider = await slowProvider()
  const place = await workplace({ slow: team(provider.url) })
  const env = { SUBLEDGER_LEASE_SECONDS: `${LEASE_SECONDS}`, SUBLEDGER_SWEEP_SECONDS: '1' }
  let product: Product = await startProduct(place, env)
  try {
    const { runId } = await product.post('/runs', { team: 'slow', input: 'go' })
    let alive = 0
    for (let kill = 0; kill < KILLS; kill++) {
      await new Promise((resolve) => setTimeout(resolve, 3_000 + ((kill * 7919) % 2_500)))
      const { sessions } = await product.get(`/runs/${runId}`)
      alive += sessions.running + sessions.queued + sessions.waiting
      await product.kill()
      product = await startProduct(place, env)
    }
    const run = await product.ended(runId)
    expect(run).toMatchObject({ status: 'completed', sessions: { total: WORKERS + 1, completed: WORKERS + 1 } })

    const calls: {
      outcome: string
      responseId: string | null
      usage: { inputTokens: number; outputTokens: number }
    }[] = []
    let cursor: string | undefined
    do {
      const page = await product.get(`/runs/${runId}/calls?limit=100${cursor ? `&cursor=${cursor}` : ''}`)
      calls.push(...page.calls)
      cursor = page.next
    } while (cursor)

    const known = calls.filter((c) => c.outcome !== 'unknown')
    const unknown = calls.filter((c) => c.outcome === 'unknown')
    const outcomes = Object.groupBy(calls, (c) => c.outcome)
    console.log(
      `billed ${provider.bill.length}; booked`,
      Object.fromEntries(Object.entries(outcomes).map(([k, v]) => [k, v!.length])),
    )
    expect(known.filter((c) => c.outcome === 'accepted')).toHaveLength(WORKERS * TURNS + 3)
    // every call of which the books know the answer is on the bill, once, with the bill's figures
    const byId = new Map(provider.bill.map((b) => [b.id, b]))
    for (const c of known.filter((k) => k.outcome === 'accepted' || k.outcome === 'duplicate')) {
      const billed = byId.get(c.responseId!)
      expect({ [c.responseId!]: c.usage }).toMatchObject({
        [c.responseId!]: { inputTokens: billed?.input, outputTokens: billed?.output },
      })
      byId.delete(c.responseId!)
    }
    // what is left of the bill was lost with its driver, and is covered by the calls of outcome unknown or failed
    const rest = [...byId.values()]
    const others = calls.filter((c) => c.outcome === 'unknown' || c.outcome === 'failed')
    expect(rest.length).toBeLessThanOrEqual(others.length)
    const sum = (list: { input: number; output: number }[]) => list.reduce((n, b) => n + b.input + b.output, 0)
    expect(sum(rest)).toBeLessThanOrEqual(
      sum(others.map((c) => ({ input: c.usage.inputTokens, output: c.usage.outputTokens }))),
    )
    expect(unknown.length).toBeLessThanOrEqual(alive)
    expect(run.unknown.calls).toBe(unknown.length)
  } finally {
    await product.stop()
    await provider.close()
    await place.remove()
  }
}, 600_000)
