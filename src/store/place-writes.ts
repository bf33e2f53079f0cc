/** Places of a tenant's runs, and of its polls: a set of texts and their sum in one item of each. */
import type { Place, PlaceStore, Taken } from '../ports/place-store.ts'
import { BadItemError } from './item-reader.ts'
import { type Key, placesKey, pollsKey } from './keys.ts'
import { placeholders, updateItem } from './statements.ts'
import { A } from './table.ts'
import type { Item, TableClient } from './table-client.ts'

const PLACE = /^([0-9A-Z]{26})#(\d{1,7})$/
/** The same text for the same run, so that a place is taken and given back once, whoever repeats it. */
const textOf = (place: Place): string => `${place.runId}#${place.sessions}`

function placesIn(item: Item | undefined, where: string): Place[] {
  const set = item?.[A.places]
  if (set === undefined) return []
  if (!(set instanceof Set)) throw new BadItemError(`${where}: attribute ${A.places} (places) is not a set`)
  return [...set].map((text) => {
    const m = PLACE.exec(String(text))
    if (!m) throw new BadItemError(`${where}: attribute ${A.places} (places) holds ${JSON.stringify(text)}`)
    return { runId: m[1]!, sessions: Number(m[2]) }
  })
}

/** W34, and the same for polls */
async function take(table: TableClient, key: Key, place: Place, most: number): Promise<Taken> {
  const where = `${key.pk} ${key.sk}`
  const condition = 'NOT contains(#places, :place) AND (attribute_not_exists(#held) OR #held <= :room)'
  const result = await updateItem(
    table,
    key,
    condition,
    { add: ['#held :sessions', '#places :set'] },
    {
      values: {
        ':place': textOf(place),
        ':set': new Set([textOf(place)]),
        ':sessions': place.sessions,
        ':room': most - place.sessions,
      },
    },
    (item) => placesIn(item, where),
  )
  if (result.written) return { taken: true, places: result.item }
  const { item } = await table.get({ key, consistent: true })
  const places = placesIn(item, where)
  return { taken: places.some((p) => p.runId === place.runId), places }
}

/** W35, and the same for polls */
async function giveBack(table: TableClient, key: Key, place: Place): Promise<void> {
  const condition = 'contains(#places, :place)'
  const update = 'ADD #held :less DELETE #places :set'
  const values = { ':place': textOf(place), ':set': new Set([textOf(place)]), ':less': -place.sessions }
  await table.update({ key, condition, update, ...placeholders([condition, update], { values }) })
}

/** A poll is a place of one. */
const pollOf = (id: string): Place => ({ runId: id, sessions: 1 })

export function placeWrites(table: TableClient): PlaceStore {
  return {
    takePlace: (tenant, place, most) => take(table, placesKey(tenant), place, most),
    givePlaceBack: (tenant, place) => giveBack(table, placesKey(tenant), place),
    async takePoll(tenant, id, most) {
      const { taken, places } = await take(table, pollsKey(tenant), pollOf(id), most)
      return { taken, polls: places.map((p) => p.runId) }
    },
    givePollBack: (tenant, id) => giveBack(table, pollsKey(tenant), pollOf(id)),
  }
}
