/** Callers that are killed between two writes. */
import type { EngineContext } from '../../src/engine/context.ts'
import { createStore } from '../../src/store/store.ts'
import type { TableClient } from '../../src/store/table-client.ts'

/** Who works with it is killed when he has made so many writes: those stand, and the events that he sent are lost. */
export function dyingAfter(writes: number, ctx: EngineContext, table: TableClient): EngineContext {
  const killed = new Error('killed')
  let left = writes
  const write = <A, R>(f: (request: A) => Promise<R>) => {
    return async (request: A) => {
      if (left-- <= 0) throw killed
      return f(request)
    }
  }
  const on: TableClient = { ...table, put: write(table.put), update: write(table.update) }
  const { clock, invoker } = ctx
  return { ...ctx, store: createStore(on, clock.now), invoker: { ...invoker, invoke: async () => {} } }
}
