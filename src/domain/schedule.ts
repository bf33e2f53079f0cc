/** When runs are started by themselves: EventBridge's own expressions, reckoned here. */

export type Overlap = 'skip' | 'queue' | 'allow'

/** What a schedule starts: a run, as a caller would. */
export interface ScheduledRun {
  readonly team: string
  readonly agent?: string | undefined
  readonly input?: string | undefined
  readonly tasks?: readonly { agent: string; task: string; expectedOutput?: string | undefined }[] | undefined
  readonly maxConcurrency?: number | undefined
  /** each run has one: nobody looks on when it starts */
  readonly budget: { readonly usd?: string | undefined; readonly tokens?: number | undefined }
  readonly tags?: { readonly [key: string]: string } | undefined
}

export interface Schedule {
  readonly id: string
  /** `cron(0 3 * * ? *)`, `rate(1 day)` */
  readonly expression: string
  /** of a cron: an IANA name */
  readonly timezone: string
  /** what becomes of a tick while the run before it goes on */
  readonly overlap: Overlap
  readonly run: ScheduledRun
  /** epoch ms; rates count from here */
  readonly createdAt: number
}

/** What became of a tick. */
export interface Tick {
  /** the scheduled time, epoch ms */
  readonly at: number
  readonly outcome: 'started' | 'queued' | 'skipped' | 'failed'
  /** the run that it has started or will start; null: it was skipped, or the run could not be started */
  readonly runId: string | null
}

export interface QueuedTick {
  readonly at: number
  readonly runId: string
}

/** What a schedule has done. */
export interface ScheduleState {
  readonly v: number
  /** the last ticks, newest first */
  readonly ticks: readonly Tick[]
  /** the last run that was started */
  readonly runId: string | null
  /** decided, and not known to have begun */
  readonly starting: QueuedTick | null
  readonly queued: readonly QueuedTick[]
  readonly skipped: number
  /** it is ticked from outside: the timer that looks at the table does not reckon its times */
  readonly outside: boolean
  /** when the timer looks at it next, epoch ms; null: never */
  readonly dueAt: number | null
}

export const NO_STATE: ScheduleState = {
  v: 0,
  ticks: [],
  runId: null,
  starting: null,
  queued: [],
  skipped: 0,
  outside: false,
  dueAt: null,
}

const UNITS: { readonly [unit: string]: number } = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }
const DAY_MS = 86_400_000
/** A cron that does not come in so many days never comes: February 29 comes every eight years at the rarest. */
const MOST_DAYS = 366 * 9

/** A way to tell the next time; undefined: there is none. */
export type NextTime = (after: number) => number | undefined

/**
 * @param from epoch ms from which a rate counts
 * @throws RangeError that says what is wrong with the expression or the time zone
 */
export function readSchedule(expression: string, timezone: string, from: number): NextTime {
  const m = /^(cron|rate)\((.*)\)$/s.exec(expression.trim())
  if (!m) throw new RangeError('must be cron(...) or rate(...)')
  return m[1] === 'rate' ? readRate(m[2]!, from) : readCron(m[2]!, timezone)
}

function readRate(text: string, from: number): NextTime {
  const m = /^([1-9]\d{0,5}) (minute|hour|day)(s?)$/.exec(text.trim())
  if (!m || (m[1] === '1') !== (m[3] === '')) throw new RangeError('must be such as "5 minutes", "1 hour" or "1 day"')
  const every = Number(m[1]) * UNITS[m[2]!]!
  return (after) => from + (Math.max(0, Math.floor((after - from) / every)) + 1) * every
}

const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ')
const DAYS = 'SUN MON TUE WED THU FRI SAT'.split(' ')

function readCron(text: string, timezone: string): NextTime {
  const fields = text.trim().split(/\s+/)
  if (fields.length !== 6)
    throw new RangeError('must have six fields: minutes hours day-of-month month day-of-week year')
  const [minutes, hours, dayOfMonth, month, dayOfWeek, year] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  if ((dayOfMonth === '?') === (dayOfWeek === '?'))
    throw new RangeError('must have a ? as its day-of-month or as its day-of-week, and not as both')
  const inMinutes = numbers('minutes', minutes, 0, 59)
  const inHours = numbers('hours', hours, 0, 23)
  const inMonth = new Set(numbers('month', month, 1, 12, MONTHS))
  const inYear = new Set(numbers('year', year, 1970, 2199))
  const onDay = dayOfWeek === '?' ? monthDays(dayOfMonth) : weekDays(dayOfWeek)
  const offset = zoneOffset(timezone)
  return (after) => {
    const here = after + offset(after)
    const first = Math.floor(here / DAY_MS)
    for (let day = first; day < first + MOST_DAYS; day++) {
      const date = new Date(day * DAY_MS)
      if (!inYear.has(date.getUTCFullYear()) || !inMonth.has(date.getUTCMonth() + 1) || !onDay(date)) continue
      for (const hour of inHours)
        for (const minute of inMinutes) {
          const local = day * DAY_MS + hour * 3_600_000 + minute * 60_000
          // what the clocks have shown before has come: they need not be asked about it
          if (local <= here) continue
          const at = firstShown(local, offset)
          if (at !== undefined && at > after) return at
        }
    }
    return undefined
  }
}

/**
 * When clocks show a local time for the first time: one that they show twice comes once, as with EventBridge Scheduler;
 * undefined: they leave it out.
 */
function firstShown(local: number, offset: (at: number) => number): number | undefined {
  // a zone's clocks are set at most once in two days: they show it by the offset before that, or by the one behind it
  for (const near of [local - DAY_MS, local + DAY_MS]) {
    const at = local - offset(near)
    if (at + offset(at) === local) return at
  }
  return undefined
}

/**
 * The latest time in (since, until]; undefined: none has come. It is found by halves, however many there are: a next time
 * is never before that of an earlier moment.
 */
export function lastTime(next: NextTime, since: number, until: number): number | undefined {
  const comes = (after: number): number | undefined => {
    const at = next(after)
    return at !== undefined && at <= until ? at : undefined
  }
  let found = comes(since)
  if (found === undefined) return undefined
  let none = until
  for (;;) {
    const later = comes(found)
    if (later === undefined) return found
    const middle: number = Math.floor((later + none) / 2)
    const beyond = comes(middle)
    if (beyond === undefined) none = middle
    found = beyond ?? later
  }
}

function numbers(what: string, text: string, low: number, high: number, names: readonly string[] = []): number[] {
  const found = new Set<number>()
  const bad = () =>
    new RangeError(`${what} "${text}" must be *, numbers from ${low} to ${high}, lists, ranges or steps`)
  const one = (word: string) => {
    const named = names.indexOf(word.toUpperCase())
    const n = named >= 0 ? named + low : /^\d{1,4}$/.test(word) ? Number(word) : Number.NaN
    if (!(n >= low && n <= high)) throw bad()
    return n
  }
  for (const part of text.split(',')) {
    const [range = '', step, ...more] = part.split('/')
    if (more.length > 0 || (step !== undefined && !/^[1-9]\d{0,3}$/.test(step))) throw bad()
    const [from = '', to, ...rest] = range.split('-')
    if (rest.length > 0) throw bad()
    const start = range === '*' ? low : one(from)
    const end = range === '*' ? high : to !== undefined ? one(to) : step !== undefined ? high : start
    if (end < start) throw bad()
    for (let n = start; n <= end; n += Number(step ?? 1)) found.add(n)
  }
  return [...found].sort((a, b) => a - b)
}

const lastOfMonth = (date: Date): number =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()

function monthDays(text: string): (date: Date) => boolean {
  if (text.toUpperCase() === 'L') return (date) => date.getUTCDate() === lastOfMonth(date)
  if (/W/i.test(text)) throw new RangeError(`day-of-month "${text}": W is not supported`)
  const days = new Set(numbers('day-of-month', text, 1, 31))
  return (date) => days.has(date.getUTCDate())
}

function weekDays(text: string): (date: Date) => boolean {
  const special = /^(\w{1,3})(L|#([1-5]))$/i.exec(text)
  if (special && text.toUpperCase() !== 'L') {
    const [day] = numbers('day-of-week', special[1]!, 1, 7, DAYS)
    const nth = special[3] === undefined ? undefined : Number(special[3])
    return (date) =>
      date.getUTCDay() + 1 === day &&
      (nth === undefined ? date.getUTCDate() > lastOfMonth(date) - 7 : Math.ceil(date.getUTCDate() / 7) === nth)
  }
  const days = new Set(text.toUpperCase() === 'L' ? [7] : numbers('day-of-week', text, 1, 7, DAYS))
  return (date) => days.has(date.getUTCDay() + 1)
}

/** How far a zone's clocks are ahead of UTC at a time, ms. */
function zoneOffset(timezone: string): (at: number) => number {
  if (timezone === 'UTC') return () => 0
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      hourCycle: 'h23',
      ...({
        year: 'numeric',
        month: 'numeric',
        day: 'numeric',
        hour: 'numeric',
        minute: 'numeric',
        second: 'numeric',
      } as const),
    })
  } catch {
    throw new RangeError(`the time zone "${timezone}" is not known`)
  }
  return (at) => {
    const parts = Object.fromEntries(format.formatToParts(at).map((p) => [p.type, Number(p.value)]))
    const { year, month, day, hour, minute, second } = parts as { [name: string]: number }
    return Date.UTC(year!, month! - 1, day!, hour!, minute!, second!) - Math.floor(at / 1000) * 1000
  }
}
