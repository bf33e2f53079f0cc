import type { Context } from 'hono'
import { DEFAULT_LIMITS } from '../../domain/configured-limits.ts'
import { SubledgerError } from '../../domain/errors.ts'
import { SESSION_ID } from '../../domain/ids.ts'
import { definitionOf } from '../../engine/definition.ts'
import { type ApiContext, findRun, findSession, type Route, runRef, unknownSession } from '../api.ts'
import { cursorScope } from '../cursor.ts'
import type { endOfEvents } from '../event-shapes.ts'
import { checkQuery, eventsQuery } from '../schemas.ts'
import type { Answer } from '../shapes.ts'
import { Follower } from './follower.ts'
import { type Polls, pollsOfProcess, pollsOfTable } from './polls.ts'
import { TreePlace } from './tree-place.ts'

/** How long an answer waits for something to tell, where the platform does not stream. API Gateway waits 30 s. */
const WAIT_MS = 20_000
/** How long a stream goes on at most: then its client comes back, with a token that holds. */
const LIFE_MS = 900_000
/** Between two looks: at first, and at most after looks that found nothing. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5_000
/** Read units that one stream may take in a minute: looks at large trees are further apart. */
const UNITS_PER_MINUTE = 1_200
/** A word now and then, so that a client that is gone is noticed. */
const SILENCE_MS = 15_000
/** When a client comes back. */
const RETRY_MS = 1_000
/** When one comes back for whom there was no place to wait. */
const RETRY_WHEN_FULL_MS = 20_000
/** A client that goes on asking after the end is asked to take its time. */
const RETRY_AFTER_END_MS = 60_000
/** Told in one piece, and in one answer where the platform does not stream: Lambda answers with 6 MB at most. */
const PIECE_BYTES = 32_000
const ANSWER_BYTES = 2_000_000

export interface StreamOptions {
  /** how many streams may be open at once; undefined: the platform cannot stream, an answer is given whole */
  readonly streams: number | undefined
}

export const eventRoutes = (ctx: ApiContext, options: StreamOptions): Route[] => {
  const open = { count: 0 }
  const { polls } = ctx.settings.limits ?? DEFAULT_LIMITS
  const places = options.streams === undefined ? pollsOfTable(ctx, polls) : pollsOfProcess(polls)
  return [
    {
      path: '/v1/runs/:runId/events',
      methods: { GET: (c, tenant) => events(ctx, c, tenant, options, open, places) },
    },
  ]
}

async function events(
  ctx: ApiContext,
  c: Context,
  tenant: string,
  { streams }: StreamOptions,
  open: { count: number },
  places: Polls,
): Promise<Response> {
  const query = checkQuery(eventsQuery, c.req.url)
  const ref = runRef(c, tenant)
  const run = await findRun(ctx, ref)
  const { session } = query
  if (session !== undefined) {
    if (!SESSION_ID.test(session)) throw unknownSession({ ...ref, sessionId: session })
    await findSession(ctx, { ...ref, sessionId: session })
  }
  const place = new TreePlace(ref.runId, session, cursorScope('events', tenant, ref.runId, session))
  const [where, cursor] = cameWith(c, query.cursor)
  if (cursor !== undefined && !place.goTo(cursor)) throw badCursor(where)
  const team = await definitionOf(ctx, run)
  const follower = new Follower({ store: ctx.store, ref, team, place, watched: session })
  c.header('Content-Type', 'text/event-stream')
  if (c.req.raw.method === 'HEAD') return c.body(null)
  await follower.look()
  if (streams === undefined) {
    let release: (() => Promise<void>) | undefined
    const mayWait = async () => {
      release = await places.take(tenant)
      return release !== undefined
    }
    try {
      return c.body(await wholeOf(ctx, follower, mayWait))
    } finally {
      await release?.()
    }
  }
  if (open.count >= streams) {
    throw new SubledgerError('too_many_streams', `${streams} streams are open here, which is the most: close some.`)
  }
  const release = await places.take(tenant)
  // one tenant's streams leave room for the others'
  if (!release) return c.body(await wholeOf(ctx, follower, async () => false))
  open.count++
  const closed = () => {
    open.count--
    void release()
  }
  return c.body(bodyOf(ctx, follower, closed))
}

/** An answer in one piece. @param mayWait asked once, before it waits */
async function wholeOf(ctx: ApiContext, follower: Follower, mayWait: () => Promise<boolean>): Promise<string> {
  let text = ''
  for await (const piece of told(ctx, follower, new AbortController().signal, mayWait)) text += piece
  return text
}

/** What a client brings along when it comes back goes before what its address says. */
function cameWith(c: Context, cursor: string | undefined): [where: string, cursor: string | undefined] {
  const last = c.req.header('last-event-id')
  return last ? ['Last-Event-ID', last] : ['?cursor', cursor]
}

const badCursor = (where: string): SubledgerError =>
  new SubledgerError(
    'bad_cursor',
    'The cursor does not belong to these events. Use the `id` of an event of the same run and session, unchanged.',
    { issues: [{ path: where, message: 'does not belong to these events' }] },
  )

/** The stream as a body: it is read from as the client takes it, and ends when the client goes. */
function bodyOf(ctx: ApiContext, follower: Follower, closed: () => void): ReadableStream<Uint8Array> {
  const gone = new AbortController()
  const pieces = told(ctx, follower, gone.signal)
  const encoder = new TextEncoder()
  let over = false
  const close = () => {
    if (!over) closed()
    over = true
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const piece = await pieces.next()
        if (!piece.done) return controller.enqueue(encoder.encode(piece.value))
      } catch (fault) {
        // the client comes back with its cursor, and is told then what is wrong
        ctx.log.error('a stream of events broke off', { fault: String(fault) })
      }
      close()
      if (!gone.signal.aborted) controller.close()
    },
    cancel() {
      gone.abort()
      close()
    },
  })
}

/**
 * Everything that is to be told, in pieces, from the look that was made already on.
 * @param mayWait the answer is given whole: with what there is, or after a while with nothing, where it may wait
 */
async function* told(
  ctx: Pick<ApiContext, 'clock'>,
  follower: Follower,
  gone: AbortSignal,
  mayWait?: () => Promise<boolean>,
): AsyncGenerator<string> {
  const { clock } = ctx
  const whole = mayWait !== undefined
  const until = clock.now() + (whole ? WAIT_MS : LIFE_MS)
  let waits = !whole
  if (!whole) yield `retry: ${RETRY_MS}\n\n`
  let [pause, bytes, saidAt] = [FIRST_PAUSE_MS, 0, clock.now()]
  for (;;) {
    const before = bytes
    for (const consistent of [false, true]) {
      // before the end is told everything that has happened is looked at once more
      if (consistent && !follower.rests) break
      if (consistent) await follower.look(true)
      for (let piece = pieceOf(follower); piece !== ''; piece = pieceOf(follower)) {
        bytes += piece.length
        saidAt = clock.now()
        yield piece
        if (gone.aborted) return
        if (whole && bytes > ANSWER_BYTES) return yield comeBack(follower, RETRY_MS)
      }
    }
    if (follower.toldAll) return yield theEnd(follower)
    if (await follower.isGone()) return
    const now = clock.now()
    const least = (follower.units * 60_000) / UNITS_PER_MINUTE
    if (now >= until || (whole && bytes > 0)) return yield comeBack(follower, Math.max(RETRY_MS, Math.ceil(least)))
    if (!waits) {
      waits = await mayWait!()
      if (!waits) return yield comeBack(follower, Math.max(RETRY_WHEN_FULL_MS, Math.ceil(least)))
    }
    if (!whole && now - saidAt >= SILENCE_MS) {
      saidAt = now
      yield ':\n\n'
    }
    pause = bytes > before ? FIRST_PAUSE_MS : Math.min(pause * 1.5, LONGEST_PAUSE_MS)
    await clock.sleep(Math.min(Math.max(pause, least), until - now), gone)
    if (gone.aborted) return
    await follower.look()
  }
}

function pieceOf(follower: Follower): string {
  let text = ''
  while (text.length < PIECE_BYTES) {
    const next = follower.next()
    if (!next) break
    text += `id: ${next.cursor}\nevent: ${next.event.type}\ndata: ${JSON.stringify(next.event)}\n\n`
  }
  return text
}

const comeBack = (follower: Follower, retryMs: number): string => `id: ${follower.cursor()}\nretry: ${retryMs}\n\n`

function theEnd(follower: Follower): string {
  const { status, stopReason, round } = follower.run!
  const end = { status, stopReason, round } as Answer<typeof endOfEvents>
  const head = `id: ${follower.cursor()}\nretry: ${RETRY_AFTER_END_MS}\n`
  return `${head}event: end\ndata: ${JSON.stringify(end)}\n\n`
}
