/** What the shapes of answers are made of. */
import * as z from 'zod/mini'

export const says = (description: string) => z.describe(description)
export const text = z.string()
export const texts = z.nullable(text)
export const count = z.int().check(z.minimum(0))
export const money = z.string().check(z.regex(/^-?\d+(\.\d+)?$/), says('USD, exact, without exponent'))
export const maybeMoney = z.nullable(money)
export const time = z.string().check(z.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/), says('ISO 8601 in UTC'))
export const maybeTime = z.nullable(time)
export const asOf = time.check(says('how old the figures are'))
export const runId = z.string().check(z.regex(/^[0-9A-HJKMNP-TV-Z]{26}$/))
export const sessionId = z.string().check(z.regex(/^[0-9a-hjkmnp-tv-z]{20}$/))
export const errorInfo = z.nullable(z.strictObject({ code: text, message: text }))
export const next = z.nullable(z.string()).check(says('cursor of the next page; null: there is none'))
