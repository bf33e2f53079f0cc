import { SubledgerError } from '../domain/errors.ts'
import { PAGE_BYTES } from '../domain/limits.ts'
import type { SessionRef } from '../domain/run.ts'
import type { Page, Store } from '../ports.ts'
import { bytesOf } from './paging.ts'
import { type MessageView, type Opening, openingMessages, turnMessages } from './views/message.ts'

/** Calls read at once. At least two, so that every read brings a whole turn and the request after it. */
const CALLS_PER_READ = 40
/** The results that a request brings are dated by the answer before it, which is read with it. */
const MOST_BEFORE = 10

/** A place in a transcript: `skip` messages of call `n` have been given; `answered` is the last accepted answer before. */
interface Place {
  readonly n: number
  readonly skip: number
  readonly answered: number
}

/**
 * One page of a session's messages. It ends after `limit` messages, or `maxBytes` of them; there is one on it at least.
 * @param opening read only for the first page; told whether a request slot holds the task
 */
export async function readTranscript(
  store: Pick<Store, 'listSlots'>,
  ref: SessionRef,
  options: { limit: number; after: string | undefined; maxBytes?: number },
  opening: (holdsTask: boolean) => Promise<Opening>,
): Promise<Page<MessageView>> {
  const items: MessageView[] = []
  const maxBytes = options.maxBytes ?? PAGE_BYTES
  let bytes = 0
  let { n, skip, answered } = parsePlace(options.after)
  for (;;) {
    const from = answered < 0 ? n : Math.max(answered, n - MOST_BEFORE)
    const { slots, nextTurn } = await store.listSlots(ref, { from, limit: CALLS_PER_READ })
    // the last turn read needs the request after it, which may be the next read's
    const end = nextTurn === undefined ? Math.max(lastTurn(slots) + 1, 1) : nextTurn - 1
    for (; n < end; n++) {
      const turn = turnMessages(slots, n, answered)
      const holdsTask = (slots.requests.get(0)?.messages.length ?? 0) > 0
      const opened = n === 0 ? openingMessages(await opening(holdsTask)) : []
      const messages = [...opened, ...turn.messages]
      for (; skip < messages.length; skip++) {
        const message = messages[skip]!
        const more = bytesOf(message)
        const full = items.length === options.limit || (items.length > 0 && bytes + more > maxBytes)
        if (full) return { items, next: placeText({ n, skip, answered }) }
        items.push(message)
        bytes += more
      }
      skip = 0
      answered = turn.answered
    }
    if (nextTurn === undefined) return { items }
  }
}

const lastTurn = (slots: { requests: ReadonlyMap<number, unknown>; responses: ReadonlyMap<number, unknown> }): number =>
  Math.max(-1, ...slots.requests.keys(), ...slots.responses.keys())

const placeText = (p: Place): string => `${p.n}.${p.skip}.${p.answered}`

function parsePlace(text: string | undefined): Place {
  if (text === undefined) return { n: 0, skip: 0, answered: -1 }
  const m = /^(\d{1,6})\.(\d{1,6})\.(-1|\d{1,6})$/.exec(text)
  const place = { n: Number(m?.[1]), skip: Number(m?.[2]), answered: Number(m?.[3]) }
  if (m && place.answered < place.n) return place
  throw new SubledgerError('bad_cursor', 'The cursor is not valid here: use "next" of an answer, unchanged.')
}
