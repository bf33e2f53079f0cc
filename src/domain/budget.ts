import { type Amount, divide, isZero, min, times, UNLIMITED, ZERO } from './money.ts'
import { dearestInput, type Price } from './pricing.ts'
import { byteLength } from './text.ts'

/** Bytes allowed for what a provider puts around each message, and around the whole prompt. */
const MESSAGE_OVERHEAD = 32
const PROMPT_OVERHEAD = 512

/**
 * An upper bound of a prompt's tokens: no tokenizer makes more than one token of a byte of UTF-8; tools, roles and the
 * provider's own frame are counted by the bytes of their JSON and an allowance.
 */
export function inputBound(system: string, messages: readonly unknown[], tools: readonly unknown[]): number {
  const bytes = byteLength(system) + byteLength(JSON.stringify(messages)) + byteLength(JSON.stringify(tools))
  return bytes + MESSAGE_OVERHEAD * messages.length + PROMPT_OVERHEAD
}

/** The most that a call may cost: every input token at the dearest rate, every output token up to the cap. */
export function holdOf(estimate: number, cap: number, price: Price | null): Amount {
  const usd = price ? BigInt(estimate) * dearestInput(price) + BigInt(cap) * price.output : 0n
  return { usd, tok: BigInt(estimate + cap) }
}

export const isUnlimited = (limit: Amount): boolean => limit.usd >= UNLIMITED && limit.tok >= UNLIMITED

/** A child of an unlimited run gets at most this part of what its parent may give: enough for 1,000 and theirs. */
const UNLIMITED_PARTS = 1_000
/** Holds of one call that a child is given at birth where money is short; what it needs beyond, it borrows. */
const HOLDS_AT_BIRTH = 4

/**
 * How much each of `count` children gets of `avail`, and how many can be funded. The others are born with nothing and
 * wait for what comes back.
 * @param hold what one call of the dearest of them may cost
 * @param weight how many sessions with a model each of them stands for (a group: up to 100)
 */
export function sharesFor(
  avail: Amount,
  count: number,
  options: { unlimited: boolean; hold: Amount; weight: number },
): { share: Amount; funded: number } {
  if (options.unlimited) return { share: divide(avail, Math.max(UNLIMITED_PARTS, 2 * count)), funded: count }
  const least = times(options.hold, options.weight)
  const share = min(times(least, HOLDS_AT_BIRTH), divide(avail, count))
  if (share.usd >= least.usd && share.tok >= least.tok) return { share, funded: count }
  const fits = (have: bigint, need: bigint) => (need === 0n ? BigInt(count) : have / need)
  const n = [fits(avail.usd, least.usd), fits(avail.tok, least.tok), BigInt(count)].reduce((a, b) => (a < b ? a : b))
  return n <= 0n ? { share: ZERO, funded: 0 } : { share: least, funded: Number(n) }
}

/**
 * How a share is divided into what a session may spend itself (`own`, which never shrinks) and what it may give away.
 * A leaf owns all of it; a list owns nothing, because it calls no model.
 */
export function divideShare(
  share: Amount,
  options: { kind: 'leaf' | 'delegating' | 'list'; unlimited: boolean; hold: Amount },
): { own: Amount; avail: Amount } {
  const own =
    options.kind === 'leaf'
      ? share
      : options.kind === 'list' || isZero(share)
        ? ZERO
        : options.unlimited
          ? divide(share, 2)
          : min(share, options.hold)
  return { own, avail: { usd: share.usd - own.usd, tok: share.tok - own.tok } }
}
