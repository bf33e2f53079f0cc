/** Writes and reads as lines of a trace. */
import { A } from '../../src/store/table.ts'
import type { Attribute, Item } from '../../src/store/table-client.ts'
import type { World } from './world.ts'

const LONG = new Map<string, string>(Object.entries(A).map(([long, short]) => [short, long]))
const QUIET = new Set(['pk', 'sk', 'version', 'updatedAt', 'body', 'runsTenant', 'runsId', 'dueShard'])

/** `SESSION#…` and `TURN#…` by the names of the sessions. */
export function nameOfKey(world: World, sk: string): string {
  const [kind, id, n, part, i] = sk.split('#')
  if (kind === 'SESSION') return `header ${world.nameOf(id!)}`
  if (kind !== 'TURN') return kind!
  const slot = { 0: 'request', 1: 'outcome', 2: `result ${Number(i)} of answer`, 3: 'part of' }[part!]
  return `${slot} ${Number(n)} of ${world.nameOf(id!)}`
}

export function describeItem(item: Item): string {
  return Object.entries(item)
    .map(([short, value]) => [LONG.get(short) ?? short, value] as const)
    .filter(([long]) => !QUIET.has(long))
    .map(([long, value]) => `${long}=${describeValue(value)}`)
    .join(' ')
}

/** What a write changed in an item. */
export function describeChange(before: Item | undefined, after: Item): string {
  if (!before) return `new: ${describeItem(after)}`
  const changes: string[] = []
  for (const short of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const long = LONG.get(short) ?? short
    if (QUIET.has(long)) continue
    const [old, now] = [describeValue(before[short]), describeValue(after[short])]
    if (old !== now) changes.push(`${long}: ${old} → ${now}`)
  }
  return changes.join(', ') || 'nothing changed'
}

function describeValue(value: Attribute | undefined): string {
  if (value === undefined) return '-'
  if (value instanceof Set) return `{${[...value].join(' ')}}`
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`
  if (typeof value === 'object' && value !== null) {
    return JSON.stringify(value, (_, v: unknown) =>
      typeof v === 'bigint' ? `${v}` : v instanceof Set ? [...v] : v,
    ).replaceAll('"', '')
  }
  return String(value)
}
