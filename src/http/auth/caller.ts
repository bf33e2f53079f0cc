import { SubledgerError } from '../../domain/errors.ts'
import { allows, type Scope } from './scopes.ts'

/** Who is asking, after it has been proved. */
export interface Caller {
  /** whose data they see */
  readonly tenant: string
  readonly scopes: ReadonlySet<Scope>
}

/**
 * Finds out who stands behind a request.
 * @param env what the platform's adapter hands on beside the request (on Lambda: the event)
 * @throws SubledgerError unauthorized, forbidden, keys_unavailable
 */
export type Identify = (request: Request, env: unknown) => Caller | Promise<Caller>

/**
 * The tenant of a caller who may use a route.
 * @throws SubledgerError unauthorized, forbidden, keys_unavailable
 */
export const admit =
  (identify: Identify) =>
  async (request: Request, env: unknown, scope: Scope): Promise<string> => {
    const caller = await identify(request, env)
    if (allows(caller.scopes, scope)) return caller.tenant
    const has = caller.scopes.size > 0 ? `has ${[...caller.scopes].join(', ')}` : 'has none'
    throw new SubledgerError('forbidden', `This needs the scope "${scope}"; the caller ${has}.`)
  }
