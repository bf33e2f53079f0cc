/** When schedules come: compared with a clock that is looked at minute by minute, around the days on which it is set. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { lastTime, readSchedule } from '../../src/domain/schedule.ts'
import { randomFrom } from '../simulator/random.ts'

const MINUTE = 60_000
const DAY = 86_400_000
const at = (text: string) => Date.parse(text)
const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString())

interface Minute {
  readonly at: number
  readonly month: number
  readonly day: number
  readonly weekday: number
  readonly hour: number
  readonly minute: number
  /** the clocks have shown it before */
  readonly again: boolean
}

/** What a zone's clocks show in each minute from a day before to three days behind a date. */
function clockOf(timezone: string, date: string): Minute[] {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    ...({ month: 'numeric', day: 'numeric', weekday: 'short', hour: 'numeric', minute: 'numeric' } as const),
  })
  const seen = new Set<string>()
  const from = at(`${date}T00:00:00Z`) - DAY
  return Array.from({ length: 4 * 24 * 60 }, (_, i) => {
    const parts = Object.fromEntries(format.formatToParts(from + i * MINUTE).map((p) => [p.type, p.value]))
    const shown = Object.values(parts).join(' ')
    const again = seen.has(shown)
    seen.add(shown)
    const [month, day, hour, minute] = ['month', 'day', 'hour', 'minute'].map((name) => Number(parts[name]))
    const weekday = 'Sun Mon Tue Wed Thu Fri Sat'.split(' ').indexOf(parts.weekday!) + 1
    return { at: from + i * MINUTE, month: month!, day: day!, weekday, hour: hour!, minute: minute!, again }
  })
}

describe.each([
  ['Europe/Berlin', '2026-03-29'],
  ['Europe/Berlin', '2026-10-25'],
  ['America/New_York', '2026-03-08'],
  ['America/New_York', '2026-11-01'],
  // half an hour
  ['Australia/Lord_Howe', '2026-04-05'],
  ['Australia/Lord_Howe', '2026-10-04'],
  // two hours
  ['Antarctica/Troll', '2026-10-25'],
  // at midnight: the day begins at one, or the evening before comes again
  ['Africa/Cairo', '2026-04-24'],
  ['America/Sao_Paulo', '2019-02-17'],
  ['America/Havana', '2026-11-01'],
  // a day that there was not
  ['Pacific/Apia', '2011-12-30'],
  ['Asia/Kathmandu', '2026-06-01'],
  ['UTC', '2026-01-01'],
])('a cron in %s around %s', (timezone, date) => {
  const clock = clockOf(timezone, date)

  test('comes whenever the clocks show its time, and once where they show it twice', () => {
    const random = randomFrom(Number(date.replaceAll('-', '')))
    const some = (low: number, high: number, most: number) =>
      random.chance(0.3)
        ? { text: '*', has: () => true }
        : listed(Array.from({ length: 1 + random.below(most) }, () => low + random.below(high - low + 1)))
    const listed = (numbers: number[]) => ({ text: numbers.join(), has: (n: number) => numbers.includes(n) })
    const any = { text: '?', has: () => true }
    for (let i = 0; i < 40; i++) {
      const [minutes, hours] = [some(0, 59, 3), some(0, 23, 6)]
      const [days, weekdays] = random.chance(0.5) ? [some(1, 31, 20), any] : [any, some(1, 7, 4)]
      const expression = `cron(${minutes.text} ${hours.text} ${days.text} * ${weekdays.text} *)`
      const next = readSchedule(expression, timezone, 0)
      const times = clock
        .filter((m) => !m.again && minutes.has(m.minute) && hours.has(m.hour))
        .filter((m) => days.has(m.day) && weekdays.has(m.weekday))
        .map((m) => m.at)
      const last = clock.at(-1)!.at
      for (let j = 0; j < 10; j++) {
        const after = clock[DAY / MINUTE / 2 + random.below(2 * 24 * 60)]!.at + random.below(MINUTE)
        const expected = times.find((t) => t > after)
        const found = next(after)
        if (expected === undefined) expect(found ?? Number.POSITIVE_INFINITY, expression).toBeGreaterThan(last)
        else expect([expression, iso(after), iso(found)]).toEqual([expression, iso(after), iso(expected)])
        const until = after + random.below(last - after)
        const latest = times.findLast((t) => t > after && t <= until)
        expect([expression, iso(after), iso(until), iso(lastTime(next, after, until))]).toEqual([
          expression,
          iso(after),
          iso(until),
          iso(latest),
        ])
      }
    }
  })
})

describe('what clocks show is asked for a few times', () => {
  const asked = () => vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts')
  afterEach(() => vi.restoreAllMocks())

  test.each(['00:00', '12:00', '23:58'])('for the time that comes next at %s', (time) => {
    const next = readSchedule('cron(* * * * ? *)', 'America/Anchorage', 0)
    const now = at(`2026-12-01T${time}:30-09:00`)
    const spy = asked()
    expect(next(now)).toBe(now + 30_000)
    expect(spy.mock.calls.length).toBeLessThanOrEqual(5)
  })

  test('for the last of the times that were missed in a week', () => {
    const next = readSchedule('cron(* * * * ? *)', 'America/Anchorage', 0)
    const now = at('2026-12-01T12:00:30Z')
    const spy = asked()
    expect(lastTime(next, now - 7 * DAY, now)).toBe(now - 30_000)
    expect(spy.mock.calls.length).toBeLessThan(200)
  })
})

test('in autumn, each half hour of the hour that comes twice is taken when it comes first', () => {
  const next = readSchedule('cron(0/30 * * * ? *)', 'Europe/Berlin', 0)
  const times: string[] = []
  for (let t = at('2026-10-24T23:30:00Z'); times.length < 4; times.push(iso(t)!)) t = next(t)!
  expect(times).toEqual([
    '2026-10-25T00:00:00.000Z',
    '2026-10-25T00:30:00.000Z',
    '2026-10-25T02:00:00.000Z',
    '2026-10-25T02:30:00.000Z',
  ])
})
