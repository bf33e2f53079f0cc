/** Idempotency-Key: the same request again does nothing again, whatever became of the first one. */
import { afterEach, describe, expect, test } from 'vitest'
import { approvalIdOf } from '../../src/domain/approval.ts'
import { sweepRun } from '../../src/engine/sweep-run.ts'
import { createApp } from '../../src/http/app.ts'
import { closeWorlds, good, idOf, openWorld, runsOf, time, type World } from './once-world.ts'

afterEach(closeWorlds)

describe('Idempotency-Key', () => {
  test('fifty requests at once with one key make one run, and all get the same answer', async () => {
    const world = openWorld()
    const answers = await Promise.all(Array.from({ length: 50 }, () => world.post('/v1/runs', good, 'k')))
    expect(new Set(answers.map((a) => `${a.status} ${a.location} ${a.text}`)).size).toBe(1)
    expect(answers[0]!.status).toBe(202)
    await world.engine.invoker.drain()
    const runs = await runsOf(world)
    expect(runs.map((r) => r.status)).toEqual(['completed'])
    expect(world.engine.scripted.bill).toHaveLength(1)
    // and later, when the run has long ended
    expect(await world.post('/v1/runs', good, 'k')).toEqual(answers[0])
  })

  test('control: without a key, or with others, each request makes a run of its own', async () => {
    const world = openWorld()
    await Promise.all([undefined, undefined, 'a', 'b'].map((key) => world.post('/v1/runs', good, key)))
    expect(await runsOf(world)).toHaveLength(4)
  })

  test('another body is refused; spaces and the order of keys make no other body', async () => {
    const world = openWorld()
    const first = await world.post('/v1/runs', good, 'k')
    const other = await world.post('/v1/runs', { ...good, input: 'else' }, 'k')
    expect([other.status, JSON.parse(other.text).code]).toEqual([422, 'idempotency_mismatch'])
    expect(await world.post('/v1/runs', { input: 'go', team: 'echo' }, 'k')).toEqual(first)
    expect(await runsOf(world)).toHaveLength(1)
  })

  test('a key belongs to its tenant and its path', async () => {
    const world = openWorld()
    const one = idOf(await world.post('/v1/runs', good, 'k'))
    const two = idOf(await world.post('/v1/runs', good, 'other'))
    await world.engine.invoker.drain()
    for (const id of [one, two])
      expect((await world.post(`/v1/runs/${id}/input`, { input: 'on' }, 'k')).status).toBe(202)
    const foreign = createApp(world.engine.ctx, { tenantOf: () => 'foreign' })
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'k' }
    const init = { method: 'POST', headers, body: JSON.stringify({ ...good, input: 'else' }) }
    expect((await foreign.request('/v1/runs', init)).status).toBe(202)
  })

  test('a key is kept for a day, and is gone at once after it, though the table has not removed it', async () => {
    const world = openWorld()
    const first = idOf(await world.post('/v1/runs', good, 'k'))
    time.ahead = 86_400_000 - 60_000
    expect(idOf(await world.post('/v1/runs', good, 'k'))).toBe(first)
    time.ahead = 86_400_000 + 1_000
    expect(idOf(await world.post('/v1/runs', { ...good, input: 'another' }, 'k'))).not.toBe(first)
  })

  test('a refused request leaves its key free', async () => {
    const world = openWorld()
    expect((await world.post('/v1/runs', { ...good, agent: 'nobody' }, 'k')).status).toBe(400)
    expect((await world.post('/v1/runs', good, 'k')).status).toBe(202)
  })

  test('an answer larger than an item is given again to the last byte', async () => {
    const world = openWorld()
    const input = Array.from({ length: 60_000 }, (_, i) => `${i * 7919}`.padStart(10, '0')).join(' ')
    const first = await world.post('/v1/runs', { team: 'echo', input }, 'k')
    expect(first.text.length).toBeGreaterThan(600_000)
    expect(await world.post('/v1/runs', { team: 'echo', input }, 'k')).toEqual(first)
  })

  test.each(['', 'x'.repeat(256), 'two words'])('the key %j is none', async (key) => {
    const answer = await openWorld().post('/v1/runs', good, key)
    expect([answer.status, JSON.parse(answer.text).code]).toEqual([400, 'bad_request'])
  })
})

/**
 * Counts what a request asks of the ports, and repeats it with a crash before and after each of these calls: so between
 * any two writes, too.
 * @returns how many writes there are in all
 */
async function crashAtEach(
  request: (world: World) => Promise<() => ReturnType<World['post']>>,
  check: (world: World, answer: { status: number; text: string }) => Promise<void>,
  good = 202,
): Promise<number> {
  const count = async () => {
    const world = openWorld()
    const send = await request(world)
    const [calls, writes] = [world.calls(), world.writes()]
    await send()
    return { calls: world.calls() - calls, writes: world.writes() - writes }
  }
  const { calls, writes } = await count()
  for (const how of ['before', 'after'] as const) {
    for (let n = 1; n <= calls; n++) {
      const world = openWorld()
      const send = await request(world)
      world.how = how
      world.failAt = world.calls() + n
      // a run is a fact once it is put: what fails behind that is not told, and the sweep goes on with it
      expect([500, good]).toContain((await send()).status)
      expect([how, n, world.calls()]).toEqual([how, n, expect.toSatisfy((seen: number) => seen >= world.failAt)])
      // the caller comes back when the first request can no longer be at work
      time.ahead = 5_000
      const again = await send()
      expect([how, n, again.status, again.text]).toEqual([how, n, good, expect.anything()])
      await check(world, again)
      expect(await send()).toEqual(again)
      time.ahead = 0
    }
  }
  return writes
}

/** What a sweep does when an event is so old that it must be lost. */
async function goOn(world: World, answer: { text: string }): Promise<void> {
  time.ahead += 200_000
  await sweepRun(world.engine.ctx, { tenant: 'local', runId: idOf(answer) })
  await world.engine.invoker.drain()
}

describe('after a crash between any two writes the retry finds what there is', () => {
  test('of a new run', async () => {
    const writes = await crashAtEach(
      async (world) => () => world.post('/v1/runs', good, 'k'),
      async (world, answer) => {
        await goOn(world, answer)
        const runs = await runsOf(world)
        expect(runs.map((r) => [r.runId, r.status])).toEqual([[idOf(answer), 'completed']])
        expect(world.engine.scripted.bill).toHaveLength(1)
      },
    )
    // record, place, definition, input, run, root, answer
    expect(writes).toBe(7)
  })

  test('of an input', async () => {
    const writes = await crashAtEach(
      async (world) => {
        const runId = idOf(await world.post('/v1/runs', good, undefined))
        await world.engine.invoker.drain()
        return () => world.post(`/v1/runs/${runId}/input`, { input: 'and on' }, 'k')
      },
      async (world, answer) => {
        await goOn(world, answer)
        const run = await world.engine.ctx.store.getRun({ tenant: 'local', runId: idOf(answer) })
        expect([run?.round, run?.status]).toEqual([2, 'completed'])
        expect(world.engine.scripted.bill).toHaveLength(2)
      },
    )
    // record, place, input, run, root, answer
    expect(writes).toBe(6)
  })

  test('of a cancel', async () => {
    await crashAtEach(
      async (world) => {
        const runId = idOf(await world.post('/v1/runs', { ...good, team: 'slow' }, undefined))
        return () => world.post(`/v1/runs/${runId}/cancel`, {}, 'k')
      },
      async (world, answer) => {
        await goOn(world, answer)
        const run = await world.engine.ctx.store.getRun({ tenant: 'local', runId: idOf(answer) })
        expect(run?.status).toBe('cancelled')
      },
    )
  })

  test('of an approval', async () => {
    const writes = await crashAtEach(
      async (world) => {
        const runId = idOf(await world.post('/v1/runs', { ...good, team: 'asking' }, undefined))
        await world.engine.invoker.drain()
        const { items } = await world.engine.ctx.store.listRunApprovals({ tenant: 'local', runId }, { limit: 1 })
        const path = `/v1/runs/${runId}/approvals/${approvalIdOf(items[0]!)}`
        return () => world.post(path, { decision: 'approve' }, 'k')
      },
      async (world, answer) => {
        await goOn(world, answer)
        const run = await world.engine.ctx.store.getRun({ tenant: 'local', runId: idOf(answer) })
        expect(run?.status).toBe('completed')
        expect(world.engine.scripted.bill).toHaveLength(2)
      },
    )
    // record, due time of the run, decision, question off, answer
    expect(writes).toBe(6)
  })

  test('of a schedule', async () => {
    const writes = await crashAtEach(
      async (world) => () =>
        world.post('/v1/schedules', { ...good, rate: '1 day', budget: { tokens: 1_000_000 } }, 'k'),
      async (world, answer) => {
        const all = await world.engine.ctx.store.listSchedules('local')
        expect(all.map(({ id, state }) => [id, state.outside])).toEqual([[JSON.parse(answer.text).scheduleId, true]])
        expect([...world.outside]).toEqual(all.map(({ id }) => id))
      },
      201,
    )
    // record, item, ticked from outside, answer
    expect(writes).toBe(4)
  })

  test('a cancel that is sent again does not stop a later round', async () => {
    const world = openWorld()
    const runId = idOf(await world.post('/v1/runs', good, undefined))
    await world.engine.invoker.drain()
    const cancel = () => world.post(`/v1/runs/${runId}/cancel`, {}, 'k')
    // the record is put, and what comes after it is not
    world.failAt = world.calls() + 3
    await cancel()
    await world.post(`/v1/runs/${runId}/input`, { input: 'and on' }, undefined)
    time.ahead = 5_000
    expect((await cancel()).status).toBe(202)
    await world.engine.invoker.drain()
    const run = await world.engine.ctx.store.getRun({ tenant: 'local', runId })
    expect([run?.round, run?.status]).toEqual([2, 'completed'])
  })
})
