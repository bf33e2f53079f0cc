import { type Amount, divide, isZero, min, sub, times, UNLIMITED, ZERO } from './money.ts'
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

/** Bytes of UTF-8 that one token stands for at most: text of any language stays well below it. */
export const TOKEN_BYTES = 16

/**
 * A lower bound of a prompt's tokens: a token for every 16 bytes of its texts. What a provider puts around them is left out.
 * Only long runs of one character have fewer tokens.
 */
export const inputFloor = (texts: readonly string[]): number =>
  Math.max(1, Math.floor(texts.reduce((sum, text) => sum + byteLength(text), 0) / TOKEN_BYTES))

/** The most that a call may cost: every input token at the dearest rate, every output token up to the cap. */
export function holdOf(estimate: number, cap: number, price: Price | null): Amount {
  const usd = price ? BigInt(estimate) * dearestInput(price) + BigInt(cap) * price.output : 0n
  return { usd, tok: BigInt(estimate + cap) }
}

export const isUnlimited = (limit: Amount): boolean => limit.usd >= UNLIMITED && limit.tok >= UNLIMITED
/** A limit of 0 blocks everything, calls that cost nothing too. */
export const isBlocked = (limit: Amount): boolean => limit.usd === 0n || limit.tok === 0n

/** A child gets at most this part of what is not limited: enough for 1,000 and theirs. */
const UNLIMITED_PARTS = 1_000
/** Holds of one call that a child is given at birth where money is short; what it needs beyond, it borrows. */
const HOLDS_AT_BIRTH = 4

const KINDS = ['usd', 'tok'] as const
/** Money and tokens one by one: what is not limited is dealt out otherwise than what is. */
const each = (of: (kind: 'usd' | 'tok') => bigint): Amount => ({ usd: of('usd'), tok: of('tok') })

/**
 * How much each of `count` children gets of `avail`, and how many can be funded. The others are born with nothing and
 * wait for what comes back.
 * @param hold what one call of the dearest of them may cost
 * @param weight how many sessions with a model each of them stands for (a group: up to 100)
 */
export function sharesFor(
  avail: Amount,
  count: number,
  options: { limit: Amount; hold: Amount; weight: number },
): { share: Amount; funded: number } {
  const { limit } = options
  const least = times(options.hold, options.weight)
  const parts = BigInt(Math.max(UNLIMITED_PARTS, 2 * count))
  const dealt = (part: Amount) => each((k) => (limit[k] >= UNLIMITED ? avail[k] / parts : part[k]))
  const share = dealt(min(times(least, HOLDS_AT_BIRTH), divide(avail, count)))
  const limited = KINDS.filter((k) => limit[k] < UNLIMITED)
  if (limited.every((k) => share[k] >= least[k])) return { share, funded: count }
  const fits = limited.map((k) => (least[k] === 0n ? BigInt(count) : avail[k] / least[k]))
  const n = [...fits, BigInt(count)].reduce((a, b) => (a < b ? a : b))
  // also where nobody is funded it says what one of them needs about
  return { share: dealt(least), funded: n > 0n ? Number(n) : 0 }
}

/**
 * How a share is divided into what a session may spend itself (`own`) and what it may give away. A leaf owns all of it;
 * a list owns nothing, because it calls no model.
 */
export function divideShare(
  share: Amount,
  options: { kind: 'leaf' | 'delegating' | 'list'; limit: Amount; hold: Amount },
): { own: Amount; avail: Amount } {
  const { kind, limit, hold } = options
  const own =
    kind === 'leaf'
      ? share
      : kind === 'list' || isZero(share)
        ? ZERO
        : each((k) => (limit[k] >= UNLIMITED ? share[k] / 2n : share[k] < hold[k] ? share[k] : hold[k]))
  return { own, avail: sub(share, own) }
}

/** A session that needs more of its own takes some calls' holds beyond it, but no more than this part of what is there. */
const HOLDS_AHEAD = 3n
const PART_AHEAD = 4n

/** What to take out of `avail` where `needed` is missing for a call of this hold: a little more, so that it lasts. */
export const takeAhead = (needed: Amount, hold: Amount, avail: Amount): Amount =>
  each((k) => {
    const spare = (avail[k] - needed[k]) / PART_AHEAD
    const ahead = hold[k] * HOLDS_AHEAD
    return needed[k] + (spare <= 0n ? 0n : spare < ahead ? spare : ahead)
  })

/** Whether 80 per cent of a limit are spent, in money or in tokens. A limit of 0 is blocked, and not nearly spent. */
export const isNearlySpent = (limit: Amount, spent: Amount): boolean =>
  KINDS.some((k) => limit[k] > 0n && limit[k] < UNLIMITED && spent[k] * 5n >= limit[k] * 4n)

/** What is above zero of it. */
export const positive = (a: Amount): Amount => each((k) => (a[k] > 0n ? a[k] : 0n))

/**
 * The largest output cap at which a call costs no more than `funds`; undefined: below `least` tokens it is not made.
 * @param price the dearest rates that the call may be charged; null: money does not matter
 */
export function affordableCap(
  funds: Amount,
  call: { estimate: number; cap: number; price: Price | null; least: number },
): number | undefined {
  const { estimate, cap, price, least } = call
  const input = holdOf(estimate, 0, price)
  const left = sub(funds, input)
  if (left.usd < 0n || left.tok < 0n) return undefined
  const byMoney = price && price.output > 0n ? left.usd / price.output : BigInt(cap)
  const most = [byMoney, left.tok, BigInt(cap)].reduce((a, b) => (a < b ? a : b))
  return most >= BigInt(least) ? Number(most) : undefined
}
