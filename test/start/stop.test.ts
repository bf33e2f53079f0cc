/** `npm start` ends at the first signal, also while a model is called; the run goes on at the next start. */
import { expect, test } from 'vitest'
import { startProduct, workplace } from '../support/product.ts'

/** The model never answers while the test lasts. */
const SLOW = `
agents:
  root: { model: m, instruction: Wait. }
models:
  m:
    provider: scripted
    cost: { input: 1, output: 2 }
    provider_opts: { steps: [{ text: late, delayMs: 600000 }] }
`
const QUICK = SLOW.replace('delayMs: 600000', 'delayMs: 1')

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it while a model is called', async (signal) => {
  const place = await workplace({ slow: SLOW, quick: QUICK })
  const env = { SUBLEDGER_LEASE_SECONDS: '60' }
  const first = await startProduct(place, env)
  const { runId } = await first.post('/runs', { team: 'slow', input: 'go' })
  const running = async () => (await first.get(`/runs/${runId}`)).sessions.running === 1
  while (!(await running())) await new Promise((resolve) => setTimeout(resolve, 20))
  const { runId: ended } = await first.post('/runs', { team: 'quick', input: 'go' })
  await first.ended(ended)
  // in time: the test would be over long before the model answers
  await first.stop(signal)
  expect(first.output()).toContain('Stopping. Runs that go on are kept')

  const second = await startProduct(place, env)
  try {
    while (!/books .*\n.*was cut off/.test(second.output())) await new Promise((resolve) => setTimeout(resolve, 20))
    expect(second.output()).toMatch(
      new RegExp(`run ${runId} \\(team slow\\) was cut off, and goes on: 1 session taken over`),
    )
    // at once, and not when the lease of the first process is over
    while ((await second.get(`/runs/${runId}`)).unknown.calls < 1)
      await new Promise((resolve) => setTimeout(resolve, 20))
    expect(second.output()).not.toContain(ended)
    expect(await second.get(`/runs/${runId}`)).toMatchObject({ status: 'running' })
    expect((await second.post(`/runs/${runId}/cancel`, {})).cancelRequestedAt).not.toBeNull()
  } finally {
    await second.stop()
    await place.remove()
  }
})
