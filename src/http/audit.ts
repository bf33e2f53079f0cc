import type { Context } from 'hono'
import * as z from 'zod/mini'
import { formatUsd } from '../domain/money.ts'
import type { RunRef } from '../domain/run.ts'
import { auditRun } from '../engine/audit.ts'
import { settleReceipts } from '../engine/receipts.ts'
import { type ApiContext, findRun, type Route, runRef } from './api.ts'
import { readJson } from './body.ts'
import { once } from './idempotency.ts'
import { checkBody, checkQuery, noQuery, wellFormed } from './schemas.ts'
import type { Answer, audit as auditAnswer, receipts as receiptsAnswer } from './shapes.ts'

/** Receipts of one request. */
const MOST_RECEIPTS = 1_000

export const auditRoutes = (ctx: ApiContext): Route[] => [
  { path: '/v1/runs/:runId/audit', methods: { GET: (c, tenant) => audit(ctx, c, tenant) } },
  { path: '/v1/runs/:runId/receipts', methods: { POST: (c, tenant) => receipts(ctx, c, tenant) } },
]

async function audit(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const report: Answer<typeof auditAnswer> = await auditRun(ctx, runRef(c, tenant))
  return c.json(report)
}

/** What came of the receipts of one request. */
export type ReceiptsView = Answer<typeof receiptsAnswer>

async function receipts(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  checkQuery(noQuery, c.req.url)
  const ref = runRef(c, tenant)
  const body = checkBody(receiptsBody, await readJson(c.req.raw))
  return once(ctx, c, tenant, body, {
    // settled by comparison with what is booked, so a repeated request needs no name of its own
    token: () => 'receipts',
    stands: () => findRun(ctx, ref),
    work: async () => c.json(await settled(ctx, ref, body)),
  })
}

async function settled(ctx: ApiContext, ref: RunRef, body: z.infer<typeof receiptsBody>): Promise<ReceiptsView> {
  const results = await settleReceipts(
    ctx,
    ref,
    body.receipts.map((r) => ({
      sessionId: r.sessionId,
      turn: r.turn,
      responseId: r.responseId,
      model: r.model,
      createdAt: r.createdAt === undefined ? undefined : Date.parse(r.createdAt),
      usage: {
        inputTokens: r.inputTokens,
        cacheReadTokens: r.cacheReadTokens,
        cacheWriteTokens: r.cacheWriteTokens,
        cacheWrite1hTokens: r.cacheWrite1hTokens,
        outputTokens: r.outputTokens,
        reasoningTokens: r.reasoningTokens,
      },
    })),
  )
  return {
    settled: results.filter((r) => r.result === 'settled').length,
    receipts: results.map(({ cost, ...r }) => ({ ...r, costUsd: cost === null ? null : formatUsd(cost) })),
  }
}

const countText = 'must be a whole number from 0 to 1,000,000,000'
const count = z
  .int({ error: countText })
  .check(z.minimum(0, { error: countText }), z.maximum(1_000_000_000, { error: countText }))
const some = z._default(count, 0)
const name = z
  .string({ error: 'must be a string' })
  .check(z.maxLength(256, { error: 'must have at most 256 characters' }), wellFormed)
const timeText = 'must be a time as ISO 8601 in UTC, such as 2026-01-31T12:00:00Z'

const receipt = z
  .strictObject(
    {
      sessionId: z.optional(name),
      turn: z.optional(count),
      responseId: z.optional(name),
      model: z.optional(name),
      createdAt: z.optional(z.iso.datetime({ error: timeText })),
      inputTokens: count,
      cacheReadTokens: some,
      cacheWriteTokens: some,
      cacheWrite1hTokens: some,
      outputTokens: count,
      reasoningTokens: some,
    },
    { error: 'must be an object with inputTokens and outputTokens' },
  )
  .check(
    z.refine((r) => (r.sessionId === undefined) === (r.turn === undefined), {
      error: 'names a call by sessionId and turn together',
    }),
    z.refine((r) => r.sessionId !== undefined || r.responseId !== undefined || r.createdAt !== undefined, {
      error: 'says of no call: give sessionId and turn, or responseId, or createdAt',
    }),
    z.refine((r) => r.cacheReadTokens + r.cacheWriteTokens <= r.inputTokens, {
      error: 'has more cached input than input: inputTokens counts all input, cached input included',
    }),
    z.refine((r) => r.cacheWrite1hTokens <= r.cacheWriteTokens, {
      error: 'has more one-hour cache writes than cache writes: cacheWriteTokens counts all of them',
    }),
    z.refine((r) => r.reasoningTokens <= r.outputTokens, {
      error: 'has more reasoning than output: outputTokens counts all output, reasoning included',
    }),
  )

export const receiptsBody = z.strictObject(
  {
    receipts: z
      .array(receipt, { error: 'must be a list of receipts' })
      .check(
        z.minLength(1, { error: 'must hold at least one receipt' }),
        z.maxLength(MOST_RECEIPTS, { error: `must hold at most ${MOST_RECEIPTS} receipts` }),
      ),
  },
  { error: 'must be a JSON object with receipts' },
)
