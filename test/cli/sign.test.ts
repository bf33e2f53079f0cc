/** `--auth iam`: requests signed with SigV4, checked by what verifies them, and a bearer token as the other way. */
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createClient } from '../../src/cli/client.ts'
import { requestSigner } from '../../src/cli/sign.ts'
import { say } from './terminal.ts'

const KEYS = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const TOKEN = 'session token/+='
const REGION = 'eu-central-1'

interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

let server: Server
let url: string
const seen: Seen[] = []
beforeAll(async () => {
  server = createServer(async (req, res) => {
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part as Buffer)
    seen.push({ method: req.method!, url: req.url!, headers: req.headers, body: Buffer.concat(parts).toString() })
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ runs: [], next: null }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  seen.length = 0
})
afterAll(() => {
  vi.unstubAllEnvs()
  server.close()
})

/** The signature as AWS computes it from what has arrived (Signature Version 4), for our own key. */
function verify(r: Seen): boolean {
  const [, credential, names, signature] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      r.headers.authorization ?? '',
    ) ?? []
  if (!credential || !names) return false
  const [key, day, region, service] = credential.split('/')
  const { pathname, searchParams } = new URL(r.url, url)
  const encode = (t: string) =>
    encodeURIComponent(t).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const query = [...searchParams]
    .map(([k, v]) => `${encode(k)}=${encode(v)}`)
    .sort()
    .join('&')
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const canonical = [
    r.method,
    pathname.split('/').map(encode).join('/'),
    query,
    ...names.split(';').map((n) => `${n}:${String(r.headers[n]).trim().replace(/ +/g, ' ')}`),
    '',
    names,
    hash(r.body),
  ].join('\n')
  const date = String(r.headers['x-amz-date'])
  const toSign = ['AWS4-HMAC-SHA256', date, `${day}/${region}/${service}/aws4_request`, hash(canonical)].join('\n')
  const mac = (secret: string | Buffer, text: string) => createHmac('sha256', secret).update(text).digest()
  const signing = [day!, region!, service!, 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => mac(secret, part),
    `AWS4${KEYS.secretAccessKey}`,
  )
  const expected = createHmac('sha256', signing).update(toSign).digest('hex')
  return key === KEYS.accessKeyId && region === REGION && service === 'execute-api' && expected === signature
}

describe('--auth iam', () => {
  beforeAll(() => {
    // the SDK's credential chain looks into the process itself
    vi.stubEnv('AWS_ACCESS_KEY_ID', KEYS.accessKeyId)
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', KEYS.secretAccessKey)
    vi.stubEnv('AWS_SESSION_TOKEN', TOKEN)
  })

  test('signs what a command sends, with the credentials at hand', async () => {
    const { code } = await say(['list', '--url', url, '--auth', 'iam'], { env: { AWS_REGION: REGION } })
    expect(code).toBe(0)
    expect(seen).toHaveLength(1)
    expect(seen.map(verify)).toEqual([true])
    expect(seen[0]!.headers['x-amz-security-token']).toBe(TOKEN)
    expect(seen[0]!.url).toContain('limit=')
  })

  test('signs the body and the query too: one that was changed on the way is found', async () => {
    const sign = requestSigner({ url, env: { AWS_REGION: REGION }, credentials: async () => KEYS })
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ team: 'crew', input: 'Grüße, 100 %' })
    await fetch(await sign(new Request(`${url}/v1/runs?a=b%20c&a=d&team=x%2Fy`, { method: 'POST', headers, body })))
    expect(seen.map(verify)).toEqual([true])
    expect(seen[0]!.body).toBe(body)
    expect(verify({ ...seen[0]!, body: '{}' })).toBe(false)
    expect(verify({ ...seen[0]!, url: '/v1/runs' })).toBe(false)
    expect(verify({ ...seen[0]!, method: 'PUT' })).toBe(false)
  })

  test('sends no token beside the signature', async () => {
    await say(['list', '--url', url, '--auth', 'iam'], { env: { AWS_REGION: REGION, SUBLEDGER_TOKEN: 'secret' } })
    expect(JSON.stringify(seen)).not.toContain('secret')
  })

  test("takes the region from the gateway's address", async () => {
    const sign = requestSigner({
      url: 'https://abc123.execute-api.ap-south-1.amazonaws.com',
      env: { AWS_REGION: REGION },
      credentials: async () => KEYS,
    })
    const signed = await sign(new Request('https://abc123.execute-api.ap-south-1.amazonaws.com/v1/runs'))
    expect(signed.headers.get('authorization')).toContain('/ap-south-1/execute-api/aws4_request')
  })
})

test.each([
  ['no region', ['--auth', 'iam'], {}, /set AWS_REGION/],
  ['another way', ['--auth', 'basic'], {}, /--auth is "basic": it can be iam/],
])('%s is told', async (_what, more, env, message) => {
  const said = await say(['list', '--url', url, ...more], { env })
  expect([said.code, said.err]).toEqual([2, expect.stringMatching(message)])
  expect(seen).toEqual([])
})

test('--auth without an address is told', async () => {
  expect(await say(['list', '--auth', 'iam'])).toMatchObject({ code: 2, err: expect.stringContaining('--url') })
})

test('a token goes into the header, and to nobody who could be overheard', async () => {
  expect((await say(['list', '--url', url], { env: { SUBLEDGER_TOKEN: 'abc' } })).code).toBe(0)
  expect(seen[0]!.headers.authorization).toBe('Bearer abc')
  const said = await say(['list', '--url', 'http://api.example'], { env: { SUBLEDGER_TOKEN: 'abc' } })
  expect([said.code, said.err]).toEqual([2, expect.stringContaining('without https')])
})

describe('a secret that cannot be sent is refused, and is in nothing that is said', () => {
  const refused = async (argv: readonly string[], env: Record<string, string>, secret: string) => {
    const said = await say(['list', ...argv], { env })
    expect([said.code, said.out, said.err.split('\n').length]).toEqual([2, '', 2])
    expect(said.err).not.toContain(secret)
    expect(seen).toEqual([])
  }

  test.each(['sk-secret\ntoken', 'sk-secret token', 'sk-secret€', 'sk-secret\u0000', ' sk-secret'])(
    'the token %j',
    async (SUBLEDGER_TOKEN) => {
      await refused(['--url', url], { SUBLEDGER_TOKEN }, 'sk-secret')
    },
  )

  test.each([
    'http://u:sekret@127.0.0.1:1',
    'https://sekret@api.example',
    'https://u:sekret@',
    'u:sekret@api.example',
    'https://api.example/?key=sekret',
    'https://api.example/#sekret',
    'ftp://u:sekret@api.example',
  ])('the address %s', async (address) => {
    await refused(['--url', address], {}, 'sekret')
    await refused([], { SUBLEDGER_URL: address }, 'sekret')
  })

  test.each(['AWS_ACCESS_KEY_ID', 'AWS_SESSION_TOKEN'])('%s', async (name) => {
    const keys = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'secret', AWS_SESSION_TOKEN: 'session' }
    for (const [key, value] of Object.entries(keys)) vi.stubEnv(key, key === name ? `se\nkret${value}` : value)
    await refused(['--url', url, '--auth', 'iam'], { AWS_REGION: REGION }, 'kret')
    vi.unstubAllEnvs()
  })

  test('a region that is none', async () => {
    await refused(['--url', url, '--auth', 'iam'], { AWS_REGION: 'eu\nkret' }, 'kret')
  })
})

test.each(['/stage', '/stage/', '/a/b%20c//'])('the routes are below the path of an address: %s', async (path) => {
  expect((await say(['list', '--url', url + path])).code).toBe(0)
  expect(seen[0]!.url).toBe(`${path.replace(/\/+$/, '')}/v1/runs?limit=100`)
  const asked: string[] = []
  const fetch = (request: Request) => {
    asked.push(request.url)
    return new Response('')
  }
  const { signal } = new AbortController()
  await createClient(fetch, { baseUrl: url + path })
    .events('/v1/runs/r/events', undefined, signal)
    .next()
  expect(asked).toEqual([`${url}${path.replace(/\/+$/, '')}/v1/runs/r/events`])
})
