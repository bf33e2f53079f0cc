/** The check of a cursor holds no secret, so anybody can make one up: it is refused, or is a place in one's own list. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cursorScope, encodeCursor, packCursor } from '../../src/http/cursor.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { type Api, desk, expectProblem, openApi } from './api.ts'

let api: Api
let run: RunView
beforeAll(async () => {
  // somebody may be asked, so a look at its events reads what was asked
  api = openApi({ teams: [{ ...desk, permissions: { ask: ['nothing'] } }] })
  run = await api.run({ team: 'desk', input: 'go' })
})
afterAll(() => api.close())

const ID = '0123456789abcdefghjk'
const TEXTS = ['x', '', '~', '0', '-1', '\u0000', 'ASK#', `ASK#${ID}#1#1`, 'TURN#', `TURN#${ID}#999999#0`, 'SESSION#x']
const PLACES = ['1.1.-2', '-1.0.-1', '1.0.1', '1000000.0.-1', '9e9.0.0', '١.0.-1', '1.0.-1\n']

describe('a list', () => {
  const lists = (): { [path: string]: string } => ({
    '/v1/runs': cursorScope('runs', 'local', undefined, undefined),
    [`/v1/runs/${run.runId}/sessions`]: cursorScope('sessions', 'local', run.runId),
    [`/v1/runs/${run.runId}/calls`]: cursorScope('calls', 'local', run.runId),
    [`/v1/runs/${run.runId}/approvals`]: cursorScope('approvals', 'local', run.runId),
    [`/v1/runs/${run.runId}/sessions/${run.rootSessionId}/messages`]: cursorScope(
      'messages',
      'local',
      run.runId,
      run.rootSessionId,
    ),
  })

  test.each([...TEXTS, ...PLACES])('none knows the place %j', async (place) => {
    for (const [path, scope] of Object.entries(lists()))
      expectProblem(await api.get(`${path}?cursor=${encodeCursor(scope, place)}`), 400, 'bad_cursor')
  })

  test.each<[string, string]>([
    ['sessions', ID],
    ['calls', `TURN#${ID}#999999#1`],
    ['approvals', `ASK#${ID}#999999#9999`],
    ['messages', '999999.999999.999998'],
    ['messages', '999970.0.-1'],
  ])('of %s goes on from %s, where nothing is', async (name, place) => {
    const [path, scope] = Object.entries(lists()).find(([path]) => path.endsWith(name))!
    expect((await api.get(`${path}?cursor=${encodeCursor(scope, place)}`)).status).toBe(200)
  })
})

describe('the events of a run', () => {
  const events = (place: string, session?: string) => {
    const cursor = packCursor(cursorScope('events', 'local', run.runId, session), place)!
    const query = session === undefined ? '' : `?session=${session}`
    return api.get<string>(`/v1/runs/${run.runId}/events${query}`, { 'last-event-id': cursor })
  }
  const START = '0.1.0.0.0.-1.0'

  test.each([
    ...TEXTS,
    START,
    `${START}||0`,
    `${START}||0|`,
    `${START}||0|1|1`,
    `${START}|${START}|0|0`,
    `${START}||1|0`,
    `${START}||0(|0`,
    `${START}||0)(|0`,
    `${START}||0((3))|0`,
    `${START}||0(4)|0`,
    `${START}||0(:1;)|0`,
    `${START}||${'0('.repeat(101)}${')'.repeat(101)}|0`,
    '3.1.0.0.0.-1.0||0|0',
    '1.1.0.1000000.0.-1.0||0|0',
    '1.1.0.0.0.-2.0||0|0',
  ])('do not go on behind %j', async (place) => {
    expectProblem(await events(place), 400, 'bad_cursor')
  })

  test.each([
    '1.1.0.999999.0.-1.0||0|0',
    '2.1.0.999999.999999.999999.9999999||0|999999999',
    '0.999999999.1.0.0.-1.0||0|0',
    `${START}||0(3:9999999;(3(3)))|0`,
  ])('tell what is behind a place where nobody has been: %s', async (place) => {
    expect((await events(place)).status).toBe(200)
    expect((await events(place.replace('||', `|${START}|`), run.rootSessionId)).status).toBe(200)
  })

  test('a cursor that speaks of more sessions than a run has is refused before they are reckoned', async () => {
    expectProblem(await events(`${START}||0(${'1'.repeat(100_000)})|0`), 400, 'bad_cursor')
    expect((await events(`${START}||0(${'1'.repeat(99_000)})|0`)).status).toBe(200)
  })

  test('one that is unpacked to more than any is, too', async () => {
    const { deflateRawSync } = await import('node:zlib')
    const { createHash } = await import('node:crypto')
    const scope = cursorScope('events', 'local', run.runId, undefined)
    const packed = deflateRawSync('1'.repeat(4_000_000))
    const check = createHash('sha256').update(`${scope}\n`).update(packed).digest('base64url').slice(0, 12)
    const cursor = Buffer.concat([Buffer.from(check), packed]).toString('base64url')
    expect(cursor.length).toBeLessThan(8_000)
    expectProblem(await api.get(`/v1/runs/${run.runId}/events?cursor=${cursor}`), 400, 'bad_cursor')
  })
})
