import type { Scope } from './scopes.ts'

/** How callers are told apart: by nothing (one's own machine), by AWS's own signatures, or by tokens of an issuer. */
export type AuthSettings = { readonly kind: 'none' } | IamSettings | OidcSettings

export interface IamSettings {
  readonly kind: 'iam'
  /** the first one that fits a caller counts */
  readonly principals: readonly IamPrincipal[]
}

export interface IamPrincipal {
  /**
   * An account id, or the ARN of a role or user (`arn:aws:iam::123456789012:role/ops-*`): `*` stands for any characters
   * but `/`
   */
  readonly principal: string
  readonly tenant: string
  readonly scopes: readonly Scope[]
}

export interface OidcSettings {
  readonly kind: 'oidc'
  /** as `iss` has it, to the last character */
  readonly issuer: string
  /** at least one of them must be in `aud` */
  readonly audience: readonly string[]
  /** the claim that holds the tenant */
  readonly tenantClaim: string
  /** the claim that holds scopes: names separated by spaces, or a list */
  readonly scopeClaim: string
  /** what stands before `read`, `run`, `approve` and `admin` in that claim */
  readonly scopePrefix: string
  /** signature algorithms; never `none` or one with a shared secret */
  readonly algorithms: readonly string[]
  /** seconds that clocks may differ by */
  readonly toleranceSeconds: number
  /** keys are read again after this, and a key that is gone is no longer good */
  readonly keysMaxAgeMs: number
  /** a token of a key that is not known makes the keys be read again, but no sooner than this after the last time */
  readonly keysCooldownMs: number
}

/** Signatures that the holder of the public keys cannot make. */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const
