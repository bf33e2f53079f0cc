/** Units in nanoseconds, as Go counts: each is a whole number of them. */
const UNITS: { readonly [unit: string]: bigint } = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
}
const DURATION = /^\+?(?:\d{1,15}(?:\.\d{1,9})?(?:ns|us|µs|μs|ms|s|m|h))+$/
const PART = /(\d+)(?:\.(\d+))?(ns|us|µs|μs|ms|s|m|h)/g

/**
 * Go's duration format, `1h30m` or `1.5s`, as whole milliseconds.
 * @returns undefined: it is none, it is negative, or it has parts of a millisecond
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  if (!DURATION.test(text)) return undefined
  let ns = 0n
  for (const [, whole, fraction = '', unit] of text.matchAll(PART)) {
    const scaled = BigInt(whole! + fraction) * UNITS[unit!]!
    const parts = 10n ** BigInt(fraction.length)
    if (scaled % parts !== 0n) return undefined
    ns += scaled / parts
  }
  const ms = ns / 1_000_000n
  return ns % 1_000_000n === 0n && ms <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(ms) : undefined
}
