/** Server-sent events as a client reads them. */
import { expect } from 'vitest'
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

interface Asks {
  get<T>(path: string, headers?: { [name: string]: string }): Promise<{ status: number; headers: Headers; body: T }>
}

/** What a look at the events of a run is told. */
export async function told(api: Asks, runId: string, query = '', headers = {}): Promise<Told> {
  const { status, body, headers: sent } = await api.get<string>(`/v1/runs/${runId}/events${query}`, headers)
  expect({ status, type: sent.get('content-type') }).toEqual({ status: 200, type: 'text/event-stream' })
  return parseEvents(body)
}

export const typesOf = (t: Told, sessionId: string): string[] =>
  t.events.filter((e) => e.data.sessionId === sessionId).map((e) => e.event)
