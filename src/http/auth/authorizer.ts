import { SubledgerError } from '../../domain/errors.ts'
import type { Logger } from '../../ports.ts'
import { bearerToken, tokenVerifier } from './oidc.ts'
import type { AuthSettings } from './settings.ts'

/** What API Gateway takes for an answer. */
export interface Authorized {
  readonly isAuthorized: boolean
}

/**
 * The gateway's own check, a second lock: whether a request bears a token that the API would take. Its answer is kept by the
 * gateway for the token, not for the route, so scopes are for the API to look at; nothing that it says is handed on.
 */
export function authorizer(
  settings: AuthSettings,
  log: Logger,
): (headers: { readonly [name: string]: string | undefined } | undefined, requestId: string) => Promise<Authorized> {
  if (settings.kind !== 'oidc') throw new Error('SUBLEDGER_AUTH is not oidc: there are no tokens to look at')
  const verify = tokenVerifier(settings)
  return async (headers = {}, requestId) => {
    try {
      const [, header] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'authorization') ?? []
      await verify(bearerToken(header))
      return { isAuthorized: true }
    } catch (e) {
      if (!SubledgerError.is(e)) throw e
      if (e.code === 'keys_unavailable') log.error('token not checked', { requestId, error: String(e.cause) })
      return { isAuthorized: false }
    }
  }
}
