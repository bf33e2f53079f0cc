import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { SubledgerError } from '../domain/errors.ts'
import type { OnceRecord, OnceRef, StoredAnswer } from '../ports/idempotency-store.ts'
import type { ApiContext } from './api.ts'

/** How long a key is kept: a day. */
const KEPT_SECONDS = 86_400
/** How long a repeated request waits for the answer to the first one before it makes it itself. */
const WAIT_MS = 2_000
const LOOK_MS = 50
const KEY = /^[\x21-\x7e]{1,255}$/

export interface Once {
  /** makes the token of a first request */
  token(): string | Promise<string>
  /** before an answer is given again. @throws SubledgerError when what it tells of has been deleted since */
  stands?(token: string): Promise<unknown>
  /** does the work, or what is left of it, in the name of the token; undefined: there is no key */
  work(token: string | undefined): Promise<Response>
}

/**
 * Does the work of a POST once for each `Idempotency-Key`, tenant and path, for a day: the same body gets the same answer,
 * also while that is being made; another body is refused. The record is put before the work, with a token that names what
 * the work makes, so a retry after a crash finds it and finishes it. A refused request leaves no record. What may be
 * refused at another time than the first one is looked at in the work, so that it keeps nobody from his answer.
 * @param body what was sent, parsed: spaces and the order of keys do not make another body
 */
export async function once(
  ctx: ApiContext,
  c: Context,
  tenant: string,
  body: unknown,
  { token, stands, work }: Once,
): Promise<Response> {
  const key = c.req.header('idempotency-key')
  if (key === undefined) return work(undefined)
  if (!KEY.test(key)) {
    throw new SubledgerError('bad_request', 'The Idempotency-Key must have 1 to 255 visible ASCII characters.', {
      issues: [{ path: 'Idempotency-Key', message: 'must have 1 to 255 visible ASCII characters' }],
    })
  }
  const ref: OnceRef = { tenant, route: `${c.req.method} ${c.req.path}`, key }
  const record = await findOrPut(ctx, ref, hashOf(body), token)
  if (record.answer) {
    await stands?.(record.token)
    return replay(c, record.answer)
  }
  try {
    return await keep(ctx, c, ref, record, await work(record.token))
  } catch (e) {
    // a run that was deleted since keeps the key used: it must not start another
    if (SubledgerError.is(e) && e.status < 500 && e.code !== 'unknown_run')
      await ctx.store.releaseOnce(ref, record.token)
    throw e
  }
}

/** The record under which this request works, or is answered. */
async function findOrPut(ctx: ApiContext, ref: OnceRef, bodyHash: string, token: Once['token']): Promise<OnceRecord> {
  const { store, clock } = ctx
  const mine = await token()
  for (;;) {
    const now = clock.now()
    const record = { bodyHash, token: mine, createdAt: now, expiresAt: Math.floor(now / 1000) + KEPT_SECONDS }
    if ((await store.putOnce(ref, record, now)) === 'written') return { ...record, answer: null }
    const found = await store.getOnce(ref, clock.now())
    if (!found) continue // it has expired, or was taken back, since
    if (found.bodyHash !== bodyHash) {
      throw new SubledgerError(
        'idempotency_mismatch',
        'This Idempotency-Key was used here for another body within a day: send the same body, or use another key.',
      )
    }
    // one's own, whose first answer was lost
    if (found.answer || found.token === mine) return found
    if (clock.now() >= found.createdAt + WAIT_MS) return found
    await clock.sleep(LOOK_MS)
  }
}

/** Stores the answer, unless somebody else's stands already: then that is the answer. */
async function keep(
  ctx: ApiContext,
  c: Context,
  ref: OnceRef,
  record: OnceRecord,
  response: Response,
): Promise<Response> {
  const answer = {
    status: response.status,
    location: response.headers.get('location'),
    body: await response.text(),
  }
  if ((await ctx.store.answerOnce(ref, record, answer, ctx.ids.nonce())) === 'written') return replay(c, answer)
  return replay(c, (await ctx.store.getOnce(ref, ctx.clock.now()))?.answer ?? answer)
}

function replay(c: Context, { status, location, body }: StoredAnswer): Response {
  if (location !== null) c.header('Location', location)
  c.header('Content-Type', 'application/json')
  return c.body(body, status as 202)
}

/** The same for all texts that say the same. */
const hashOf = (body: unknown): string => createHash('sha256').update(canonical(body)).digest('hex')

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([k, v]) => `${JSON.stringify(k)}:${canonical(v)}`).join(',')}}`
}
