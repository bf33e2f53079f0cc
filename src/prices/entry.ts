/**
 * How an entry of table.json says what a model costs. In USD per million tokens, input before output, then the rates of
 * the prompt cache that are known; further tiers by size of the prompt; further periods, of which the last that holds
 * goes before those before it:
 *
 *     0.3 2.5 read 0.03
 *     3 15 read 0.3 write 3.75 write1h 6, from 200001: 6 22.5 read 0.6 write 7.5 write1h 12
 *     10 40 read 0.5; since 2025-06-10: 2 8 read 0.5
 *     0.135 0.55; daily 00:30:00-16:30:00: 0.27 1.1
 */
import type { PricePerMillion, PricesFrom } from '../domain/team.ts'

type Tier = PricesFrom['tiers'][number]

const WORDS = { read: 'cacheRead', write: 'cacheWrite', write1h: 'cacheWrite1h' } as const
const RATE = /^\d+(?:\.\d{1,6})?$/

export const writeEntry = (schedule: readonly PricesFrom[]): string => schedule.map(writePeriod).join('; ')

function writePeriod({ since, daily, tiers }: PricesFrom): string {
  const condition = [since && `since ${since}`, daily && `daily ${daily.join('-')}`].filter(Boolean).join(' ')
  const rates = tiers.map((t) => `${t.from === 0 ? '' : `from ${t.from}: `}${writeRates(t)}`).join(', ')
  return condition ? `${condition}: ${rates}` : rates
}

const writeRates = (p: PricePerMillion): string =>
  [p.input, p.output, ...Object.entries(WORDS).map(([word, kind]) => p[kind] !== undefined && `${word} ${p[kind]}`)]
    .filter(Boolean)
    .join(' ')

/** @throws Error naming what is wrong: a table that is not understood prices nothing */
export function readEntry(text: string): PricesFrom[] {
  const schedule = text.split('; ').map(readPeriod)
  if (schedule[0]!.since !== undefined || schedule[0]!.daily) throw wrong(text, 'its first prices have a condition')
  return schedule
}

const CONDITION = /^(?:since (\d{4}-\d\d-\d\d))? ?(?:daily (\d\d:\d\d:\d\d)-(\d\d:\d\d:\d\d))?: /

function readPeriod(text: string): PricesFrom {
  const condition = /^(since|daily) /.test(text) ? CONDITION.exec(text) : null
  const [said = '', since, from, to] = condition ?? []
  const tiers = text.slice(said.length).split(', ').map(readTier)
  if (tiers.some((t, i) => (i === 0 ? t.from !== 0 : t.from <= tiers[i - 1]!.from)))
    throw wrong(text, 'its tiers do not begin at 0 and rise')
  return {
    ...(since !== undefined && { since }),
    ...(from !== undefined && to !== undefined && { daily: [from, to] as const }),
    tiers,
  }
}

function readTier(text: string): Tier {
  const [said = '', from = '0'] = /^from (\d+): /.exec(text) ?? []
  const [input, output, ...rest] = text.slice(said.length).split(' ')
  if (!input || !output || !RATE.test(input) || !RATE.test(output)) throw wrong(text, 'input and output are no prices')
  const rates: { -readonly [K in keyof PricePerMillion]: PricePerMillion[K] } = { input, output }
  for (let i = 0; i < rest.length; i += 2) {
    const [word, rate] = [rest[i]!, rest[i + 1] ?? '']
    if (!Object.hasOwn(WORDS, word) || !RATE.test(rate)) throw wrong(text, `"${word} ${rate}" is no price`)
    rates[WORDS[word as keyof typeof WORDS]] = rate
  }
  return { from: Number(from), ...rates }
}

const wrong = (text: string, why: string): Error => new Error(`the price "${text}" cannot be read: ${why}`)
