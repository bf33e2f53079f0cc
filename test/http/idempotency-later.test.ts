/** Idempotency-Key, when much has changed between two requests: what was deleted is not told, and nothing else is refused. */
import { afterEach, describe, expect, test } from 'vitest'
import { approvalIdOf } from '../../src/domain/approval.ts'
import { deleteRun } from '../../src/engine/delete-run.ts'
import { clock, closeWorlds, good, idOf, openWorld, runsOf, time, type World } from './once-world.ts'

afterEach(closeWorlds)

describe('what was deleted since is not told again', () => {
  /** Starts a run and waits for it, then asks something of it. */
  const after = async (
    world: World,
    team: string,
    what: string | ((runId: string) => Promise<string>),
    body: object,
  ) => {
    const runId = idOf(await world.post('/v1/runs', { ...good, team }, undefined))
    await world.engine.invoker.drain()
    const path = `/v1/runs/${runId}/${typeof what === 'string' ? what : await what(runId)}`
    return { runId, send: () => world.post(path, body, 'k') }
  }
  const approval = (world: World) => async (runId: string) => {
    const { items } = await world.engine.ctx.store.listRunApprovals({ tenant: 'local', runId }, { limit: 1 })
    return `approvals/${approvalIdOf(items[0]!)}`
  }
  const receipts = [{ responseId: 'x', inputTokens: 1, outputTokens: 1 }]

  test.each<[string, (world: World) => Promise<{ runId: string; send: () => ReturnType<World['post']> }>]>([
    [
      'its start',
      async (world) => {
        const send = () => world.post('/v1/runs', good, 'k')
        return { runId: idOf(await send()), send }
      },
    ],
    ['an input', (world) => after(world, 'echo', 'input', { input: 'and on' })],
    ['a retry', (world) => after(world, 'refused', 'retry', {})],
    ['a cancel', (world) => after(world, 'echo', 'cancel', {})],
    ['an approval', (world) => after(world, 'asking', approval(world), { decision: 'approve' })],
    ['receipts', (world) => after(world, 'echo', 'receipts', { receipts })],
  ])('of a run: %s', async (_what, prepare) => {
    const world = openWorld()
    const { runId, send } = await prepare(world)
    expect([200, 202]).toContain((await send()).status)
    await world.engine.invoker.drain()
    await deleteRun(world.engine.ctx, { tenant: 'local', runId })
    for (let i = 0; i < 2; i++) {
      const { status, text } = await send()
      expect([status, JSON.parse(text).code]).toEqual([404, 'unknown_run'])
    }
    expect(await runsOf(world)).toEqual([])
  })

  test('a start whose answer was never kept does not start another run', async () => {
    const other = openWorld()
    await other.post('/v1/runs', good, 'k')
    const world = openWorld()
    // the answer comes last
    world.failAt = other.calls()
    expect((await world.post('/v1/runs', good, 'k')).status).toBe(500)
    await world.engine.invoker.drain()
    const [run] = await runsOf(world)
    await deleteRun(world.engine.ctx, run!)
    time.ahead = 5_000
    for (let i = 0; i < 2; i++) expect((await world.post('/v1/runs', good, 'k')).status).toBe(404)
    expect(await runsOf(world)).toEqual([])
    expect(world.engine.scripted.bill).toHaveLength(1)
  })

  test('of a schedule', async () => {
    const world = openWorld()
    const send = () => world.post('/v1/schedules', { ...good, rate: '1 day', budget: { tokens: 1_000_000 } }, 'k')
    const { scheduleId } = JSON.parse((await send()).text)
    await world.engine.ctx.store.deleteSchedule({ tenant: 'local', id: scheduleId })
    expect(JSON.parse((await send()).text).code).toBe('unknown_schedule')
    expect(await world.engine.ctx.store.listSchedules('local')).toEqual([])
  })
})

describe('what has changed since keeps nobody from his answer', () => {
  const soon = () => {
    const at = new Date(clock.now() + 3_600_000)
    const [month, day] = [at.getUTCMonth() + 1, at.getUTCDate()]
    const cron = `${at.getUTCMinutes()} ${at.getUTCHours()} ${day} ${month} ? ${at.getUTCFullYear()}`
    return { ...good, cron, budget: { tokens: 1_000_000 } }
  }

  test('a schedule whose one time has passed', async () => {
    const world = openWorld()
    const body = soon()
    const first = await world.post('/v1/schedules', body, 'k')
    expect(first.status).toBe(201)
    time.ahead = 2 * 3_600_000
    expect(await world.post('/v1/schedules', body, 'k')).toEqual(first)
    expect((await world.post('/v1/schedules', body, 'other')).status).toBe(400)
  })

  test('one that was made, and whose answer was never kept', async () => {
    const body = soon()
    const other = openWorld()
    await other.post('/v1/schedules', body, 'k')
    const world = openWorld()
    world.failAt = other.calls()
    expect((await world.post('/v1/schedules', body, 'k')).status).toBe(500)
    const [made] = await world.engine.ctx.store.listSchedules('local')
    time.ahead = 2 * 3_600_000
    const again = await world.post('/v1/schedules', body, 'k')
    expect([again.status, JSON.parse(again.text).scheduleId]).toEqual([201, made!.id])
    expect(await world.engine.ctx.store.listSchedules('local')).toHaveLength(1)
  })

  test.each([
    ['/v1/runs', good, 202],
    ['/v1/schedules', { ...good, rate: '1 day', budget: { tokens: 1_000_000 } }, 201],
  ])('the team of %s', async (path, body, status) => {
    const world = openWorld()
    const first = await world.post(path, body, 'k')
    expect(first.status).toBe(status)
    world.forgetTeams()
    expect((await world.post(path, body, 'other')).status).toBe(404)
    expect(await world.post(path, body, 'k')).toEqual(first)
  })
})
