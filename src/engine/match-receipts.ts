import type { TeamDefinition } from '../domain/team.ts'
import type { ResponseSlot } from '../domain/turn.ts'
import type { TokenUsage } from '../domain/usage.ts'

/** What a provider says of one call. It names the call, or says when it was made. */
export interface Receipt {
  readonly sessionId?: string | undefined
  /** number of the call in its session */
  readonly turn?: number | undefined
  /** the provider's id of the response */
  readonly responseId?: string | undefined
  /** the provider's id of the model that answered */
  readonly model?: string | undefined
  /** when the provider made the response, epoch ms */
  readonly createdAt?: number | undefined
  readonly usage: TokenUsage
}

/**
 * `settled`: the call was unknown, and is booked now · `known`: it was booked already · `no_call`: the run has no call that
 * it could be of · `ambiguous`: it could be of several, or several receipts of one
 */
export type ReceiptResult = 'settled' | 'known' | 'no_call' | 'ambiguous'

export type Call = ResponseSlot & { readonly sessionId: string }

/** Providers date by whole seconds, and no two clocks agree. */
const CLOCK_MS = 2_000

type Match =
  | { readonly result: 'settled' | 'known'; readonly call: Call; readonly detail: string }
  | { readonly result: 'no_call' | 'ambiguous'; readonly detail: string }

/**
 * Which call each receipt is of: by session and turn, by the response's id, or by model and time where only one fits. A call
 * is charged once: where a receipt may be of one that is booked, it settles no other.
 */
export function matchReceipts(receipts: readonly Receipt[], calls: readonly Call[], team: TeamDefinition): Match[] {
  const { kept, doubtful } = takeTwinsAsOne(receipts)
  const once = [...new Set(kept)]
  const matches = matchOnce(
    once.map((i) => receipts[i]!),
    new Set(once.flatMap((of, i) => (doubtful.has(of) ? [i] : []))),
    calls,
    team,
  )
  const told = new Map(once.map((of, i) => [of, matches[i]!]))
  return kept.map((of, i): Match => {
    const match = told.get(of)!
    return of !== i && match.result === 'settled' ? { ...match, result: 'known', detail: TWICE } : match
  })
}

const TWICE = 'the same receipt stands there more than once'

/** @param doubtful indices of receipts that may be another one's second copy: they settle nothing by their time */
function matchOnce(
  receipts: readonly Receipt[],
  doubtful: ReadonlySet<number>,
  calls: readonly Call[],
  team: TeamDefinition,
): Match[] {
  const byPlace = new Map(calls.map((c) => [`${c.sessionId}/${c.n}`, c]))
  const byResponse = new Map(calls.flatMap((c) => (c.responseId === undefined ? [] : [[c.responseId, c] as const])))
  const named = new Map<Call, number>()
  const name = (call: Call) => named.set(call, (named.get(call) ?? 0) + 1)
  const matches: (Match | undefined)[] = receipts.map((r) => {
    if (r.sessionId !== undefined && r.turn !== undefined) {
      const call = byPlace.get(`${r.sessionId}/${r.turn}`)
      if (!call) return { result: 'no_call', detail: `there is no call ${r.turn} of session ${r.sessionId}` }
      name(call)
      return call.outcome === 'unknown' ? { result: 'settled', call, detail: '' } : known(call, r)
    }
    const call = r.responseId === undefined ? undefined : byResponse.get(r.responseId)
    if (call) name(call)
    return call && known(call, r)
  })
  const others = calls.filter((c) => !named.has(c))
  const found = receipts.map((r, i): Candidates => {
    const fitting = matches[i] ? [] : others.filter((c) => couldBe(r, c, team))
    const open = fitting.filter((c) => c.outcome === 'unknown')
    const booked = fitting.filter((c) => c.outcome !== 'unknown')
    return {
      receipt: r,
      doubtful: doubtful.has(i),
      open,
      booked: booked.filter((c) => sameTokens(c, r)),
      vague: booked.filter((c) => isVague(c) && !sameTokens(c, r)),
    }
  })
  const { taken, used } = takeBooked(found)
  for (const [i, f] of found.entries()) {
    const call = taken.get(f)
    if (call) matches[i] = known(call, f.receipt)
  }
  const fits = found.map((f, i) => (matches[i] ? [] : f.open))
  return matches.map((match, i): Match => {
    if (match) return match.result === 'settled' && named.get(match.call)! > 1 ? several(match.call) : match
    const [call, ...more] = fits[i]!
    if (!call) return { result: 'no_call', detail: 'no call of unknown outcome fits it' }
    const free = [...found[i]!.booked.filter((c) => !used.has(c)), ...found[i]!.vague]
    if (more.length > 0 || free.length > 0) {
      const places = [...fits[i]!, ...free].map((c) => `${placeOf(c)}${c.outcome === 'unknown' ? '' : ' (booked)'}`)
      return { result: 'ambiguous', detail: `it could be ${places.join(', or ')}: say which with sessionId and turn` }
    }
    if (fits.filter((f) => f.includes(call)).length > 1) return several(call)
    if (doubtful.has(i))
      return { result: 'ambiguous', detail: 'another receipt may be of the same response: leave one' }
    return { result: 'settled', call, detail: '' }
  })
}

/**
 * Exports that overlap tell a response twice, and it was charged once. Receipts that have the response's id, and say the
 * same, are one.
 * @returns for each receipt the index of the one that stands for it, and those that may be copies of another
 */
function takeTwinsAsOne(receipts: readonly Receipt[]): { kept: number[]; doubtful: Set<number> } {
  const kept = [...receipts.keys()]
  const doubtful = new Set<number>()
  const twins = Map.groupBy(
    kept.filter((i) => receipts[i]!.responseId !== undefined),
    (i) => receipts[i]!.responseId,
  )
  for (const group of twins.values()) {
    const first = group.find((i) => placeKey(receipts[i]!) !== undefined) ?? group[0]!
    for (const i of group) {
      const place = placeKey(receipts[i]!)
      if (i === first || (place !== undefined && place !== placeKey(receipts[first]!))) continue
      if (sameCharge(receipts[i]!, receipts[first]!)) kept[i] = first
      else for (const one of [i, first]) doubtful.add(one)
    }
  }
  const dated = [...new Set(kept)].filter((i) => receipts[i]!.createdAt !== undefined)
  for (const group of Map.groupBy(dated, (i) => receipts[i]!.createdAt).values())
    for (const i of group) if (group.some((j) => j !== i && couldBeOne(receipts[i]!, receipts[j]!))) doubtful.add(i)
  return { kept, doubtful }
}

const placeKey = ({ sessionId, turn }: Receipt): string | undefined =>
  sessionId === undefined || turn === undefined ? undefined : `${sessionId}/${turn}`

const sameUsage = ({ usage: a }: Receipt, { usage: b }: Receipt): boolean =>
  (Object.keys(a) as (keyof TokenUsage)[]).every((key) => a[key] === b[key])

const sameCharge = (a: Receipt, b: Receipt): boolean => a.model === b.model && sameUsage(a, b)

/** Two receipts of the same time, of which one at least has no id that tells them apart. */
function couldBeOne(a: Receipt, b: Receipt): boolean {
  const apart = a.responseId !== undefined && b.responseId !== undefined
  return !apart && sameUsage(a, b) && (a.model === b.model || a.model === undefined || b.model === undefined)
}

/** The calls that a receipt could be of. */
interface Candidates {
  readonly receipt: Receipt
  /** it may be another one's second copy */
  readonly doubtful: boolean
  readonly open: readonly Call[]
  /** booked with its tokens */
  readonly booked: readonly Call[]
  /** booked with an estimate, so that their tokens say nothing */
  readonly vague: readonly Call[]
}

/**
 * Which receipts are of calls that are booked already. One that fits no other call is. Of those that fit unknown ones as
 * well it is said only where there are more of them than such booked calls, and all fit the same: then each booked call has
 * one of them, whichever it is, since their tokens are the same, and the rest are of the others. Receipts that may be one
 * are not counted.
 * @returns also the booked calls that certainly have their receipt
 */
function takeBooked(found: readonly Candidates[]): { taken: Map<Candidates, Call>; used: Set<Call> } {
  const closed = found.filter((f) => f.open.length === 0)
  const taken = assign(closed)
  const sure = closed.filter((f) => !f.doubtful)
  const contested = new Set(found.flatMap((f) => (f.open.length > 0 ? f.booked : [])))
  const own = assign(sure)
  const used = new Set([...own.values()].filter((c) => contested.has(c) && withoutCall(c, sure) < own.size))
  const groups = Map.groupBy(
    found.flatMap((f) => {
      const booked = f.booked.filter((c) => !used.has(c))
      return f.open.length > 0 && booked.length > 0 ? [{ ...f, booked, found: f }] : []
    }),
    ({ booked, open, vague }) => [booked, open, vague].map((list) => list.map(placeOf).join()).join('/'),
  )
  for (const group of groups.values()) {
    const { booked } = group[0]!
    const others = [...[...groups.values()].filter((g) => g !== group).map((g) => g[0]!), ...closed]
    const rivals = others.some((f) => f.booked.some((c) => booked.includes(c)))
    if (rivals || group.some((f) => f.doubtful) || group.length <= booked.length) continue
    for (const [f, call] of assign(group)) {
      taken.set((f as (typeof group)[number]).found, call)
      used.add(call)
    }
  }
  return { taken, used }
}

/** How many of the receipts could have a booked call of their own if this one were not there. */
const withoutCall = (call: Call, among: readonly Candidates[]): number =>
  assign(among.map((f) => ({ ...f, booked: f.booked.filter((c) => c !== call) }))).size

/** Gives as many receipts as can be a booked call of their own; those that are nearer in time go first. */
function assign(among: readonly Candidates[]): Map<Candidates, Call> {
  const holder = new Map<Call, Candidates>()
  const far = (f: Candidates, c: Call) => Math.abs(f.receipt.createdAt! - c.startedAt)
  const nearest = (f: Candidates) => Math.min(...f.booked.map((c) => far(f, c)))
  const place = (f: Candidates, tried: Set<Call>): boolean =>
    f.booked
      .toSorted((a, b) => far(f, a) - far(f, b))
      .some((c) => {
        if (tried.has(c)) return false
        tried.add(c)
        const before = holder.get(c)
        if (before && !place(before, tried)) return false
        holder.set(c, f)
        return true
      })
  for (const f of among.filter((f) => f.booked.length > 0).sort((a, b) => nearest(a) - nearest(b))) place(f, new Set())
  return new Map([...holder].map(([call, f]) => [f, call]))
}

const placeOf = (call: Call): string => `call ${call.n} of session ${call.sessionId}`

const several = (call: Call): Match => ({
  result: 'ambiguous',
  detail: `several receipts fit ${placeOf(call)}: leave the right one`,
})

const sameTokens = ({ usage }: Call, r: Receipt): boolean =>
  usage.inputTokens === r.usage.inputTokens && usage.outputTokens === r.usage.outputTokens

/** A call that broke off: what it was charged may be another figure than what is booked. */
const isVague = (call: Call): boolean => call.usageSource !== 'reported'

function known(call: Call, r: Receipt): Match {
  const { inputTokens, outputTokens } = call.usage
  const detail = sameTokens(call, r)
    ? 'it was booked with the same tokens'
    : `it was booked with ${inputTokens} input and ${outputTokens} output tokens, the receipt has ${r.usage.inputTokens} and ${r.usage.outputTokens}`
  return { result: 'known', call, detail }
}

/** The provider made the response after the intent was put, and before the call had ended or was written off. */
function couldBe(r: Receipt, call: Call, team: TeamDefinition): boolean {
  if (r.createdAt === undefined || r.createdAt < call.startedAt - CLOCK_MS) return false
  if (r.createdAt > call.startedAt + call.durationMs + CLOCK_MS) return false
  if (r.responseId !== undefined && call.responseId !== undefined && r.responseId !== call.responseId) return false
  const asked = Object.hasOwn(team.models, call.model) ? team.models[call.model]!.model : call.model
  // an answer may name the dated version of the model that was asked for
  const answered = r.model === undefined || r.model === asked || r.model.startsWith(`${asked}-`)
  return answered || r.model === call.answeredBy
}
