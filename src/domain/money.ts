/**
 * Money and token amounts, exact. No float anywhere between a price and a report.
 *
 * The unit of money is the pico-USD (10⁻¹² USD) as a bigint: a price of 1 USD per million tokens is 1,000,000 pico-USD
 * per token, so every price with up to six decimals per million tokens is a whole number.
 */

/** Pico-USD, 10⁻¹² USD. */
export type PicoUsd = bigint

const DECIMALS = 12
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/

/**
 * Reads a decimal USD amount, such as `"0.0063948"`. Refuses exponents, NaN and more than twelve decimals.
 * @throws RangeError when the text is no plain decimal
 */
export function parseUsd(text: string): PicoUsd {
  const m = DECIMAL.exec(text.trim())
  if (!m) throw new RangeError(`"${text}" is not a decimal amount in USD, such as 0.25`)
  const fraction = (m[3] ?? '').replace(/0+$/, '')
  if (fraction.length > DECIMALS) throw new RangeError(`"${text}" has more than ${DECIMALS} decimals`)
  const pico = BigInt(m[2]!) * 10n ** BigInt(DECIMALS) + BigInt(fraction.padEnd(DECIMALS, '0') || '0')
  return m[1] ? -pico : pico
}

/** No amount has as many characters, and none is as many digits away from its point. */
const LONGEST_NUMBER = 100
const FARTHEST_POINT = 40
const NUMBER = /^([-+]?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d+))?$/

/**
 * A number as JSON and YAML write it, as a plain decimal in its shortest form, digit by digit: `2.50` is `2.5`, `5e-7` is
 * `0.0000005`. What is no such number, or beyond all reason, comes back as it is.
 */
export function plainDecimal(text: string): string {
  const m = text.length > LONGEST_NUMBER ? null : NUMBER.exec(text)
  const [, sign, before = '', after = '', exponent = '0'] = m ?? []
  const point = before.length + Number(exponent)
  if (before + after === '' || Math.abs(point) > FARTHEST_POINT) return text
  const digits = `${'0'.repeat(Math.max(0, -point))}${before}${after}`.padEnd(point, '0')
  const whole = digits.slice(0, Math.max(0, point)).replace(/^0+/, '') || '0'
  const fraction = digits.slice(Math.max(0, point)).replace(/0+$/, '')
  const plain = fraction ? `${whole}.${fraction}` : whole
  return sign === '-' && plain !== '0' ? `-${plain}` : plain
}

/** Writes pico-USD as a decimal string in USD: no exponent, no trailing zeros (`"0.0063948"`, `"0"`). */
export function formatUsd(pico: PicoUsd): string {
  const negative = pico < 0n
  const digits = (negative ? -pico : pico).toString().padStart(DECIMALS + 1, '0')
  const whole = digits.slice(0, -DECIMALS)
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, '')
  return `${negative ? '-' : ''}${whole}${fraction ? `.${fraction}` : ''}`
}

/** What a budget is made of: money and tokens, checked and moved together. */
export interface Amount {
  /** pico-USD */
  readonly usd: bigint
  /** tokens, input and output together */
  readonly tok: bigint
}

export const ZERO: Amount = { usd: 0n, tok: 0n }
/** A limit that was not given. Big enough never to be reached, small enough for DynamoDB's 38 digits. Shown as null. */
export const UNLIMITED = 10n ** 24n

export const add = (a: Amount, b: Amount): Amount => ({ usd: a.usd + b.usd, tok: a.tok + b.tok })
export const sub = (a: Amount, b: Amount): Amount => ({ usd: a.usd - b.usd, tok: a.tok - b.tok })
export const times = (a: Amount, n: number): Amount => ({ usd: a.usd * BigInt(n), tok: a.tok * BigInt(n) })
/** Whether `a` covers `b` in money and in tokens. */
export const covers = (a: Amount, b: Amount): boolean => a.usd >= b.usd && a.tok >= b.tok
export const isZero = (a: Amount): boolean => a.usd === 0n && a.tok === 0n
export const same = (a: Amount, b: Amount): boolean => a.usd === b.usd && a.tok === b.tok
const least = (a: bigint, b: bigint) => (a < b ? a : b)
const most = (a: bigint, b: bigint) => (a > b ? a : b)
export const min = (a: Amount, b: Amount): Amount => ({ usd: least(a.usd, b.usd), tok: least(a.tok, b.tok) })
/** What is missing from `have` to reach `need`, never below zero. */
export const missing = (have: Amount, need: Amount): Amount => ({
  usd: most(need.usd - have.usd, 0n),
  tok: most(need.tok - have.tok, 0n),
})
/** Split into `n` equal parts, rounded down. */
export const divide = (a: Amount, n: number): Amount => ({ usd: a.usd / BigInt(n), tok: a.tok / BigInt(n) })
