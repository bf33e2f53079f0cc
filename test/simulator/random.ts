/** Randomness that a seed decides: a stream for what happens, and pure functions of words for what a model says. */
export interface Random {
  /** 0 ≤ x < 1 */
  next(): number
  /** 0 ≤ n < below */
  below(below: number): number
  /** from and to included */
  between(from: number, to: number): number
  chance(p: number): boolean
  pick<T>(among: readonly T[]): T
  /** one of the keys of a table of weights */
  weighted<K extends string>(weights: { readonly [key in K]?: number }): K
}

/** Mulberry32: small, fast, and good enough to choose who is next. */
export function randomFrom(seed: number): Random {
  let a = seed >>> 0
  const next = () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const below = (n: number) => Math.floor(next() * n)
  return {
    next,
    below,
    between: (from, to) => from + below(to - from + 1),
    chance: (p) => next() < p,
    pick: (among) => among[below(among.length)]!,
    weighted: <K extends string>(weights: { readonly [key in K]?: number }): K => {
      const all = Object.entries(weights) as [K, number][]
      let x = next() * all.reduce((sum, [, w]) => sum + w, 0)
      for (const [key, w] of all) if ((x -= w) < 0) return key
      return all.at(-1)![0]
    },
  }
}

/** A stream that is a pure function of the words: the same words, the same stream, whoever asks and when. */
export function randomOf(...words: readonly (string | number)[]): Random {
  let h = 0x811c9dc5
  for (const char of words.join('\u0000')) h = Math.imul(h ^ char.charCodeAt(0), 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return randomFrom(h ^ (h >>> 16))
}

const LOWER = '0123456789abcdefghjkmnpqrstvwxyz'

/** A text of base-32 characters. */
export const randomText = (random: Random, length: number): string =>
  Array.from({ length }, () => LOWER[random.below(32)]).join('')
