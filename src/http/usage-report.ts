import type { Context } from 'hono'
import * as z from 'zod/mini'
import { type InputIssue, SubledgerError } from '../domain/errors.ts'
import { MAX_TAGS, PAGE_BYTES } from '../domain/limits.ts'
import { dayOf, dayStart, HOUR_MS, HOURS } from '../domain/report.ts'
import type { ApiContext, Route } from './api.ts'
import { bytesOf } from './paging.ts'
import { checkQuery } from './schemas.ts'
import { type DatedRow, type GroupBy, type SpendReport, spendCsv, spendReport, TAG } from './views/report.ts'

/** Days of one report. */
const MOST_DAYS = 366
/** Lines of one report, beside the bytes of an answer: what is asked for by mistake is refused before it is reckoned out. */
const MOST_ROWS = 5_000
/** Days read at once. */
const AT_ONCE = 16
const DAY_MS = HOURS * HOUR_MS

const GROUPS = ['team', 'agent', 'model', 'outcome', 'day'] as const
const FORMATS = ['json', 'csv'] as const

const day = z.string().check(z.meta({ format: 'date', description: 'a day in UTC' }))
export const reportQuery = z.strictObject({
  from: z.optional(day),
  to: z.optional(day),
  groupBy: z.optional(
    z
      .string()
      .check(
        z.describe(
          'team, agent, model, outcome, day and tag:NAME, with commas between; one that holds a comma stands in double quotes',
        ),
      ),
  ),
  format: z.optional(z.enum(FORMATS, { error: `must be one of ${FORMATS.join(', ')}` })),
})

export const usageReportRoutes = (ctx: ApiContext): Route[] => [
  { path: '/v1/usage', methods: { GET: (c, tenant) => usageReport(ctx, c, tenant) } },
]

async function usageReport(ctx: ApiContext, c: Context, tenant: string): Promise<Response> {
  const query = checkQuery(reportQuery, c.req.url)
  const { from, to } = readDays(query, dayOf(ctx.clock.now()))
  const groupBy = readGroups(query.groupBy)
  const rows = await readRows(ctx, tenant, from, to)
  const report = spendReport(rows, { from, to, groupBy })
  checkSize(report)
  if ((query.format ?? wanted(c.req.header('accept'))) === 'json') return c.json(report)
  c.header('Content-Type', 'text/csv; charset=utf-8; header=present')
  c.header('Content-Disposition', `attachment; filename="usage-${from}-${to}.csv"`)
  return c.body(spendCsv(report))
}

/** CSV for who asks for it and not for JSON. */
const wanted = (accept = ''): (typeof FORMATS)[number] =>
  /\btext\/csv\b/i.test(accept) && !/\bapplication\/json\b/i.test(accept) ? 'csv' : 'json'

/** Unless given: until today, and from the first day of that month. */
function readDays(query: { from?: string | undefined; to?: string | undefined }, today: string) {
  const issues: InputIssue[] = []
  for (const name of ['from', 'to'] as const) {
    const day = query[name]
    if (day !== undefined && !isDay(day))
      issues.push({ path: `?${name}`, message: 'must be a day in UTC, such as 2026-01-31' })
  }
  const to = query.to ?? (query.from !== undefined && query.from > today ? query.from : today)
  const from = query.from ?? `${to.slice(0, 8)}01`
  if (issues.length === 0 && from > to) issues.push({ path: '?from', message: `must not be after ?to (${to})` })
  if (issues.length === 0 && daysFrom(from, to) > MOST_DAYS)
    issues.push({ path: '?from', message: `must be at most ${MOST_DAYS} days before ?to, both counted` })
  if (issues.length > 0) throw invalid(issues)
  return { from, to }
}

const isDay = (text: string): boolean =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && Number.isFinite(dayStart(text)) && dayOf(dayStart(text)) === text
const daysFrom = (from: string, to: string): number => (dayStart(to) - dayStart(from)) / DAY_MS + 1

function readGroups(text: string | undefined): readonly GroupBy[] {
  if (text === undefined || text === '') return []
  const names = splitNames(text)
  const bad = names.find((name) => !(GROUPS as readonly string[]).includes(name) && !isTag(name))
  if (bad !== undefined)
    throw invalid([
      {
        path: '?groupBy',
        message: `has ${JSON.stringify(bad.slice(0, 60))}: it takes ${GROUPS.join(', ')} and ${TAG}NAME, with commas between`,
      },
    ])
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) throw invalid([{ path: '?groupBy', message: `has ${JSON.stringify(twice)} twice` }])
  const tags = names.filter(isTag).length
  if (tags > MAX_TAGS)
    throw invalid([{ path: '?groupBy', message: `has ${tags} tags, and takes at most ${MAX_TAGS}, as a run does` }])
  return names
}

/** At commas, but for those between double quotes; a quote that is meant stands twice there. */
function splitNames(text: string): string[] {
  const names: string[] = []
  // each name with the comma or the end behind it, so that nothing is left out between two
  const NAME = /(?:"((?:[^"]|"")*)"|([^",][^,]*|))(,|$)/y
  for (;;) {
    const [, quoted, plain = '', end] = NAME.exec(text) ?? []
    if (end === undefined)
      throw invalid([{ path: '?groupBy', message: 'has a double quote that does not enclose a whole name' }])
    names.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === '') return names
  }
}

const isTag = (name: string): boolean => name.startsWith(TAG) && name.length > TAG.length

/** Day by day, some at once; a day that nothing was spent on is one small read. */
async function readRows(ctx: ApiContext, tenant: string, from: string, to: string): Promise<DatedRow[]> {
  const days = Array.from({ length: daysFrom(from, to) }, (_, i) => dayOf(dayStart(from) + i * DAY_MS))
  const rows: DatedRow[] = []
  for (let i = 0; i < days.length; i += AT_ONCE) {
    const some = days.slice(i, i + AT_ONCE).map(async (day) => {
      const found = await ctx.store.readUsage({ tenant, day })
      return found.map((row) => ({ ...row, day }))
    })
    for (const found of await Promise.all(some)) rows.push(...found)
  }
  return rows
}

/** @throws SubledgerError bad_request, when an answer may not be so large */
function checkSize(report: SpendReport): void {
  const tooMuch = (size: string, most: string) =>
    invalid([
      { path: '?groupBy', message: `comes to ${size}, and a report has at most ${most}: ask for fewer days or groups` },
    ])
  if (report.rows.length > MOST_ROWS) throw tooMuch(`${report.rows.length} lines`, `${MOST_ROWS}`)
  const bytes = bytesOf(report)
  if (bytes > PAGE_BYTES) throw tooMuch(`${bytes} bytes`, `${PAGE_BYTES}`)
}

const invalid = (issues: readonly InputIssue[]): SubledgerError =>
  new SubledgerError('bad_request', `The query: ${issues[0]!.path} ${issues[0]!.message}.`, { issues })
