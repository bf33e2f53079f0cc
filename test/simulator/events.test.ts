/**
 * Readers of events look at runs while everything goes wrong there, from replicas that lag behind, and come back with a
 * cursor again and again: each is told what is derived at the end, no less and nothing twice.
 */
import { expect, test } from 'vitest'
import { childSessionId, rootSessionId } from '../../src/domain/ids.ts'
import type { RunRef, SessionRef } from '../../src/domain/run.ts'
import { definitionOf } from '../../src/engine/definition.ts'
import { Follower } from '../../src/http/events/follower.ts'
import type { EventView } from '../../src/http/events/session-events.ts'
import { TreePlace } from '../../src/http/events/tree-place.ts'
import type { Store } from '../../src/ports.ts'
import { createStore } from '../../src/store/store.ts'
import { bySession } from '../support/events.ts'
import { type Random, randomFrom } from './random.ts'
import { runScenario, worldOf } from './run-seed.ts'
import { type Scenario, scenarioOf } from './scenario.ts'

/** A client that keeps nothing but what it was told and the last cursor. */
class Reader {
  readonly told: EventView[] = []
  readonly #watched: string | undefined
  #cursor: string | undefined

  constructor(watched: string | undefined) {
    this.#watched = watched
  }

  /** @param most events that it takes before its connection breaks */
  async look(store: Store, ref: RunRef, consistent = false, most = Number.POSITIVE_INFINITY): Promise<void> {
    const run = await store.getRun(ref)
    if (!run || (this.#watched && !(await isShown(store, { ...ref, sessionId: this.#watched })))) return
    const place = new TreePlace(ref.runId, this.#watched, 'scope')
    if (this.#cursor !== undefined && !place.goTo(this.#cursor)) throw new Error(`${this.#cursor} is refused`)
    const team = await definitionOf({ store, teams: this as never }, run)
    const follower = new Follower({ store, ref, team, place, watched: this.#watched })
    await follower.look(consistent)
    for (let i = 0; i < most; i++) {
      const next = follower.next()
      if (!next) break
      this.told.push(next.event)
      this.#cursor = next.cursor
    }
  }
}

/** As the route asks: a group is no session outside. */
async function isShown(store: Store, ref: SessionRef): Promise<boolean> {
  const header = await store.getHeader(ref)
  return header !== undefined && header.kind !== 'group'
}

const WATCHED: readonly ((runId: string) => string | undefined)[] = [
  () => undefined,
  rootSessionId,
  (runId) => childSessionId(rootSessionId(runId), 0),
]

const scenarioFor = (seed: number) => scenarioOf(seed, randomFrom(seed * 2654435761))
const isSmall = ({ size }: Scenario) => size !== 'large' && size !== 'long list'

/** @returns what was told, to all kinds of readers */
async function seedWithReaders(seed: number): Promise<EventView[]> {
  const scenario = scenarioFor(seed)
  if (!isSmall(scenario)) return []
  const world = worldOf(scenario, { trace: false })
  const store = createStore(world.table)
  const random: Random = randomFrom(seed)
  let readers: Reader[] | undefined
  let runId = ''
  const outcome = await runScenario(scenario, world, async (ref) => {
    runId = ref.runId
    readers ??= WATCHED.flatMap((of) => [new Reader(of(runId)), new Reader(of(runId))])
    if (!random.chance(0.2)) return
    for (const reader of readers)
      if (random.chance(0.5)) await reader.look(store, ref, random.chance(0.1), random.between(0, 8))
  })
  expect(outcome.broken).toBeUndefined()
  const ref = { tenant: 'local', runId }
  const events: EventView[] = []
  for (const [i, of] of WATCHED.entries()) {
    const whole = new Reader(of(runId))
    await whole.look(store, ref, true)
    events.push(...whole.told)
    for (const reader of readers!.slice(2 * i, 2 * i + 2)) {
      await reader.look(store, ref, true)
      expect({ seed, ...bySession(reader.told) }).toEqual({ seed, ...bySession(whole.told) })
      expect({ seed, warning: warnings(reader.told).at(-1) }).toEqual({ seed, warning: warnings(whole.told).at(-1) })
      const warned = warnings(reader.told).map((w) => w.budgetSeq)
      expect(warned).toEqual([...new Set(warned)].sort((a, b) => a - b))
    }
  }
  return events
}

/** In 75 and 122, a reader that trusts a log read from a replica, or what replaces a lost call, is told something else; in the last two a budget is nearly spent. */
const SEEDS = [...Array.from({ length: 30 }, (_, i) => i + 1), 75, 122, 92, 239]
/** Teams in which people are asked. */
const ASKING = Array.from({ length: 200 }, (_, i) => i + 200)
  .filter((seed) => isSmall(scenarioFor(seed)) && scenarioFor(seed).team.permissions)
  .slice(0, 20)

const warnings = (events: readonly EventView[]) => events.filter((e) => e.type === 'budget.warning')
const count = (events: readonly EventView[], type: EventView['type']) => events.filter((e) => e.type === type).length

test('whatever crashes, every reader is told the same of each session', async () => {
  const events: EventView[] = []
  for (const seed of SEEDS) events.push(...(await seedWithReaders(seed)))
  expect(events.length).toBeGreaterThan(1_000)
  expect(count(events, 'budget.warning')).toBeGreaterThan(0)
}, 300_000)

test('also of what people are asked, and what they say', async () => {
  const events: EventView[] = []
  for (const seed of ASKING) events.push(...(await seedWithReaders(seed)))
  expect(count(events, 'approval.decided')).toBeGreaterThan(100)
  // some are open when their session is stopped
  expect(count(events, 'approval.asked')).toBeGreaterThan(count(events, 'approval.decided'))
}, 300_000)
