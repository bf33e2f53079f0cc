/**
 * The most tokens that are believed of one count. No model reads or writes as much in one request; a number beyond it is a
 * fault of its sender, and a few of them would leave the safe integers, so that the books could not be read any more.
 */
export const MAX_COUNT = 1_000_000_000

/** A whole number from 0 on, or nothing: NaN, negative numbers, null, text and what no request can have are no counts. */
export const count = (v: unknown): number | undefined =>
  typeof v === 'number' && v >= 0 && v <= MAX_COUNT ? Math.ceil(v) : undefined
