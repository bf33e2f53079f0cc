import type { Store } from '../ports.ts'
import type { EngineContext } from './context.ts'

/** How long after its deadline an invocation may still be writing; the platform kills it at the deadline itself. */
const MARGIN_MS = 2_000

/**
 * A context whose store and invoker refuse to work once the invocation is over. A promise that outlives its invocation
 * (a frozen container thaws for another event) can then never write into a session it no longer drives.
 */
export function fenced(ctx: EngineContext, deadlineAt: number): { ctx: EngineContext; close(): void } {
  let closed = false
  const check = () => {
    if (closed || ctx.clock.now() > deadlineAt + MARGIN_MS) {
      throw new Error('this invocation is over: it may not touch the table any more')
    }
  }
  const guard = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, key, receiver) {
        const value = Reflect.get(object, key, receiver)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          check()
          return value.apply(object, args)
        }
      },
    })
  return {
    ctx: { ...ctx, store: guard<Store>(ctx.store), invoker: guard(ctx.invoker) },
    close() {
      closed = true
    },
  }
}
