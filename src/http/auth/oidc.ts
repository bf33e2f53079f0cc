import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify, type RemoteJWKSet } from 'jose'
import { isPrincipal } from '../../domain/approval.ts'
import { SubledgerError } from '../../domain/errors.ts'
import { TENANT } from '../../domain/ids.ts'
import { MAX_PRINCIPAL_BYTES } from '../../domain/limits.ts'
import type { Caller, Identify } from './caller.ts'
import { issuerFetch, readDiscovery } from './discovery.ts'
import { SCOPES } from './scopes.ts'
import type { OidcSettings } from './settings.ts'

/** Longer than any token of an issuer; looked at before anything is taken apart. */
const MAX_TOKEN = 8_192
/** After a failure the issuer is left alone for this long. */
const RETRY_MS = 1_000

/**
 * Callers by the bearer token of an OpenID Connect issuer, verified here in every mode: signature by a key of the issuer's
 * set, algorithm, `iss`, `aud`, `exp`, `nbf`. What an authorizer in front says about the token is not looked at.
 */
export function oidcCallers(settings: OidcSettings): Identify {
  const verify = tokenVerifier(settings)
  return (request) => verify(bearerToken(request.headers.get('authorization')))
}

/**
 * @returns for a token, who it speaks for
 * @throws SubledgerError unauthorized: the token proves nothing; forbidden: it proves someone without a tenant here;
 * keys_unavailable: the issuer does not answer
 */
export function tokenVerifier(settings: OidcSettings): (token: string) => Promise<Caller> {
  const keys = keysOf(settings)
  return async (token) => {
    let claims: JWTPayload
    try {
      const verified = await jwtVerify(token, async (header, input) => (await keys())(header, input), {
        issuer: settings.issuer,
        audience: [...settings.audience],
        algorithms: [...settings.algorithms],
        clockTolerance: settings.toleranceSeconds,
        requiredClaims: ['exp', 'sub'],
      })
      claims = verified.payload
    } catch (e) {
      throw refusal(e)
    }
    // jose looks whether it is there, not what it is; it is stored with what its bearer decides
    const { sub } = claims as { sub?: unknown }
    if (!isPrincipal(sub))
      throw new SubledgerError(
        'unauthorized',
        `The token has no valid claim "sub": it must be a text of 1 to ${MAX_PRINCIPAL_BYTES} bytes without control characters.`,
      )
    const tenant = Object.hasOwn(claims, settings.tenantClaim) ? claims[settings.tenantClaim] : undefined
    if (typeof tenant !== 'string' || !TENANT.test(tenant))
      throw new SubledgerError('forbidden', `The token names no tenant: its claim "${settings.tenantClaim}" must.`)
    const scopes = scopesIn(claims[settings.scopeClaim], settings.scopePrefix)
    return { tenant, scopes, name: sub }
  }
}

/** @throws SubledgerError unauthorized */
export function bearerToken(header: string | null | undefined): string {
  const [, token] = /^bearer +(\S+)$/i.exec(header ?? '') ?? []
  if (token === undefined)
    throw new SubledgerError('unauthorized', 'Send a token of the issuer: "Authorization: Bearer <token>".')
  if (token.length > MAX_TOKEN)
    throw new SubledgerError('unauthorized', `The token is longer than ${MAX_TOKEN} characters.`)
  return token
}

function scopesIn(claim: unknown, prefix: string): Caller['scopes'] {
  const named = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  return new Set(SCOPES.filter((scope) => named.includes(prefix + scope)))
}

/** The issuer's key set, found through its discovery document when the first token comes. */
function keysOf(settings: OidcSettings): () => Promise<RemoteJWKSet> {
  let found: Promise<RemoteJWKSet> | undefined
  let failedAt = 0
  const find = async (): Promise<RemoteJWKSet> => {
    const url = await readDiscovery(settings.issuer)
    return createRemoteJWKSet(url, {
      cacheMaxAge: settings.keysMaxAgeMs,
      cooldownDuration: settings.keysCooldownMs,
      [customFetch]: issuerFetch,
    })
  }
  return () => {
    if (!found && Date.now() - failedAt < RETRY_MS)
      return Promise.reject(new Error('the issuer did not answer just now'))
    found ??= find().catch((e) => {
      found = undefined
      failedAt = Date.now()
      throw e
    })
    return found
  }
}

/** What is wrong with a token, for who sent it; never a part of the token itself. */
function refusal(e: unknown): SubledgerError {
  const no = (detail: string) => new SubledgerError('unauthorized', detail, { cause: e })
  if (e instanceof errors.JWTExpired) return no('The token has expired: get a new one.')
  if (e instanceof errors.JWTClaimValidationFailed) {
    if (e.claim === 'nbf') return no('The token is not valid yet.')
    if (e.claim === 'iss') return no('The token is of another issuer.')
    if (e.claim === 'aud') return no('The token is for another audience.')
    return no(`The token has no valid claim "${e.claim}".`)
  }
  if (e instanceof errors.JOSEAlgNotAllowed) return no('The token is signed with an algorithm that is not accepted.')
  if (e instanceof errors.JWKSNoMatchingKey || e instanceof errors.JWKSMultipleMatchingKeys)
    return no('The token does not name one of the keys of the issuer.')
  if (e instanceof errors.JWSSignatureVerificationFailed) return no('The signature of the token is not valid.')
  if (e instanceof errors.JWTInvalid || e instanceof errors.JWSInvalid || e instanceof errors.JOSENotSupported)
    return no('The token is not a valid signed JWT.')
  return new SubledgerError('keys_unavailable', 'The token cannot be checked now: its issuer does not answer.', {
    cause: e,
  })
}
