import { isUtf8 } from 'node:buffer'
import * as z from 'zod/mini'
import { type InputIssue, SubledgerError } from '../domain/errors.ts'
import { HIGHEST_MAX_CONCURRENCY, MAX_NOTE, MAX_TAG_BYTES, MAX_TAGS, MAX_TASKS } from '../domain/limits.ts'
import { plainDecimal } from '../domain/money.ts'
import { isObject } from '../domain/objects.ts'
import { byteLength } from '../domain/text.ts'
import { writtenNumber } from './json.ts'

/** What the API takes, in one place. Texts say what is expected; where it is wrong is added by `check`. */

const MAX_NAME = 128
const MAX_PAGE = 100
const DEFAULT_PAGE = 25
const RUN_STATUSES = ['running', 'waiting', 'completed', 'failed', 'cancelled'] as const

export const wellFormed = z.refine<string>((t) => t.isWellFormed(), { error: 'holds half of a surrogate pair' })
const filled = z.refine<string>((t) => t.trim() !== '', { error: 'must not be empty' })
/** What the OpenAPI document says of a refinement, which JSON Schema cannot be made of. */
const isFilled = z.meta({ minLength: 1, pattern: '\\S' })
const aString = {
  error: (issue: { input?: unknown }) => (issue.input === undefined ? 'is missing' : 'must be a string'),
}
const text = z.string(aString).check(filled, wellFormed, isFilled)
const name = text.check(z.maxLength(MAX_NAME, { error: `must have at most ${MAX_NAME} characters` }))
const tagText = z.string(aString).check(wellFormed)
const shortTags = z.refine<{ [name: string]: string }>(
  (tags) => Object.entries(tags).every(([k, v]) => byteLength(k) + byteLength(v) <= MAX_TAG_BYTES),
  { error: `has a tag of more than ${MAX_TAG_BYTES} bytes (name and value together)` },
)

const task = z.strictObject(
  { agent: name, task: text, expectedOutput: z.optional(text) },
  { error: 'must be an object with agent and task' },
)

const usd = 'must be an amount in USD of at least 0 with at most twelve decimals, such as "2.50"'
const tokenCount = 'must be a whole number of at least 0'
const DECIMAL = /^\d{1,8}(\.\d{1,12})?$/
const budgetParts = {
  // a number of a body is the text that it was written as by now: see asWritten
  usd: z.optional(
    z.pipe(
      z.union(
        [
          z.string().check(z.regex(DECIMAL, { error: usd })),
          z.number().check(
            z.minimum(0, { error: usd }),
            z.lt(100_000_000, { error: usd }),
            z.refine((n) => DECIMAL.test(String(n)), { error: usd }),
          ),
        ],
        { error: usd },
      ),
      z.transform((value) => String(value)),
    ),
  ),
  tokens: z.optional(z.int({ error: tokenCount }).check(z.minimum(0, { error: tokenCount }))),
}
const someBudget = z.refine<{ usd?: unknown; tokens?: unknown }>((b) => b.usd !== undefined || b.tokens !== undefined, {
  error: 'needs usd (such as "2.50"), tokens (a number) or both',
})
const SOME_BUDGET = z.meta({ anyOf: [{ required: ['usd'] }, { required: ['tokens'] }] })
export const budgetBody = z
  .strictObject(budgetParts, { error: 'must be a JSON object with usd, tokens or both' })
  .check(someBudget, SOME_BUDGET)

const concurrency = `must be a whole number from 1 to ${HIGHEST_MAX_CONCURRENCY}`

/** What a run is started from. */
const runFields = {
  team: name,
  agent: z.optional(name),
  input: z.optional(text),
  tasks: z.optional(
    z
      .array(task, { error: 'must be a list of tasks' })
      .check(
        z.minLength(1, { error: 'must hold at least one task' }),
        z.maxLength(MAX_TASKS, { error: `must hold at most ${MAX_TASKS} tasks` }),
      ),
  ),
  maxConcurrency: z.optional(
    z
      .int({ error: concurrency })
      .check(z.minimum(1, { error: concurrency }), z.maximum(HIGHEST_MAX_CONCURRENCY, { error: concurrency })),
  ),
  budget: z.optional(budgetBody),
  tags: z.optional(
    z.record(tagText.check(filled, isFilled), tagText, { error: 'must be an object of strings' }).check(
      z.refine((t) => Object.keys(t).length <= MAX_TAGS, { error: `must hold at most ${MAX_TAGS} tags` }),
      shortTags,
      z.meta({ maxProperties: MAX_TAGS, description: `name and value at most ${MAX_TAG_BYTES} bytes together` }),
    ),
  ),
}

/** A run starts from one thing. */
interface Start {
  readonly agent?: unknown
  readonly input?: unknown
  readonly tasks?: unknown
}
const startChecks = <T extends Start>() =>
  [
    z.refine<T>((b) => b.input === undefined || b.tasks === undefined, {
      error: 'has both input and tasks: a run starts from one of them',
    }),
    z.refine<T>((b) => b.input !== undefined || b.tasks !== undefined, {
      error: 'has neither input nor tasks: a run starts from one of them',
    }),
    z.refine<T>((b) => b.agent === undefined || b.tasks === undefined, {
      error: 'has both agent and tasks: each task names its own agent',
    }),
  ] as const
const ONE_START = [{ required: ['input'] }, { required: ['tasks'], not: { required: ['agent'] } }]

export const createRunBody = z
  .strictObject(runFields, { error: 'must be a JSON object' })
  .check(...startChecks(), z.meta({ oneOf: ONE_START }))
export type CreateRunBody = z.infer<typeof createRunBody>

const OVERLAPS = ['skip', 'queue', 'allow'] as const
const expression = z
  .string(aString)
  .check(z.maxLength(256, { error: 'must have at most 256 characters' }), filled, wellFormed, isFilled)

const scheduleBudget = z
  .strictObject(budgetParts, {
    error: 'must be an object with usd, tokens or both: each run of a schedule needs a limit, since nobody looks on',
  })
  .check(someBudget, SOME_BUDGET)

/** A schedule, over the API and in a file. */
export const scheduleBody = z
  .strictObject(
    {
      cron: z.optional(
        expression.check(
          z.meta({
            examples: ['0 3 * * ? *'],
            description: "minutes, hours, day of month, month, day of week, year: EventBridge's own form",
          }),
        ),
      ),
      rate: z.optional(expression.check(z.meta({ examples: ['1 day'], description: 'such as 5 minutes' }))),
      timezone: z.optional(
        name.check(z.meta({ examples: ['Europe/Berlin'], description: 'of a cron; UTC unless given' })),
      ),
      overlap: z.optional(
        z
          .enum(OVERLAPS, { error: `must be one of ${OVERLAPS.join(', ')}` })
          .check(z.describe('what becomes of a tick while the run before it goes on; skip unless given')),
      ),
      ...runFields,
      budget: scheduleBudget,
    },
    { error: 'must be a JSON object' },
  )
  .check(
    ...startChecks(),
    z.refine((b) => (b.cron === undefined) !== (b.rate === undefined), {
      error: 'needs a cron or a rate, and not both',
    }),
    z.refine((b) => b.rate === undefined || b.timezone === undefined, {
      error: 'has a time zone, which is of a cron alone',
    }),
    z.meta({
      oneOf: ONE_START.flatMap((start) => [
        { ...start, required: [...start.required, 'cron'], properties: { rate: false } },
        { ...start, required: [...start.required, 'rate'], properties: { cron: false, timezone: false } },
      ]),
    }),
  )
export type ScheduleBody = z.infer<typeof scheduleBody>

const DECISIONS = ['approve', 'deny'] as const
export const approvalBody = z.strictObject(
  {
    decision: z.enum(DECISIONS, { error: `must be ${DECISIONS.join(' or ')}` }),
    note: z.optional(
      z.string(aString).check(z.maxLength(MAX_NOTE, { error: `must have at most ${MAX_NOTE} characters` }), wellFormed),
    ),
  },
  { error: 'must be a JSON object with decision' },
)

export const inputBody = z.strictObject({ input: text }, { error: 'must be a JSON object with input' })
const someSessions = `must be a list of 1 to ${MAX_TASKS} ids of sessions`
export const retryBody = z.strictObject(
  {
    sessions: z.optional(
      z
        .array(name, { error: someSessions })
        .check(z.minLength(1, { error: someSessions }), z.maxLength(MAX_TASKS, { error: someSessions })),
    ),
  },
  { error: 'must be a JSON object, with sessions or empty' },
)
/** for routes that take no body */
export const noBody = z.strictObject({})

const pageSize = `must be a whole number from 1 to ${MAX_PAGE}`
const limit = z._default(
  z.pipe(
    z.string().check(
      z.refine((t) => /^\d{1,3}$/.test(t) && Number(t) >= 1 && Number(t) <= MAX_PAGE, { error: pageSize }),
      z.meta({ type: 'integer', minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE }),
    ),
    z.transform(Number),
  ),
  DEFAULT_PAGE,
)
const paging = { limit, cursor: z.optional(z.string().check(z.describe('`next` of the page before, unchanged'))) }

export const noQuery = z.strictObject({})
export const pageQuery = z.strictObject(paging)
export const listRunsQuery = z.strictObject({
  ...paging,
  status: z.optional(z.enum(RUN_STATUSES, { error: `must be one of ${RUN_STATUSES.join(', ')}` })),
  team: z.optional(name),
})
export const eventsQuery = z.strictObject({
  cursor: z.optional(
    z.string().check(z.describe('`id` of an event: what comes after it. `Last-Event-ID` goes before it')),
  ),
  session: z.optional(z.string().check(z.describe('a session whose turns and tool calls are told as well'))),
})
const flag = z.optional(z.enum(['true', 'false'], { error: 'must be true or false' }))
export const startQuery = z.strictObject({
  dryRun: flag.check(z.describe('true: nothing is started; the answer says what the run may cost')),
})
export const runQuery = z.strictObject({
  exact: z.optional(z.enum(['true', 'false'], { error: 'must be true or false' })),
})

const MAX_ISSUES = 20

/**
 * @returns the value, with nothing in it that the schema does not know
 * @throws SubledgerError with a JSON pointer (`/tasks/3/agent`) and a text for each thing that is wrong
 */
export function checkBody<S extends z.ZodMiniType>(schema: S, value: unknown): z.infer<S> {
  return check(schema, asWritten(value), 'The body', (path) => path.map((p) => `/${pointerPart(String(p))}`).join(''))
}

/** Money that came as a number, as the text that was sent: a double has not all its digits. */
function asWritten(body: unknown): unknown {
  if (!isObject(body)) return body
  const { budget } = body
  const usd = writtenNumber(body, 'usd')
  const ofBudget = isObject(budget) ? writtenNumber(budget, 'usd') : undefined
  return {
    ...body,
    ...(usd !== undefined && { usd: plainDecimal(usd) }),
    ...(isObject(budget) && ofBudget !== undefined && { budget: { ...budget, usd: plainDecimal(ofBudget) } }),
  }
}

/**
 * @param url of the request
 * @throws SubledgerError bad_request with `?name` of each parameter that is wrong, unknown or given twice
 */
export function checkQuery<S extends z.ZodMiniType>(schema: S, url: string): z.infer<S> {
  const { search, searchParams } = new URL(url)
  const values: { [name: string]: string } = Object.create(null)
  const broken = search
    .slice(1)
    .split('&')
    .find((part) => !isText(part))
  if (broken !== undefined) {
    const [name = ''] = new URLSearchParams(broken).keys()
    throw invalid('The query', [{ path: `?${name}`, message: 'is not valid UTF-8' }])
  }
  for (const [key, value] of searchParams) {
    if (key in values) throw invalid('The query', [{ path: `?${key}`, message: 'is given twice' }])
    values[key] = value
  }
  return check(schema, values, 'The query', (path) => `?${path.join('.')}`)
}

/** Bytes that are no UTF-8 would be read as other characters than were sent, in silence. */
const isText = (escaped: string): boolean =>
  (escaped.match(/(?:%[0-9a-f]{2})+/gi) ?? []).every((bytes) => isUtf8(Buffer.from(bytes.replaceAll('%', ''), 'hex')))

function check<S extends z.ZodMiniType>(
  schema: S,
  value: unknown,
  what: string,
  pathText: (path: readonly PropertyKey[]) => string,
): z.infer<S> {
  const result = z.safeParse(schema, value)
  if (result.success) return result.data
  const issues = result.error.issues.flatMap((issue): InputIssue[] =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: pathText([...issue.path, key]), message: 'is not known here' }))
      : [{ path: pathText(issue.path), message: messageOf(issue) }],
  )
  throw invalid(what, issues)
}

/** A key of a map is checked by a schema of its own; its message stands one level down. */
const messageOf = (issue: z.core.$ZodIssue): string =>
  issue.code === 'invalid_key' ? `the key ${issue.issues[0]?.message ?? 'is not valid'}` : issue.message

const pointerPart = (part: string): string => part.replaceAll('~', '~0').replaceAll('/', '~1')

function invalid(what: string, issues: readonly InputIssue[]): SubledgerError {
  const { path, message } = issues[0]!
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  return new SubledgerError('bad_request', `${what}${path === '' ? '' : `: ${path}`} ${message}${more}.`, {
    issues: issues.slice(0, MAX_ISSUES),
  })
}
