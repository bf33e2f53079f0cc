/** Server-sent events as a client reads them. */
import type { EventView } from '../../src/http/events/session-events.ts'

export interface Sent {
  readonly id: string
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: data of many shapes
  readonly data: any
}

export interface Told {
  /** without the end */
  readonly events: readonly Sent[]
  /** data of the event `end` */
  readonly end: { readonly status: string; readonly round: number } | undefined
  /** the last `id`, of whatever block */
  readonly cursor: string | undefined
  readonly retry: number | undefined
}

export function parseEvents(text: string): Told {
  const events: Sent[] = []
  let [cursor, retry, end]: [string?, number?, Told['end']?] = []
  for (const block of text.split('\n\n')) {
    const fields = new Map<string, string>()
    for (const line of block.split('\n')) {
      const at = line.indexOf(': ')
      if (at > 0) fields.set(line.slice(0, at), line.slice(at + 2))
    }
    cursor = fields.get('id') ?? cursor
    if (fields.has('retry')) retry = Number(fields.get('retry'))
    const data = fields.get('data')
    if (data === undefined) continue
    if (fields.get('event') === 'end') end = JSON.parse(data)
    else events.push({ id: fields.get('id')!, event: fields.get('event')!, data: JSON.parse(data) })
  }
  return { events, end, cursor, retry }
}

/** What was told of each session, in its order; what is the run's alone stands in none. */
export const bySession = (events: readonly EventView[]): { [sessionId: string]: EventView[] } =>
  Object.fromEntries(
    Map.groupBy(
      events.filter((e) => e.sessionId !== null),
      (e) => e.sessionId!,
    ),
  )
