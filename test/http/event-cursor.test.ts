import { expect, test } from 'vitest'
import { TreePlace } from '../../src/http/events/tree-place.ts'
import { randomFrom } from '../simulator/random.ts'

const RUN = '01K74V2QHG0000000000000007'
const SCOPE = 'events of a run'

/** A reader of a list of so many tasks, in groups of 100, each of which it has come to a random place in. */
function placeOf(tasks: number, told: () => number): TreePlace {
  const place = new TreePlace(RUN, undefined, SCOPE)
  for (let i = 0; i < tasks; i++) {
    const node = place.child(place.child(place.root, Math.floor(i / 100)), i % 100)
    for (let n = told(); n > 0; n--) place.tell(node, undefined)
  }
  return place
}

test.each([
  [2_000, 1_000],
  [15_000, 8_000],
])(
  'the cursor of %i sessions in random states has at most %i characters, and leads to the same place',
  (tasks, most) => {
    const { below } = randomFrom(tasks)
    const place = placeOf(tasks, () => below(4))
    const cursor = place.cursor()!
    expect(cursor.length).toBeLessThan(most)
    const again = new TreePlace(RUN, undefined, SCOPE)
    expect(again.goTo(cursor)).toBe(true)
    expect(again.cursor()).toBe(cursor)
    expect(placeOf(tasks, () => 3).cursor()!.length).toBeLessThan(200)
  },
)

test('beyond what a gateway takes there is none', () => {
  const { below } = randomFrom(1)
  expect(placeOf(60_000, () => below(4)).cursor()).toBeUndefined()
})

test.each(['', 'AAAA', '((((', 'x'.repeat(9_000)])('%j leads nowhere', (cursor) => {
  expect(new TreePlace(RUN, undefined, SCOPE).goTo(cursor)).toBe(false)
})

test('one of another run, and one with a letter changed, lead nowhere', () => {
  const cursor = placeOf(5, () => 2).cursor()!
  expect(new TreePlace(RUN, undefined, 'events of another').goTo(cursor)).toBe(false)
  const changed = cursor.slice(0, -3) + (cursor.at(-3) === 'A' ? 'B' : 'A') + cursor.slice(-2)
  expect(new TreePlace(RUN, undefined, SCOPE).goTo(changed)).toBe(false)
})
