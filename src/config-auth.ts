import { TENANT } from './domain/ids.ts'
import { isIssuerAddress } from './http/auth/discovery.ts'
import { matcher } from './http/auth/iam.ts'
import { SCOPES, type Scope } from './http/auth/scopes.ts'
import { ALGORITHMS, type AuthSettings, type IamPrincipal, type OidcSettings } from './http/auth/settings.ts'

type Env = { readonly [name: string]: string | undefined }

/** Where the settings are for: a stage on AWS, or one's own machine on loopback. */
export type Place = 'deployed' | 'local'

const KINDS = ['none', 'iam', 'oidc']
const DEFAULT_ALGORITHMS = 'RS256,PS256,ES256,EdDSA'
const MAX_TOLERANCE_SECONDS = 60

/**
 * How callers are told apart (`SUBLEDGER_AUTH`). Nothing deployed goes without, and nothing says so by being silent: on
 * one's own machine alone the setting may be left out.
 * @throws Error with the variable's name and what it should be
 */
export function readAuth(env: Env, place: Place): AuthSettings {
  const kind = env.SUBLEDGER_AUTH || (place === 'local' ? 'none' : undefined)
  if (kind === undefined) throw new Error('SUBLEDGER_AUTH is not set: it must be iam or oidc')
  if (!KINDS.includes(kind)) throw new Error(`SUBLEDGER_AUTH is "${kind}": it must be one of ${KINDS.join(', ')}`)
  if (kind !== 'oidc' && place === 'local' && env.SUBLEDGER_OIDC_ISSUER)
    throw new Error(
      `SUBLEDGER_OIDC_ISSUER is set and SUBLEDGER_AUTH is ${kind}: set SUBLEDGER_AUTH to oidc, or unset it`,
    )
  if (kind === 'oidc') return readOidc(env, place)
  if (kind === 'iam') {
    if (place === 'local')
      throw new Error(
        'SUBLEDGER_AUTH is "iam": only API Gateway checks signatures of AWS. Here it must be none or oidc',
      )
    return { kind, principals: readPrincipals(env.SUBLEDGER_IAM_PRINCIPALS) }
  }
  if (place === 'deployed')
    throw new Error('SUBLEDGER_AUTH is "none": a deployed stage must know its callers, so it must be iam or oidc')
  return { kind: 'none' }
}

function readOidc(env: Env, place: Place): OidcSettings {
  return {
    kind: 'oidc',
    issuer: readIssuer(env.SUBLEDGER_OIDC_ISSUER, place),
    audience: list(env, 'SUBLEDGER_OIDC_AUDIENCE', 'the audience of this API, or several separated by commas'),
    tenantClaim: env.SUBLEDGER_OIDC_TENANT_CLAIM || 'tenant',
    scopeClaim: env.SUBLEDGER_OIDC_SCOPE_CLAIM || 'scope',
    scopePrefix: env.SUBLEDGER_OIDC_SCOPE_PREFIX || '',
    algorithms: readAlgorithms(env),
    toleranceSeconds: wholeSeconds(env, 'SUBLEDGER_OIDC_TOLERANCE_SECONDS', 5, MAX_TOLERANCE_SECONDS),
    keysMaxAgeMs: wholeSeconds(env, 'SUBLEDGER_OIDC_KEYS_SECONDS', 600, 86_400) * 1000,
    keysCooldownMs: wholeSeconds(env, 'SUBLEDGER_OIDC_COOLDOWN_SECONDS', 30, 3_600) * 1000,
  }
}

function readIssuer(issuer: string | undefined, place: Place): string {
  const name = 'SUBLEDGER_OIDC_ISSUER'
  if (!issuer)
    throw new Error(`${name} is not set: it must be the address of the issuer, as its tokens have it in "iss"`)
  const url = URL.canParse(issuer) ? new URL(issuer) : null
  if (url === null || `${url.search}${url.hash}${url.username}${url.password}` !== '')
    throw new Error(`${name} is "${issuer}": it must be an address such as https://issuer.example`)
  if (!isIssuerAddress(url, place === 'local'))
    throw new Error(
      `${name} is "${issuer}": it must begin with https://${place === 'local' ? ', or http:// on this machine' : ''}`,
    )
  return issuer
}

function readAlgorithms(env: Env): readonly string[] {
  const name = 'SUBLEDGER_OIDC_ALGORITHMS'
  const given = list({ [name]: env[name] || DEFAULT_ALGORITHMS }, name, 'signature algorithms')
  const known: readonly string[] = ALGORITHMS
  for (const algorithm of given)
    if (!known.includes(algorithm))
      throw new Error(`${name} has "${algorithm}": it must hold some of ${known.join(', ')}, separated by commas`)
  return given
}

function list(env: Env, name: string, what: string): readonly string[] {
  const items = (env[name] ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  if (items.length === 0) throw new Error(`${name} is not set: it must be ${what}`)
  return items
}

function wholeSeconds(env: Env, name: string, fallback: number, most: number): number {
  const text = env[name]
  if (text === undefined || text === '') return fallback
  if (!/^\d{1,6}$/.test(text) || Number(text) > most)
    throw new Error(`${name} is "${text}": it must be a whole number of seconds from 0 to ${most}`)
  return Number(text)
}

function readPrincipals(text: string | undefined): readonly IamPrincipal[] {
  const name = 'SUBLEDGER_IAM_PRINCIPALS'
  const expected = 'a JSON list of {"principal": account or ARN, "tenant": name, "scopes": ["read", …]}'
  if (!text) throw new Error(`${name} is not set: it must be ${expected}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error(`${name} is not JSON: it must be ${expected}`)
  }
  if (!Array.isArray(value) || value.length === 0) throw new Error(`${name} must be ${expected}`)
  return value.map((entry: unknown, i) => {
    try {
      return readPrincipal(entry)
    } catch (e) {
      throw new Error(`${name}, entry ${i + 1}: ${(e as Error).message}`)
    }
  })
}

function readPrincipal(entry: unknown): IamPrincipal {
  const { principal, tenant, scopes, ...more } = (entry ?? {}) as { readonly [key: string]: unknown }
  const unknown = Object.keys(more)
  if (unknown.length > 0) throw new Error(`"${unknown[0]}" is not known here`)
  if (typeof principal !== 'string') throw new Error('"principal" must be an account id or an ARN')
  matcher(principal)
  if (typeof tenant !== 'string' || !TENANT.test(tenant)) throw new Error('"tenant" must be the name of a tenant')
  const known: readonly unknown[] = SCOPES
  if (!Array.isArray(scopes) || scopes.length === 0 || !scopes.every((scope) => known.includes(scope)))
    throw new Error(`"scopes" must be a list of some of ${SCOPES.join(', ')}`)
  return { principal, tenant, scopes: scopes as Scope[] }
}
