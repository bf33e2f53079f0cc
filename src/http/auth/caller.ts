import { SubledgerError } from '../../domain/errors.ts'
import { allows, type Scope } from './scopes.ts'

/** Who is asking, after it has been proved. */
export interface Caller {
  /** whose data they see */
  readonly tenant: string
  readonly scopes: ReadonlySet<Scope>
  /** what the proof says who they are: the subject of a token, the ARN of a principal */
  readonly name: string
}

/** A caller who may do what he asks for. */
export type Admitted = Pick<Caller, 'tenant' | 'name'>

/**
 * Finds out who stands behind a request.
 * @param env what the platform's adapter hands on beside the request (on Lambda: the event)
 * @throws SubledgerError unauthorized, forbidden, keys_unavailable
 */
export type Identify = (request: Request, env: unknown) => Caller | Promise<Caller>

/**
 * The tenant and the name of a caller who may use a route.
 * @throws SubledgerError unauthorized, forbidden, keys_unavailable
 */
export const admit =
  (identify: Identify) =>
  async (request: Request, env: unknown, scope: Scope): Promise<Admitted> => {
    const caller = await identify(request, env)
    if (allows(caller.scopes, scope)) return { tenant: caller.tenant, name: caller.name }
    const has = caller.scopes.size > 0 ? `has ${[...caller.scopes].join(', ')}` : 'has none'
    throw new SubledgerError('forbidden', `This needs the scope "${scope}"; the caller ${has}.`)
  }
