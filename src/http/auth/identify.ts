import { type Admitted, admit, type Identify } from './caller.ts'
import { iamCallers } from './iam.ts'
import type { Scope } from './scopes.ts'
import type { AuthSettings } from './settings.ts'

/** What the app needs to know of authentication. */
export interface Door {
  readonly tenantOf: (request: Request, env: unknown, scope: Scope) => string | Promise<Admitted>
  /** `WWW-Authenticate` of a 401 */
  readonly challenge?: string
}

/**
 * The door that the settings ask for.
 * @param tenant whose data everybody sees who needs no proof
 */
export function doorOf(settings: AuthSettings, tenant: string): Door {
  if (settings.kind === 'none') return { tenantOf: () => tenant }
  if (settings.kind === 'iam') return { tenantOf: admit(iamCallers(settings)) }
  // loaded with the first token, so that deployments without tokens do not carry it through their cold starts
  let callers: Promise<Identify> | undefined
  const load = async () => (await import('./oidc.ts')).oidcCallers(settings)
  return {
    challenge: 'Bearer',
    tenantOf: admit(async (request, env) => {
      callers ??= load()
      return (await callers)(request, env)
    }),
  }
}
