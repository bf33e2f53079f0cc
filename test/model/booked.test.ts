/**
 * docs/booked.md says what is booked of a call, provider by provider and mishap by mishap. Its tables are what happened
 * here; `UPDATE=1 npx vitest run --project default test/model/booked.test.ts` writes the page.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createModel } from '../../src/model/model.ts'
import type { ModelResult } from '../../src/ports.ts'
import { type ProviderServer, type Reply, refusal, startProviderServer } from '../support/provider-server.ts'
import { env, request } from './call.ts'
import { type Dialect, dialect, half, rerouted, streamed, TEXT, target, watched, whole } from './dialects.ts'

const PAGE = new URL('../../docs/booked.md', import.meta.url)

const PROVIDERS: readonly [dialect: string, title: string][] = [
  ['chat completions at OpenAI', 'OpenAI, chat completions'],
  ['responses', 'OpenAI, responses API'],
  ['openai_compatible', 'Compatible endpoints'],
  ['anthropic', 'Anthropic'],
  ['google', 'Google'],
  ['bedrock', 'Amazon Bedrock'],
]

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

interface Play {
  readonly what: string
  readonly stream: boolean
  reply(d: Dialect): Reply
  /** the caller breaks off in the middle of the answer, or before the request */
  readonly stops?: 'midway' | 'before'
}

const SAID = { reasoning: 'deep', text: TEXT }
const firstHalf = (d: Dialect): Pick<Reply, 'chunks' | 'headers'> => {
  const { chunks, headers } = whole(d.document({ text: TEXT }, true))
  return { chunks: [chunks[0]], headers: headers! }
}

const PLAYS: readonly Play[] = [
  { what: 'whole answer', stream: true, reply: (d) => streamed(d, d.whole(SAID, true)) },
  { what: 'whole answer, usage absent', stream: true, reply: (d) => streamed(d, d.whole(SAID, false)) },
  {
    what: 'broken off by the caller midway',
    stream: true,
    reply: (d) => ({ ...streamed(d, half(d)), ending: 'hang' }),
    stops: 'midway',
  },
  { what: 'connection cut midway', stream: true, reply: (d) => ({ ...streamed(d, half(d)), ending: 'cut' }) },
  { what: 'error inside the 200 stream', stream: true, reply: (d) => streamed(d, [...half(d), d.errorEvent]) },
  { what: 'clean end without the mark that ends it', stream: true, reply: (d) => streamed(d, half(d)) },
  { what: 'one document, though a stream was asked for', stream: true, reply: (d) => whole(d.document(SAID, true)) },
  { what: 'whole answer', stream: false, reply: (d) => whole(d.document(SAID, true)) },
  { what: 'whole answer, usage absent', stream: false, reply: (d) => whole(d.document(SAID, false)) },
  {
    what: 'broken off by the caller midway',
    stream: false,
    reply: (d) => ({ ...firstHalf(d), ending: 'hang' }),
    stops: 'midway',
  },
  { what: 'connection cut midway', stream: false, reply: (d) => ({ ...firstHalf(d), ending: 'cut' }) },
  { what: 'error in a document with status 200', stream: false, reply: (d) => whole(d.errorBody('It broke')) },
  { what: 'clean end in the middle of the document', stream: false, reply: firstHalf },
]

/** The same with every provider, so they are listed once. */
const REFUSALS: readonly Play[] = [
  ...[400, 401, 403, 404, 429, 503, 529].map((status) => ({
    what: `refused with ${status}`,
    stream: true,
    reply: () => refusal(status, 'no'),
  })),
  ...[408, 424, 500, 502, 504].map((status) => ({
    what: `failed with ${status}`,
    stream: true,
    reply: () => refusal(status, 'no'),
  })),
  { what: 'broken off before the request', stream: true, reply: () => refusal(400, 'no'), stops: 'before' },
]

async function perform(d: Dialect, p: Play): Promise<ModelResult> {
  const abort = new AbortController()
  server.reply(p.reply(d))
  const definition = target(d, server, p.stream ? {} : { options: { stream: false } })
  const { fetch, seen } = p.stops === 'midway' ? watched(server, 'are ') : { fetch: rerouted(server), seen: undefined }
  if (p.stops === 'before') abort.abort()
  const result = createModel({ env, fetch }).call(request(definition, { signal: abort.signal }))
  await seen
  if (p.stops === 'midway') abort.abort('stopped')
  await result
  server.clear()
  return result
}

const HEAD = ['what happens', 'the call', 'input', 'cache read', 'cache write', 'output', 'reasoning', 'usage']

function row(what: string, { message, failure, usage: u, usageSource }: ModelResult): string[] {
  const written =
    u.cacheWrite1hTokens > 0 ? `${u.cacheWriteTokens} (${u.cacheWrite1hTokens} for 1 h)` : u.cacheWriteTokens
  const counts = [u.inputTokens, u.cacheReadTokens, written, u.outputTokens, u.reasoningTokens].map(String)
  return [what, message ? 'accepted' : `failed: ${failure!.class}`, ...counts, usageSource]
}

const table = (rows: readonly string[][]): string =>
  [HEAD, HEAD.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

async function rowsOf(d: Dialect, plays: readonly Play[]): Promise<string[][]> {
  const rows: string[][] = []
  for (const p of plays) rows.push(row(p.what, await perform(d, p)))
  return rows
}

async function page(): Promise<string> {
  const parts: string[] = [INTRODUCTION]
  for (const [name, title] of PROVIDERS) {
    const d = dialect(name)
    const [on, off] = [true, false].map((stream) => PLAYS.filter((p) => p.stream === stream))
    parts.push(`## ${title}`, 'Streamed:', table(await rowsOf(d, on!)))
    parts.push('Not streamed (`provider_opts: { stream: false }`):', table(await rowsOf(d, off!)))
  }
  const all: string[][][] = []
  for (const [name] of PROVIDERS) all.push(await rowsOf(dialect(name), REFUSALS))
  for (const rows of all) expect(rows).toEqual(all[0])
  parts.push('## Without an answer', 'The same with every provider:', table(all[0]!))
  return `${parts.join('\n\n')}\n`
}

const INTRODUCTION = `# What is booked of a call

Every model call is a row of the books, also one that brought no answer. This page says what stands in that row, provider
by provider. Its tables are written by \`test/model/booked.test.ts\`, which plays each case over HTTP through the provider's
package and compares: \`UPDATE=1 npx vitest run --project default test/model/booked.test.ts\` writes them again.

- \`inputTokens\` are all input, of which cache reads and cache writes (both lifetimes); \`outputTokens\` are all output, of
  which reasoning. What a provider counts apart is added up where it comes in, and nowhere else.
- **reported**: the provider's own figures, at the end of the answer. **partial**: what it had said when the answer broke
  off; output that had come and was not counted yet is estimated. **estimated**: it had said nothing.
- An estimate is four bytes of text to a token, rounded up. The request of these tables has 34 bytes (9 tokens), the answer
  14 bytes of text and 4 of reasoning; midway 10 bytes (3 tokens) have come.
- A call that was refused before any work cost nothing, and says \`reported\`. Where the provider may have worked (500, a
  broken connection, an error inside an answer) at least the input is booked.
- What an error says of usage is booked, inside a stream and in a document, where it is more than was said before. Of a
  refusal it is booked where it says both input and output: a total alone may be the state of a quota.
- Usage that contradicts itself books no less than any part of it says: reasoning that is more than the output was counted
  beside it, cached tokens that are more than the input beside that, and what only the total has is read out of the total.
- OpenAI, compatible endpoints and Bedrock say their usage at the end only; Anthropic and Google say the input at the
  beginning of a stream.
- An answer without usage is accepted and estimated where the provider's package can read it. Those of Anthropic and, for
  whole documents, of Bedrock cannot: such a call has failed, and what had come is booked.
- A server that answers with one JSON document although a stream was asked for is read all the same, without a second
  request. \`provider_opts: { stream: false }\` asks for a document, for endpoints that cannot stream.
- What is kept as the provider's own usage object lets every call with reported usage be booked again.`

/** Tables may be laid out anew: what counts is what stands in their cells. */
const cells = (text: string): string => text.replace(/ *\| */g, '|').replace(/-{3,}/g, '---')

it('docs/booked.md has what happens', async () => {
  const now = await page()
  if (process.env.UPDATE) writeFileSync(PAGE, now)
  expect(cells(readFileSync(PAGE, 'utf8'))).toBe(cells(now))
})
