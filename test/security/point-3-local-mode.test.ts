/** Local mode: loopback only, and no web page can spend money by posting to a port, whatever it makes a browser send. */
import { request } from 'node:http'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Local, startLocal } from '../../src/local.ts'

let local: Local
let port: number
beforeAll(async () => {
  local = await startLocal({ port: 0, teamsDir: 'test/offline/teams', dataDir: null, env: {} })
  port = Number(new URL(local.url).port)
})
afterAll(() => local.stop())

/** As a browser would send it; fetch would not let us set Host and Origin. */
const send = (headers: { readonly [name: string]: string }, body = JSON.stringify({ team: 'fan-out', input: 'Go' })) =>
  new Promise<number>((resolve, reject) => {
    const req = request({ host: '127.0.0.1', port, path: '/v1/runs', method: 'POST', headers }, (res) => {
      res.resume()
      resolve(res.statusCode!)
    })
    req.on('error', reject)
    req.end(body)
  })
const json = { 'content-type': 'application/json' }
const runs = async () => ((await (await fetch(`${local.url}/v1/runs`)).json()) as { runs: unknown[] }).runs.length

test.each<[what: string, headers: { [name: string]: string }, status: number]>([
  ['a page of another site', { ...json, origin: 'https://evil.example' }, 403],
  ['a page in a frame without an origin', { ...json, origin: 'null' }, 403],
  ['a page of another port of this machine', { ...json, origin: 'http://127.0.0.1:1' }, 403],
  ['a page whose name points here (rebinding)', { ...json, host: 'evil.example' }, 403],
  ['that, with an origin that fits', { ...json, host: 'evil.example', origin: 'http://evil.example' }, 403],
  ['a request that a browser says is from elsewhere', { ...json, 'sec-fetch-site': 'cross-site' }, 403],
  ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
  ['a form with a file', { 'content-type': 'multipart/form-data; boundary=x' }, 415],
  ['a form as text, which needs no preflight', { 'content-type': 'text/plain;application/json' }, 415],
  ['no type at all', {}, 415],
])('%s starts nothing', async (_what, headers, status) => {
  const before = await runs()
  expect(await send(headers)).toBe(status)
  expect(await runs()).toBe(before)
})

test('what a user runs on this machine starts something: the checks can fail', async () => {
  expect(await send(json)).toBe(202)
  await local.invoker.drain()
})

test('no answer lets a page of another site read it', async () => {
  const preflight = await fetch(`${local.url}/v1/runs`, {
    method: 'OPTIONS',
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  })
  expect(preflight.ok).toBe(false)
  for (const response of [preflight, await fetch(`${local.url}/v1/runs`)])
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
})

test('it listens on no address that others can reach', async () => {
  const others = Object.values(networkInterfaces())
    .flat()
    .filter((i) => i && !i.internal && i.family === 'IPv4')
  for (const { address } of others as { address: string }[]) {
    const reached = await new Promise<boolean>((resolve) => {
      const socket = connect({ host: address, port, timeout: 2_000 })
      const done = (answer: boolean) => {
        socket.destroy()
        resolve(answer)
      }
      socket
        .on('connect', () => done(true))
        .on('error', () => done(false))
        .on('timeout', () => done(false))
    })
    expect([address, reached]).toEqual([address, false])
  }
  expect(new URL(local.url).hostname).toBe('127.0.0.1')
})
