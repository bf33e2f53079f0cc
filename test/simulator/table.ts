/** The table as one invocation reaches it: each of the four calls is one call to a port. */
import type { Item, TableClient } from '../../src/store/table-client.ts'
import { describeChange, nameOfKey } from './describe.ts'
import type { Invocation, World } from './world.ts'

export function faultyTable(world: World, inv: Invocation): TableClient {
  const { table } = world

  /** An applied write is looked at at once, whoever may still hear of it. */
  function applied(sk: string, item: Item, how: 'put' | 'update'): void {
    world.writtenAt.set(sk, world.now)
    const before = world.options.trace ? world.raw.get(sk) : undefined
    if (world.options.trace) {
      world.raw.set(sk, item)
      world.note(inv, `   ${nameOfKey(world, sk)}: ${describeChange(before, item)}`)
    }
    if (String(item.pk).includes('#LIMIT#')) return world.invariants.limitWritten(item)
    world.invariants.written(inv, world.mirror.apply(item), how)
  }

  return {
    get: (request) =>
      world.port(
        inv,
        'read',
        () => `get ${nameOfKey(world, request.key.sk)}${request.consistent ? '' : ' (may be stale)'}`,
        async () => {
          const answer = await table.get(request)
          if (answer.item) world.invariants.read(inv, [answer.item])
          return answer
        },
      ),
    query: (request) =>
      world.port(
        inv,
        'read',
        () => `query ${Object.values(request.values).map(String).join(' ')}`,
        async () => {
          const answer = await table.query(request)
          if (request.index === undefined) world.invariants.read(inv, answer.items)
          return answer
        },
      ),
    put: (request) =>
      world.port(
        inv,
        'write',
        () => `put ${nameOfKey(world, String(request.item.sk))}`,
        async () => {
          const answer = await table.put(request)
          if (answer.written) applied(String(request.item.sk), request.item, 'put')
          else world.note(inv, '   REFUSED')
          return answer
        },
      ),
    delete: (request) =>
      world.port(
        inv,
        'write',
        () => `delete ${nameOfKey(world, request.key.sk)}`,
        () => table.delete(request),
      ),
    update: (request) =>
      world.port(
        inv,
        'write',
        () => `update ${nameOfKey(world, request.key.sk)}`,
        async () => {
          const answer = await table.update(request)
          if (answer.written) {
            applied(request.key.sk, answer.item, 'update')
            world.invariants.read(inv, [answer.item])
          } else {
            world.note(inv, `   REFUSED: ${request.condition}`)
            world.invariants.refused(inv)
          }
          return answer
        },
      ),
  }
}
