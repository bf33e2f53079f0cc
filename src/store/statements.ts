/**
 * Writes as protocol.md spells them: `#name` stands for the attribute of that long name, `:name` for a value. Names are
 * filled in from the table's map, and so are the words that conditions compare with, so that a statement is complete by
 * what it says.
 */
import type { Key } from './keys.ts'
import { A, type AttributeName } from './table.ts'
import type { Attribute, Item, Names, TableClient, Values } from './table-client.ts'

/** Values that mean the same in every statement. */
const WORDS: Values = {
  ':one': 1,
  ':queued': 'queued',
  ':running': 'running',
  ':waiting': 'waiting',
  ':completed': 'completed',
  ':failed': 'failed',
  ':cancelled': 'cancelled',
  ':unknown': 'unknown',
  ':none': 'none',
}

/** The item is not there yet. */
export const NEW = 'attribute_not_exists(#pk)'
/** The session has not ended. */
export const LIVE = '#status IN (:queued, :running, :waiting)'
export const ENDED = '#status IN (:completed, :failed, :cancelled)'

export interface Extras {
  readonly names?: Names
  /** those that are undefined are left out */
  readonly values?: { readonly [placeholder: string]: Attribute | undefined }
}

/**
 * The names and values of a statement made of these texts.
 * @throws Error when a text mentions what is not given, or a value is given that no text mentions
 */
export function placeholders(texts: readonly string[], extras: Extras = {}): { names: Names; values: Values } {
  const text = texts.join(' ')
  const names: { [placeholder: string]: string } = {}
  const values: { [placeholder: string]: Attribute } = {}
  for (const [placeholder] of text.matchAll(/#\w+/g)) {
    const name = extras.names?.[placeholder] ?? A[placeholder.slice(1) as AttributeName]
    if (name === undefined) throw new Error(`no attribute is known as ${placeholder} (in ${JSON.stringify(text)})`)
    names[placeholder] = name
  }
  for (const [placeholder] of text.matchAll(/:\w+/g)) {
    const given = extras.values?.[placeholder]
    const value = given === undefined ? WORDS[placeholder] : given
    if (value === undefined) throw new Error(`no value is given for ${placeholder} (in ${JSON.stringify(text)})`)
    values[placeholder] = value
  }
  for (const [placeholder, value] of Object.entries(extras.values ?? {}))
    if (value !== undefined && !(placeholder in values))
      throw new Error(`${placeholder} is given, but not used (in ${JSON.stringify(text)})`)
  return { names, values }
}

/** Clauses of an update; those that are empty are left out. */
export interface Clauses {
  readonly set?: readonly string[]
  readonly remove?: readonly string[]
  readonly add?: readonly string[]
  readonly delete?: readonly string[]
}

const clause = (word: string, actions: readonly string[] | undefined): string[] =>
  actions && actions.length > 0 ? [`${word} ${actions.join(', ')}`] : []

/** The text of an update. */
export const updateText = (clauses: Clauses): string =>
  [
    ...clause('SET', clauses.set),
    ...clause('REMOVE', clauses.remove),
    ...clause('ADD', clauses.add),
    ...clause('DELETE', clauses.delete),
  ].join(' ')

/** Parts of a condition, all of which must hold; those that do not apply may be left out as false. */
export const all = (...parts: readonly (string | false)[]): string =>
  parts
    .filter((part) => part !== false)
    .map((part) => (/ OR /.test(part) ? `(${part})` : part))
    .join(' AND ')

/** Puts an item that is not there yet. */
export async function putNew(table: TableClient, item: Item): Promise<'written' | 'already'> {
  const { names } = placeholders([NEW])
  const { written } = await table.put({ item, condition: NEW, names })
  return written ? 'written' : 'already'
}

/** One conditional update of one item, read by `decode` where it was written. */
export async function updateItem<T>(
  table: TableClient,
  key: Key,
  condition: string,
  clauses: Clauses,
  extras: Extras,
  decode: (item: Item) => T,
): Promise<{ written: true; item: T } | { written: false }> {
  const update = updateText(clauses)
  const result = await table.update({ key, condition, update, ...placeholders([condition, update], extras) })
  return result.written ? { written: true, item: decode(result.item) } : { written: false }
}
