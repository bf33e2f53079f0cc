/** How long the results may be that the engine makes of what sessions have answered. */
import { TOOL_RESULT_BYTES, TOOL_RESULTS_BYTES } from '../../domain/limits.ts'
import { byteLength, cutBytes } from '../../domain/text.ts'
import type { ChildReport } from './children.ts'
import type { Planned } from './plan.ts'

/** Room for the note that a text was cut. */
const NOTE_BYTES = 200

/** Bytes of each result of an answer whose tools show outputs. It follows from the plan alone, so a repeat cuts alike. */
export function bytesPerResult(planned: readonly Planned[]): number {
  const showing = planned.filter(
    (p) => p.kind === 'view' || p.kind === 'list' || p.kind === 'wait' || (p.kind === 'delegate' && p.transfer),
  )
  return Math.min(TOOL_RESULT_BYTES, Math.floor(TOOL_RESULTS_BYTES / Math.max(1, showing.length)))
}

/** A text of at most `max` bytes, which says at its end what is missing. Well-formed, whatever was given. */
export function cutText(text: string, max: number, hint = ''): string {
  if (byteLength(text) <= max) return text.toWellFormed()
  const kept = cutBytes(text, Math.max(0, max - NOTE_BYTES))
  return `${kept}\n[Cut here: these are the first ${byteLength(kept)} of ${byteLength(text)} bytes.${hint && ` ${hint}`}]`
}

/** Bytes that a text takes inside a JSON text, without its quotes. */
const jsonBytes = (text: string): number => byteLength(JSON.stringify(text)) - 2

/** As cutText, but measured as the text stands in JSON, where line breaks and quotes take more. */
function cutJson(text: string, max: number, hint: string): string {
  let bytes = max
  for (;;) {
    const cut = cutText(text, bytes, hint)
    const size = jsonBytes(cut)
    if (size <= max || bytes <= NOTE_BYTES) return cut
    bytes = Math.max(NOTE_BYTES, Math.min(bytes - 1, Math.floor((bytes * max) / size)))
  }
}

/** One report as JSON of about `max` bytes at most. */
export function reportText(report: ChildReport, max: number): string {
  const { output } = report
  if (output === undefined) return JSON.stringify(report)
  const rest = byteLength(JSON.stringify({ ...report, output: '' }))
  return JSON.stringify({ ...report, output: cutJson(output, max - rest, '') })
}

/**
 * Reports of many tasks as JSON of at most `max` bytes. The outputs share what room there is: short ones stand whole, and
 * what they leave is for the long ones. Where even the states have no room, the oldest tasks are left out.
 */
export function reportsText(
  reports: readonly ChildReport[],
  extra: { readonly timed_out?: true },
  max: number,
): string {
  const { kept, left } = newest(reports, Math.floor(max * STATES))
  const note = left > 0 ? { left_out: leftOut(left) } : {}
  const frame = (tasks: readonly ChildReport[]) => JSON.stringify({ ...extra, ...note, tasks })
  const bare = frame(kept.map((r) => (r.output === undefined ? r : { ...r, output: '' })))
  const share = fairShare(
    kept.map((r) => (r.output === undefined ? 0 : jsonBytes(r.output.toWellFormed()))),
    max - byteLength(bare),
  )
  const hint = (id: string) => (kept.length > 1 ? `view_background_agent with ${id} shows more.` : '')
  return frame(
    kept.map((r) => (r.output === undefined ? r : { ...r, output: cutJson(r.output, share, hint(r.task_id)) })),
  )
}

/** A list of states as JSON of about `max` bytes at most: the oldest are left out where they have no room. */
export function statesText(states: readonly ChildReport[], max: number): string {
  const { kept, left } = newest(states, max - NOTE_BYTES)
  return JSON.stringify(left > 0 ? [{ left_out: leftOut(left) }, ...kept] : kept)
}

const leftOut = (count: number): string => `${count} older tasks; view_background_agent shows each by its id`

/** How much of a result the states of tasks may take, with a note for each output that is cut. */
const STATES = 0.5

/** The last reports of which the states, each with room for a cut output's note, take at most `max` bytes. */
function newest(reports: readonly ChildReport[], max: number): { kept: readonly ChildReport[]; left: number } {
  let bytes = 0
  for (let i = reports.length - 1; i >= 0; i--) {
    const r = reports[i]!
    const note = Math.min(NOTE_BYTES, r.output?.length ?? 0)
    bytes += byteLength(JSON.stringify(r.output === undefined ? r : { ...r, output: '' })) + 1 + note
    if (bytes > max && i < reports.length - 1) return { kept: reports.slice(i + 1), left: i + 1 }
  }
  return { kept: reports, left: 0 }
}

/** The most that each may take where all together have so much room, and short ones leave the rest to the others. */
function fairShare(sizes: readonly number[], room: number): number {
  const ordered = [...sizes].sort((a, b) => a - b)
  let left = Math.max(0, room)
  for (const [i, size] of ordered.entries()) {
    const share = Math.floor(left / (ordered.length - i))
    if (size > share) return share
    left -= size
  }
  return ordered.at(-1) ?? 0
}
