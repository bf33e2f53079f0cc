/**
 * Random requests, made from the OpenAPI document: some are valid and must succeed, the others are hostile and must be
 * refused or answered as documented. Everything follows from the seed.
 */
import { createApp } from '../../src/http/app.ts'
import { guardLocal } from '../../src/http/local-guard.ts'
import { openApiDocument } from '../../src/http/openapi/document.ts'
import type { RunView } from '../../src/http/views/run.ts'
import { memoryTable } from '../../src/store/memory-table.ts'
import { parseTeam } from '../../src/team/parse-team.ts'
import { randomFrom } from '../simulator/random.ts'
import { testEngine } from '../support/engine.ts'
import { TEAMS } from './contract.ts'
import { type Documented, readDocument } from './document.ts'

export interface FuzzReport {
  readonly requests: number
  readonly valid: number
  /** answers by status, of valid and of hostile requests */
  readonly statuses: { readonly valid: Counts; readonly hostile: Counts }
  /** hostile requests by what was done to them */
  readonly kinds: Counts
  /** operations that a valid request has reached */
  readonly operations: Counts
  /** ms of the slowest answer */
  readonly slowestMs: number
  readonly wrong: readonly string[]
}
type Counts = { [name: string]: number }

const team = (name: string) => parseTeam(TEAMS[name]!, { file: `${name}.yaml` }).team!

/** An answer that takes longer is a hang. */
const HANG_MS = 20_000
const POOL = 30
// biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
type Any = any

interface Sent {
  readonly operation: Documented
  readonly path: string
  readonly method: string
  readonly headers: { [name: string]: string }
  readonly body?: string | Uint8Array<ArrayBuffer>
  /** what was done to it; undefined: it is valid */
  readonly kind?: string
  readonly runId?: string
}

export async function fuzz(options: { seed: number; requests: number }): Promise<FuzzReport> {
  const { next: random, below, pick } = randomFrom(options.seed)
  const doc = readDocument(JSON.parse(JSON.stringify(openApiDocument())))
  const operations = doc.operations.filter((o) => o.answers.some(({ status }) => status < 300))
  const teams = ['good', 'asking', 'failing'].map(team)
  const engine = testEngine({ table: memoryTable(), teams })
  const app = createApp(engine.ctx, { tenantOf: () => 'local', guard: guardLocal })
  const pool: RunView[] = []
  /** its task fails again and again, so there is always something to try again */
  let failing!: RunView
  const scheduleIds: string[] = []
  /** tool calls that nobody has decided about */
  const asked: { runId: string; approvalId: string }[] = []
  const cursors = new Map<string, string>()
  const report = {
    requests: 0,
    valid: 0,
    statuses: { valid: {} as Counts, hostile: {} as Counts },
    kinds: {} as Counts,
    operations: {} as Counts,
    slowestMs: 0,
    wrong: [] as string[],
  }
  const count = (counts: Counts, name: string | number) => {
    counts[name] = (counts[name] ?? 0) + 1
  }

  const letters = () =>
    Array.from({ length: 1 + below(20) }, () =>
      pick(['a', 'Z', '0', ' ', 'ß', '漢', '😀', '"', '\\', '\n', '<', '\u0000']),
    ).join('')
  const filled = () => `x${letters()}`

  /** A value that fits a schema, as far as the schema says it. */
  function valueFor(schema: Any, name = ''): Any {
    if (name === 'usd') return pick(['2.50', '12', 3, 0.5])
    // as many as no run of this test needs: one that is out of its budget takes no input
    if (name === 'tokens') return 1_000_000 + below(1_000_000)
    const choices = schema.oneOf ?? (schema.type === 'object' && schema.anyOf)
    if (choices) return objectOf(schema, pick(choices))
    if (schema.enum) return pick(schema.enum)
    const type = Array.isArray(schema.type) ? pick(schema.type) : schema.type
    if (name === 'team') return 'good'
    if (name === 'agent') return 'root'
    if (name === 'cron') return pick(['0 3 * * ? *', '0/5 8-18 ? * MON-FRI *'])
    if (name === 'rate') return pick(['5 minutes', '1 day'])
    if (name === 'timezone') return pick(['UTC', 'Europe/Berlin'])
    if (name === 'groupBy') return pick(['team', 'agent,model', 'day,outcome', 'tag:k1,team'])
    if (schema.format === 'date') return '2026-01-31'
    if (schema.format === 'date-time') return '2026-01-31T12:00:00Z'
    if (type === 'string') return filled()
    if (type === 'integer') return (schema.minimum ?? 0) + below(Math.min(schema.maximum ?? 100, 100))
    if (type === 'array') return Array.from({ length: 1 + below(3) }, () => valueFor(schema.items))
    if (type === 'object') return objectOf(schema)
    return null
  }
  function objectOf(schema: Any, must: Any = {}): Any {
    const never = Object.entries(must.properties ?? {}).flatMap(([key, of]) => (of === false ? [key] : []))
    const forbidden = new Set<string>([...(must.not?.required ?? []), ...never])
    const required = new Set<string>([...(schema.required ?? []), ...(must.required ?? [])])
    const choices = new Set<string>((schema.oneOf ?? []).flatMap((o: Any) => o.required ?? []))
    const out: Any = {}
    for (const [key, of] of Object.entries<Any>(schema.properties ?? {})) {
      if (forbidden.has(key) || (!required.has(key) && (choices.has(key) || random() < 0.5))) continue
      out[key] = valueFor(of, key)
    }
    // a receipt says how its counts belong together in words only
    if ('inputTokens' in out)
      return { responseId: filled(), inputTokens: out.inputTokens, outputTokens: out.outputTokens }
    if (schema.additionalProperties?.type === 'string' && random() < 0.7) out[`k${below(5)}`] = letters()
    return out
  }

  function validRequest(): Sent {
    const operation = pick(operations)
    const run = operation.id === 'retryRun' ? failing : pick(pool)
    const values: Counts | Any = { runId: run.runId, sessionId: run.rootSessionId, name: 'good', id: scheduleIds[0]! }
    if (operation.id === 'approve') Object.assign(values, asked[0])
    let path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => values[name])
    const query = new URLSearchParams()
    for (const p of operation.parameters) {
      if (p.in !== 'query' || random() < 0.5) continue
      if (p.name === 'cursor' || p.name === 'session') continue
      query.set(p.name, String(valueFor(p.schema, p.name)))
    }
    const cursor = cursors.get(path)
    if (operation.parameters.some((p) => p.name === 'cursor') && cursor !== undefined && query.size === 0)
      query.set('cursor', cursor)
    if (query.size > 0) path += `?${query}`
    const headers: { [name: string]: string } = {}
    if (operation.method === 'POST' && random() < 0.3) headers['idempotency-key'] = `k${report.requests}`
    if (operation.id === 'streamEvents' && random() < 0.5) path += `?session=${run.rootSessionId}`
    if (!operation.body || (['cancelRun', 'retryRun'].includes(operation.id) && random() < 0.5))
      return { operation, path, method: operation.method, headers, runId: run.runId }
    headers['content-type'] = pick(['application/json', 'application/json; charset=utf-8'])
    const body = JSON.stringify(operation.id === 'retryRun' ? {} : valueFor(operation.body))
    return { operation, path, method: operation.method, headers, body, runId: run.runId }
  }

  type Change = (good: Sent) => Partial<Sent> | undefined
  /** Only of requests that have a body. */
  const onBody =
    (make: (text: string, good: Sent) => string | Uint8Array<ArrayBuffer> | undefined): Change =>
    (good) => {
      const body = good.body === undefined ? undefined : make(String(good.body), good)
      return body === undefined ? undefined : { body }
    }
  const prefixed = (first: string) => onBody((text) => text.replace('{', text === '{}' ? `{${first}` : `{${first},`))
  const withHeader =
    (name: string, ...values: readonly string[]): Change =>
    (good) => ({ headers: { ...good.headers, [name]: pick(values) } })
  const bare = (good: Sent) => good.path.split('?')[0]!

  const HOSTILE: { readonly [kind: string]: Change } = {
    oversized: onBody(() => (random() < 0.1 ? `{"input":"${'x'.repeat(1_000_000 + below(1_000_000))}"}` : undefined)),
    deep: onBody(() => pick(['[', '{"a":']).repeat(33 + below(20_000))),
    'deep inside': onBody(() => `{"tags":${'['.repeat(40)}${']'.repeat(40)}}`),
    'invalid UTF-8': onBody((text) => {
      const bytes = Buffer.from(text)
      bytes[1 + below(Math.max(bytes.length - 2, 1))] = pick([0xff, 0xc0, 0xf8])
      return new Uint8Array(bytes)
    }),
    'duplicate keys': prefixed('"team":"good","team":"good"'),
    __proto__: prefixed('"__proto__":{"isAdmin":true}'),
    'constructor and prototype': prefixed('"constructor":{"prototype":{}}'),
    truncated: onBody((text) => text.slice(0, below(text.length))),
    garbage: onBody(() => new Uint8Array(Array.from({ length: 1 + below(200) }, () => below(256)))),
    'another type': onBody((text) => {
      const value = JSON.parse(text)
      const keys = Object.keys(value)
      const others = [null, 7, -1, 1.5, true, [], {}, '', ' ', [[]], { a: 1 }, '\ud800']
      if (keys.length > 0) value[pick(keys)] = pick(others)
      return JSON.stringify(value)
    }),
    'a number beyond': onBody((text) =>
      text.replace('{', `{"maxConcurrency":${pick(['1e400', '-0', '1e-9', '9'.repeat(400)])},`),
    ),
    'an unknown field': onBody((text) => JSON.stringify({ ...JSON.parse(text), [letters()]: letters() })),
    'another media type': (g) =>
      g.body === undefined
        ? undefined
        : withHeader('content-type', 'text/plain', '', 'application/json; charset=utf-16', 'multipart/form-data')(g),
    'a content encoding': (g) => (g.body === undefined ? undefined : withHeader('content-encoding', 'gzip', 'br')(g)),
    'a bad query': (g) => {
      const odd = [
        'limit=0',
        'limit=1e9',
        'limit=%00',
        'a[b]=c',
        'limit=1&limit=2',
        '%',
        '=',
        'exact=maybe',
        'status=x',
      ]
      return { path: `${bare(g)}?${pick([...odd, `team=${'y'.repeat(3_000)}`, '__proto__=1'])}` }
    },
    'a bad cursor': (g) => {
      const odd = [letters(), 'A'.repeat(5_000), ...cursors.values()]
      return { path: `${bare(g)}?cursor=${encodeURIComponent(pick(odd))}` }
    },
    'a bad id': (g) => {
      const odd = [letters(), '..', '%2e%2e', 'x'.repeat(5_000), 'T#other#RUN', '01K74V2QHG0000000000000007', '\u0000']
      return { path: bare(g).replace(g.runId ?? 'good', encodeURIComponent(pick(odd))) }
    },
    'a raw path': () => {
      const odd = ['runs/%', 'runs/%ff', 'runs//', 'runs/%00/sessions', '%2e%2e/%2e%2e/etc', 'runs/x/y/z', '']
      return { path: `/v1/${pick(odd)}` }
    },
    'another method': (g) => ({
      method: pick(['PATCH', 'PUT', 'OPTIONS', 'DELETE', 'PROPFIND']),
      path: bare(g)
        .replace(g.runId ?? '-', 'x')
        .replace(scheduleIds[0] ?? '-', 'x'),
    }),
    'a bad key': withHeader('idempotency-key', '', ' ', 'x'.repeat(300), 'ä', 'a b'),
    'another origin': withHeader('origin', 'https://evil.example', 'null', 'http://127.0.0.1.evil.example'),
    'another host': withHeader('host', 'evil.example', '169.254.169.254', 'localhost.evil'),
  }
  const kinds = Object.keys(HOSTILE)

  function hostileRequest(): Sent {
    for (;;) {
      const good = validRequest()
      // nobody's run is to be deleted by half a request
      if (good.operation.method === 'DELETE') continue
      const kind = pick(kinds)
      const change = HOSTILE[kind]!(good)
      if (change) return { ...good, ...change, kind }
    }
  }

  async function send(sent: Sent): Promise<Response> {
    const init = { method: sent.method, headers: sent.headers, ...(sent.body !== undefined && { body: sent.body }) }
    let timer: NodeJS.Timeout | undefined
    const hang = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('it hangs')), HANG_MS)
    })
    const began = performance.now()
    try {
      return await Promise.race([app.request(sent.path, init), hang])
    } finally {
      clearTimeout(timer)
      report.slowestMs = Math.max(report.slowestMs, Math.round(performance.now() - began))
    }
  }

  async function refill(): Promise<void> {
    const headers = { 'content-type': 'application/json' }
    if (!failing) {
      const body = JSON.stringify({ team: 'failing', tasks: [{ agent: 'root', task: filled() }] })
      failing = (await (await app.request('/v1/runs', { method: 'POST', headers, body })).json()) as RunView
    }
    while (pool.length < POOL) {
      const body = JSON.stringify({ team: 'good', input: filled(), budget: { usd: '2', tokens: 1_000_000 } })
      const response = await app.request('/v1/runs', { method: 'POST', headers, body })
      pool.push((await response.json()) as RunView)
    }
    while (scheduleIds.length < 2) {
      const body = JSON.stringify({ rate: '1 day', team: 'good', input: filled(), budget: { tokens: 1_000_000 } })
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
      scheduleIds.push(((await (await app.request('/v1/schedules', init)).json()) as Any).scheduleId)
    }
    while (asked.length < 2) {
      const init = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"team":"asking","input":"x"}',
      }
      const begun = (await (await app.request('/v1/runs', init)).json()) as Any
      if (begun.runId === undefined) throw new Error(`no run that asks could be started: ${JSON.stringify(begun)}`)
      const { runId } = begun
      await engine.invoker.drain()
      const { approvals } = (await (await app.request(`/v1/runs/${runId}/approvals`)).json()) as Any
      asked.push({ runId, approvalId: approvals[0].approvalId })
    }
    while (scheduleIds.length > 20) await app.request(`/v1/schedules/${scheduleIds.pop()}`, { method: 'DELETE' })
    await engine.invoker.drain()
  }

  async function one(): Promise<void> {
    const sent = random() < 0.4 ? validRequest() : hostileRequest()
    const where = `${sent.method} ${sent.path.slice(0, 120)} (${sent.kind ?? 'valid'}): ${sent.body ? String(sent.body).slice(0, 200) : ''}`
    report.requests++
    if (!sent.kind) report.valid++
    else count(report.kinds, sent.kind)
    let response: Response
    let text: string
    try {
      response = await send(sent)
      text = await response.text()
    } catch (e) {
      return void report.wrong.push(`${where}: ${e}`)
    }
    count(sent.kind ? report.statuses.hostile : report.statuses.valid, response.status)
    // 501 says that something is not there in this version
    if (response.status >= 500 && response.status !== 501)
      report.wrong.push(`${where}: ${response.status} ${text.slice(0, 200)}`)
    if (!sent.kind) {
      count(report.operations, sent.operation.id)
      if (response.status >= 300) report.wrong.push(`${where}: ${response.status} ${text.slice(0, 200)}`)
      const next = /^\{.*"next":"([\w-]+)"\}$/s.exec(text)?.[1]
      if (next && !sent.path.includes('?')) cursors.set(sent.path, next)
      if (sent.operation.id === 'deleteSchedule') scheduleIds.shift()
      if (sent.operation.id === 'createSchedule') scheduleIds.push(JSON.parse(text).scheduleId)
      if (sent.operation.id === 'deleteRun')
        pool.splice(
          pool.findIndex((r) => r.runId === sent.runId),
          1,
        )
    }
    // whatever came of it, it may be decided now
    if (sent.operation.id === 'approve') {
      const used = asked.shift()
      // nobody decides about it any more, and a run that waits keeps its place
      if (used && sent.kind) await app.request(`/v1/runs/${used.runId}/cancel`, { method: 'POST' })
    }
    if (isFor(sent)) for (const w of doc.check(sent.operation, response, text)) report.wrong.push(`${where}: ${w}`)
    // the next request finds runs that have ended
    if (sent.method === 'POST' || sent.method === 'DELETE') await refill()
  }

  /** Whether it reaches its operation: dots in a path lead elsewhere. */
  function isFor({ operation, method, path }: Sent): boolean {
    if (method !== operation.method) return false
    const parts = new URL(path, 'http://localhost').pathname.split('/')
    const named = operation.path.split('/')
    return (
      parts.length === named.length && named.every((n, i) => (n.startsWith('{') ? parts[i] !== '' : n === parts[i]))
    )
  }

  await refill()
  for (let i = 0; i < options.requests && report.wrong.length < 20; i++) await one()
  if (({} as Any).isAdmin !== undefined) report.wrong.push('the prototype of all objects was changed')
  await engine.invoker.close()
  return report
}
