/** Who is known, and how, is settled when a function starts: nothing deployed goes without, and nothing is guessed. */
import { describe, expect, test } from 'vitest'
import { type Place, readAuth } from '../../src/config-auth.ts'
import type { Admitted } from '../../src/http/auth/caller.ts'
import { doorOf } from '../../src/http/auth/identify.ts'
import type { Scope } from '../../src/http/auth/scopes.ts'

type Env = { readonly [name: string]: string }
const oidc: Env = {
  SUBLEDGER_AUTH: 'oidc',
  SUBLEDGER_OIDC_ISSUER: 'https://issuer.example/tenant',
  SUBLEDGER_OIDC_AUDIENCE: 'api, other-api',
}
const ACCOUNT = '123456789012'
const iam = (...principals: object[]): Env => ({
  SUBLEDGER_AUTH: 'iam',
  SUBLEDGER_IAM_PRINCIPALS: JSON.stringify(principals),
})
const rule = (principal: string, tenant = 'acme', scopes: readonly Scope[] = ['read']) => ({
  principal,
  tenant,
  scopes,
})

test('what is not set has its usual value', () => {
  expect(readAuth(oidc, 'deployed')).toEqual({
    kind: 'oidc',
    issuer: 'https://issuer.example/tenant',
    audience: ['api', 'other-api'],
    tenantClaim: 'tenant',
    scopeClaim: 'scope',
    scopePrefix: '',
    algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    toleranceSeconds: 5,
    keysMaxAgeMs: 600_000,
    keysCooldownMs: 30_000,
  })
  expect(readAuth({}, 'local')).toEqual({ kind: 'none' })
})

test.each<[what: string, env: Env, place: Place, message: string | RegExp]>([
  ['a deployed stage that says nothing', {}, 'deployed', 'SUBLEDGER_AUTH is not set: it must be iam or oidc'],
  ['a deployed stage that lets everybody in', { SUBLEDGER_AUTH: 'none' }, 'deployed', 'SUBLEDGER_AUTH is "none"'],
  ['a word that is not known', { SUBLEDGER_AUTH: 'OIDC' }, 'local', 'must be one of none, iam, oidc'],
  ['signatures that nobody checks', iam(rule(ACCOUNT)), 'local', 'only API Gateway checks signatures'],
  ['an issuer that is not used', { SUBLEDGER_OIDC_ISSUER: 'https://x.example' }, 'local', 'set SUBLEDGER_AUTH to oidc'],
  ['no issuer', { ...oidc, SUBLEDGER_OIDC_ISSUER: '' }, 'deployed', 'SUBLEDGER_OIDC_ISSUER is not set'],
  ['no audience', { ...oidc, SUBLEDGER_OIDC_AUDIENCE: ' , ' }, 'deployed', 'SUBLEDGER_OIDC_AUDIENCE is not set'],
  ['an issuer that is no address', { ...oidc, SUBLEDGER_OIDC_ISSUER: 'issuer' }, 'deployed', 'must be an address'],
  [
    'an issuer with a query',
    { ...oidc, SUBLEDGER_OIDC_ISSUER: 'https://x.example/?a=b' },
    'local',
    'must be an address',
  ],
  [
    'an issuer with a password',
    { ...oidc, SUBLEDGER_OIDC_ISSUER: 'https://a:b@x.example' },
    'local',
    'must be an address',
  ],
  ['an issuer without https', { ...oidc, SUBLEDGER_OIDC_ISSUER: 'http://x.example' }, 'local', 'must begin with https'],
  [
    'a deployed stage with an issuer on its own machine',
    { ...oidc, SUBLEDGER_OIDC_ISSUER: 'http://127.0.0.1:9001' },
    'deployed',
    'must begin with https://',
  ],
  ...['none', 'HS256', 'RS256,HS512', 'rs256'].map((algorithms): [string, Env, Place, string] => [
    `the algorithms ${algorithms}`,
    { ...oidc, SUBLEDGER_OIDC_ALGORITHMS: algorithms },
    'deployed',
    'SUBLEDGER_OIDC_ALGORITHMS has',
  ]),
  ...['61', '-1', '1.5', 'soon'].map((seconds): [string, Env, Place, string] => [
    `a tolerance of ${seconds}`,
    { ...oidc, SUBLEDGER_OIDC_TOLERANCE_SECONDS: seconds },
    'deployed',
    'must be a whole number of seconds from 0 to 60',
  ]),
  ['no principals', { SUBLEDGER_AUTH: 'iam' }, 'deployed', 'SUBLEDGER_IAM_PRINCIPALS is not set'],
  ['principals that are no JSON', { SUBLEDGER_AUTH: 'iam', SUBLEDGER_IAM_PRINCIPALS: '{' }, 'deployed', 'is not JSON'],
  ['an empty list of principals', iam(), 'deployed', 'must be a JSON list'],
  ['a principal that is no ARN', iam(rule('ops')), 'deployed', 'entry 1: "ops" is neither'],
  ['everybody', iam(rule(ACCOUNT), rule('*')), 'deployed', 'entry 2: "*" is neither'],
  ['roles of any account', iam(rule('arn:aws:iam::*:role/ops')), 'deployed', 'is neither'],
  ['a session in place of a role', iam(rule(`arn:aws:sts::${ACCOUNT}:assumed-role/ops/x`)), 'deployed', 'is neither'],
  ['a tenant that is none', iam(rule(ACCOUNT, 'a#b')), 'deployed', '"tenant" must be'],
  ['a scope that is none', iam({ ...rule(ACCOUNT), scopes: ['write'] }), 'deployed', '"scopes" must be'],
  ['no scopes', iam({ ...rule(ACCOUNT), scopes: [] }), 'deployed', '"scopes" must be'],
  ['a word too many', iam({ ...rule(ACCOUNT), tenants: 'x' }), 'deployed', '"tenants" is not known here'],
])('%s is refused', (_what, env, place, message) => {
  expect(() => readAuth(env, place)).toThrow(message)
})

test('an issuer on this machine is for this machine', () => {
  expect(readAuth({ ...oidc, SUBLEDGER_OIDC_ISSUER: 'http://127.0.0.1:9001' }, 'local')).toMatchObject({ kind: 'oidc' })
})

describe('a principal of AWS', () => {
  const door = doorOf(
    readAuth(
      iam(
        rule(`arn:aws:iam::${ACCOUNT}:role/ops-*`, 'ops', ['admin']),
        rule(`arn:aws:iam::${ACCOUNT}:role/path/of/reader`, 'acme', ['read']),
        rule(`arn:aws:iam::${ACCOUNT}:user/staff/*`, 'staff', ['read', 'run']),
        rule('210987654321', 'other', ['read']),
      ),
      'deployed',
    ),
    'nobody',
  )
  const request = new Request('https://api.example/v1/runs')
  const asked = async (userArn: unknown, scope: Scope = 'read') => {
    const env = { event: { requestContext: { authorizer: { iam: { userArn } } } } }
    const admitted = (await door.tenantOf(request, env, scope)) as Admitted
    expect(admitted.name).toBe(userArn)
    return admitted.tenant
  }

  test.each([
    [`arn:aws:sts::${ACCOUNT}:assumed-role/ops-night/i-0123`, 'ops'],
    [`arn:aws:sts::${ACCOUNT}:assumed-role/reader/session@x`, 'acme'],
    [`arn:aws:iam::${ACCOUNT}:user/staff/anna`, 'staff'],
    ['arn:aws:iam::210987654321:user/whoever', 'other'],
    ['arn:aws:iam::210987654321:root', 'other'],
    ['arn:aws-cn:sts::210987654321:assumed-role/any/session', 'other'],
  ])('%s is of tenant %s', async (arn, tenant) => {
    expect(await asked(arn)).toBe(tenant)
  })

  test.each([
    `arn:aws:sts::${ACCOUNT}:assumed-role/ops/x`,
    `arn:aws:sts::${ACCOUNT}:assumed-role/xops-night/x`,
    `arn:aws:sts::${ACCOUNT}:assumed-role/other/ops-night`,
    `arn:aws:sts::${ACCOUNT}:assumed-role/reader2/x`,
    `arn:aws:sts::111111111111:assumed-role/ops-night/x`,
    `arn:aws:iam::${ACCOUNT}:user/ops-night`,
    `arn:aws:iam::${ACCOUNT}:user/staff/anna/more`,
    `arn:aws:iam::${ACCOUNT}:user/xstaff/anna`,
    `arn:aws:sts::${ACCOUNT}:federated-user/ops-night`,
    `arn:aws:iam::${ACCOUNT}:root`,
    `arn:aws:sts::${ACCOUNT}:assumed-role/ops-night/x\narn:aws:iam::210987654321:root`,
    `arn:aws:iam::210987654321:user/who\u0085ever`,
    `arn:aws:iam::210987654321:user/who\ud800ever`,
    `arn:aws:iam::210987654321:user/${'x'.repeat(1_000)}`,
    'anonymous',
    '',
  ])('%j is of none: 403', async (arn) => {
    await expect(asked(arn)).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('may do what its scopes say', async () => {
    const anna = `arn:aws:iam::${ACCOUNT}:user/staff/anna`
    expect(await asked(anna, 'run')).toBe('staff')
    await expect(asked(anna, 'approve')).rejects.toMatchObject({ code: 'forbidden' })
    expect(await asked(`arn:aws:sts::${ACCOUNT}:assumed-role/ops-1/x`, 'approve')).toBe('ops')
  })

  test('that the gateway does not name is nobody: 401, whatever the request claims', async () => {
    const claims = { jwt: { claims: { tenant: 'acme', scope: 'admin' } }, lambda: { tenant: 'acme' } }
    const headers = {
      authorization: 'AWS4-HMAC-SHA256 Credential=AKIA',
      'x-amzn-iam-user-arn': `arn:aws:iam::${ACCOUNT}:root`,
    }
    for (const authorizer of [undefined, {}, claims, { iam: {} }, { iam: { userArn: 7 } }])
      await expect(
        door.tenantOf(new Request(request, { headers }), { event: { requestContext: { authorizer } } }, 'read'),
      ).rejects.toMatchObject({ code: 'unauthorized' })
    await expect(door.tenantOf(request, undefined, 'read')).rejects.toMatchObject({ code: 'unauthorized' })
  })
})

test('with tokens, claims of the gateway are worth nothing', async () => {
  const door = doorOf(readAuth(oidc, 'deployed'), 'nobody')
  const authorizer = {
    jwt: { claims: { tenant: 'acme', scope: 'read', iss: oidc.SUBLEDGER_OIDC_ISSUER, aud: 'api' }, scopes: ['read'] },
    lambda: { tenant: 'acme', scopes: 'read' },
    iam: { userArn: `arn:aws:iam::${ACCOUNT}:root` },
    claims: { tenant: 'acme' },
  }
  const env = { event: { requestContext: { authorizer } } }
  await expect(door.tenantOf(new Request('https://api.example/v1/runs'), env, 'read')).rejects.toMatchObject({
    code: 'unauthorized',
  })
})
