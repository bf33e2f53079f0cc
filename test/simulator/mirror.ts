/** What stands in the table, item by item, as it was written: the simulator's own copy, read by the store's codecs. */
import type { Run } from '../../src/domain/run.ts'
import type { SessionHeader } from '../../src/domain/session.ts'
import type { Intent, RequestSlot, ResponseSlot, ToolResultSlot } from '../../src/domain/turn.ts'
import { inlineBody } from '../../src/store/bodies.ts'
import { decodeHeader } from '../../src/store/header-codec.ts'
import { parseTurnKey } from '../../src/store/keys.ts'
import { decodeRun } from '../../src/store/run-codec.ts'
import { decodeRequest, decodeResponse, decodeToolResult } from '../../src/store/slot-codec.ts'
import { A } from '../../src/store/table.ts'
import type { Item } from '../../src/store/table-client.ts'

/** One applied write: the item as it was and as it is. */
export type Change =
  | { readonly kind: 'run'; readonly before: Run | undefined; readonly after: Run }
  | { readonly kind: 'header'; readonly before: SessionHeader | undefined; readonly after: SessionHeader }
  | {
      readonly kind: 'request'
      readonly s: string
      readonly before: RequestSlot | undefined
      readonly after: RequestSlot
    }
  | {
      readonly kind: 'response'
      readonly s: string
      readonly before: ResponseSlot | undefined
      readonly after: ResponseSlot
    }
  | {
      readonly kind: 'result'
      readonly s: string
      readonly before: ToolResultSlot | undefined
      readonly after: ToolResultSlot
    }
  | { readonly kind: 'body' }

/** The log of one session. */
export interface Log {
  readonly requests: Map<number, RequestSlot>
  readonly responses: Map<number, ResponseSlot>
  readonly results: Map<string, ToolResultSlot>
}

/** An intent that was recorded, wherever it stands. */
export interface PlacedIntent extends Intent {
  readonly s: string
  readonly n: number
}

export class Mirror {
  run: Run | undefined
  readonly headers = new Map<string, SessionHeader>()
  readonly #logs = new Map<string, Log>()

  log(s: string): Log {
    let log = this.#logs.get(s)
    if (!log) this.#logs.set(s, (log = { requests: new Map(), responses: new Map(), results: new Map() }))
    return log
  }

  /** sessions that have anything in their log */
  get logged(): Iterable<string> {
    return this.#logs.keys()
  }

  apply(item: Item): Change {
    const sk = String(item[A.sk])
    const where = `${item[A.pk]} ${sk}`
    if (sk === 'RUN') {
      const before = this.run
      this.run = decodeRun(item)
      return { kind: 'run', before, after: this.run }
    }
    if (sk.startsWith('SESSION#')) {
      const after = decodeHeader(item)
      const before = this.headers.get(after.sessionId)
      this.headers.set(after.sessionId, after)
      return { kind: 'header', before, after }
    }
    if (!sk.startsWith('TURN#')) return { kind: 'body' }
    const place = parseTurnKey(sk)
    if (place.slot === 'part') return { kind: 'body' }
    const { sessionId: s, n } = place
    const log = this.log(s)
    const body = inlineBody(item, where)
    if (place.slot === 'request') {
      const [before, after] = [log.requests.get(n), decodeRequest(item, n, body, where)]
      log.requests.set(n, after)
      return { kind: 'request', s, before, after }
    }
    if (place.slot === 'response') {
      const [before, after] = [log.responses.get(n), decodeResponse(item, n, body, where)]
      log.responses.set(n, after)
      return { kind: 'response', s, before, after }
    }
    const key = `${n}#${place.index}`
    const [before, after] = [log.results.get(key), decodeToolResult(item, { n, index: place.index }, body, where)]
    log.results.set(key, after)
    return { kind: 'result', s, before, after }
  }

  /** The intent of call n, wherever it was recorded: on the claim, in the request, or packed with the answer before. */
  intents(s: string): PlacedIntent[] {
    const { requests, responses } = this.log(s)
    const found: PlacedIntent[] = []
    const first = this.headers.get(s)?.first
    if (first) found.push({ s, n: 0, ...first })
    for (const [n, r] of requests) if (r.intent) found.push({ s, n, ...r.intent })
    for (const [n, r] of responses) if (r.next) found.push({ s, n: n + 1, ...r.next })
    return found.sort((a, b) => a.n - b.n)
  }

  /** Whether a session's log has been closed for its round: by an end, or by an answer without tool calls. */
  isClosed({ sessionId: s, parentId, round }: SessionHeader): boolean {
    const { requests, responses } = this.log(s)
    const last = Math.max(-1, ...requests.keys(), ...responses.keys())
    // a child's whole log is of the round it was born in
    let at = parentId === null ? 1 : round
    for (let n = 0; n <= last; n++) {
      const r = requests.get(n)
      if (r) at = Math.max(at, r.round)
      if (at !== round) continue
      const answer = responses.get(n)
      if (r?.end || answer?.end) return true
      if (answer?.outcome === 'accepted' && answer.message?.toolCalls.length === 0) return true
    }
    return false
  }
}
