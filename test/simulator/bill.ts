/** The bill is the books: what the provider says it was asked for, against what the table says. */
import type { ResponseSlot } from '../../src/domain/turn.ts'
import type { Bill } from './provider.ts'
import type { World } from './world.ts'

/**
 * 3. Every billed call stands in the books exactly once: at its real cost where anybody heard the answer, at its bound
 * where its driver was lost with it. And nothing stands there that was not billed.
 */
export function checkBill(world: World, fail: (message: string) => void): void {
  const { mirror, provider } = world
  const left = new Map<string, ResponseSlot>()
  for (const s of mirror.headers.keys()) {
    for (const [n, r] of mirror.log(s).responses) left.set(`${s}/${n}/${r.of}`, r)
  }
  for (const bill of provider.bills) {
    const what = `3: call ${bill.n} of ${world.nameOf(bill.sessionId)} by ${bill.driver}`
    const key = `${bill.sessionId}/${bill.n}/${bill.driver}`
    const r = left.get(key)
    left.delete(key)
    if (!r) fail(`${what} was billed and is not in the books`)
    else if (r.outcome === 'none') fail(`${what} was billed and is booked as not made`)
    else if (r.outcome === 'unknown') checkUnknown(bill, r, what, fail)
    else checkKnown(bill, r, what, fail)
  }
  for (const [key, r] of left) {
    const lostBeforeTheCall = r.outcome === 'unknown' || r.outcome === 'none'
    if (!lostBeforeTheCall) fail(`3: call ${key} is booked as ${r.outcome} and was never billed`)
  }
}

function checkUnknown(bill: Bill, r: ResponseSlot, what: string, fail: (message: string) => void): void {
  if (bill.inv.state === 'returned') fail(`${what} is booked as unknown, though its driver came to its end`)
  if (r.cost === 0n) fail(`${what} is booked as unknown at nothing`)
  if (r.cost !== null && bill.cost !== null && r.cost < bill.cost) {
    fail(`${what} is booked as unknown at ${r.cost}, it cost ${bill.cost}`)
  }
  const [bound, tokens] = [r.usage.inputTokens + r.usage.outputTokens, bill.usage.inputTokens + bill.usage.outputTokens]
  if (bound < tokens) fail(`${what} is booked as unknown at ${bound} tokens, it used ${tokens}`)
}

function checkKnown(bill: Bill, r: ResponseSlot, what: string, fail: (message: string) => void): void {
  if (r.cost !== bill.cost) fail(`${what} is booked at ${r.cost}, billed at ${bill.cost}`)
  for (const [kind, n] of Object.entries(bill.usage)) {
    const booked = r.usage[kind as keyof typeof r.usage]
    if (booked !== n) fail(`${what} is booked with ${booked} ${kind}, billed with ${n}`)
  }
  const answered = bill.outcome === 'answered'
  // an answer that the table would not take is booked without its text, as a failure that cost what it cost
  const untold = r.outcome === 'failed' && (r.cause?.startsWith('store:') ?? false) && bill.inv.hurtAt !== undefined
  const fits = untold || (r.outcome === 'failed' ? !answered : answered)
  if (!fits) fail(`${what} is booked as ${r.outcome}, the provider says ${bill.outcome}`)
}
