/** What the API answers about schedules. */
import * as z from 'zod/mini'
import { count, maybeMoney, maybeTime, runId, says, text, texts, time } from './shape-parts.ts'

export const schedule = z.strictObject({
  scheduleId: text,
  source: z.enum(['api', 'file']),
  expression: text.check(says('cron(...) or rate(...)')),
  timezone: text,
  overlap: z.enum(['skip', 'queue', 'allow']),
  team: text,
  agent: texts,
  input: texts.check(says('a preview; null: it starts from tasks')),
  tasks: z.nullable(count).check(says('number of tasks')),
  budget: z
    .nullable(z.strictObject({ usd: maybeMoney, tokens: z.nullable(count) }))
    .check(says('of each run; null: its runs have none')),
  maxConcurrency: z.nullable(count).check(says('of each run; null: as for a run that does not say it')),
  tags: z.record(text, text),
  createdAt: maybeTime.check(says('null: it stands in a file')),
  nextAt: maybeTime.check(says('null: it does not come again')),
  queued: count.check(says('ticks that wait for the run before them')),
  skipped: count.check(says('ticks that were skipped')),
  lastTicks: z
    .array(
      z.strictObject({
        scheduledAt: time,
        outcome: z.enum(['started', 'queued', 'skipped', 'failed']),
        runId: z.nullable(runId),
      }),
    )
    .check(says('newest first')),
})
export const schedules = z.strictObject({ schedules: z.array(schedule) })
