/** `npm start` streams events over HTTP, and its clients come back after it was killed. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bySession, parseEvents, type Sent, type Told } from '../support/events.ts'
import { type Product, startProduct, type Workplace, workplace } from '../support/product.ts'

const TEAM = `
agents:
  root: { model: root, instruction: Lead., sub_agents: [worker], toolsets: [{ type: background_agents }] }
  worker: { model: worker, instruction: Work., description: works }
models:
  root:
    provider: scripted
    model: root
    provider_opts:
      steps:
        - calls: [{ tool: run_background_agent, args: { agent: worker, task: 'part {i}' }, repeat: 19 }]
        - calls: [{ tool: wait_background_agents }]
        - { text: all done, delayMs: 1000 }
  worker: { provider: scripted, model: worker, provider_opts: { steps: [{ text: done, delayMs: 1500 }] } }
`
const ENV = { SUBLEDGER_LEASE_SECONDS: '2', SUBLEDGER_SWEEP_SECONDS: '1' }

let place: Workplace
let product: Product
beforeAll(async () => {
  place = await workplace({ crew: TEAM })
  product = await startProduct(place, ENV)
}, 60_000)
afterAll(async () => {
  await product?.stop()
  await place.remove()
})

/** Reads a stream until it is over, breaks off, or has told enough. */
async function read(path: string, cursor: string | undefined, enough: (told: Told) => boolean): Promise<Told> {
  const gone = new AbortController()
  let text = ''
  const whole = () => parseEvents(text.slice(0, text.lastIndexOf('\n\n') + 2))
  try {
    const headers = cursor === undefined ? {} : { 'last-event-id': cursor }
    const response = await fetch(`${product.api}${path}`, { headers, signal: gone.signal })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece
      if (enough(whole())) gone.abort()
    }
  } catch {
    // cut off, by us or because the process was killed
  }
  return whole()
}

test('a run of 20 sessions is told to all alike, whoever comes back with which cursor, and whatever is killed', async () => {
  const { runId, rootSessionId } = await product.post('/runs', { team: 'crew', input: 'go' })
  const [own, all] = [`/runs/${runId}/events`, `/runs/${runId}/events?session=${rootSessionId}`]
  // one reader breaks off after each event until the process is killed, the other holds on
  const steady = read(all, undefined, () => false)
  const restless: Sent[] = []
  let cursor: string | undefined
  while (restless.length < 12) {
    const told = await read(own, cursor, (t) => t.events.length > 0)
    restless.push(...told.events.slice(0, 1))
    cursor = restless.at(-1)?.id
  }
  await product.kill()
  const before = await steady
  expect(before.end).toBeUndefined()
  product = await startProduct(place, ENV)
  const after = await read(all, before.cursor, () => false)
  expect(after.end).toMatchObject({ status: 'completed', round: 1 })
  restless.push(...(await read(own, cursor, () => false)).events)

  const data = (events: readonly Sent[]) => bySession(events.map((e) => e.data))
  const whole = await read(all, undefined, () => false)
  expect(data([...before.events, ...after.events])).toEqual(data(whole.events))
  const sessions = whole.events.filter((e) => e.event.startsWith('session.'))
  expect(data(restless)).toEqual(data(sessions))
  expect(Object.keys(data(sessions))).toHaveLength(20)
  for (const { id } of whole.events) {
    const index = whole.events.findIndex((e) => e.id === id)
    const rest = await read(all, id, () => false)
    expect(rest.events.map((e) => e.data)).toEqual(whole.events.slice(index + 1).map((e) => e.data))
  }
}, 120_000)
