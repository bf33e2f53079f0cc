/** An OpenID Connect issuer on loopback: a discovery document, a key set, and tokens good and bad. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT } from 'jose'

export interface Issuer {
  readonly url: string
  /** a token of the newest key; `undefined` takes a claim away */
  token(claims?: Claims): Promise<string>
  /** signs with a new key from now on; the old ones stay in the set unless they are told to go */
  rotate(options?: { readonly keepOld: boolean }): Promise<void>
  /** how often the key set was asked for */
  keyReads(): number
  /** the set is not answered for a while */
  fail(failing: boolean): void
  /** tokens that prove nothing, by what is wrong with them */
  forged(): Promise<readonly (readonly [what: string, token: string])[]>
  close(): Promise<void>
}

export interface Claims {
  readonly [claim: string]: unknown
}

export const AUDIENCE = 'subledger-tests'
const ALG = 'ES256'

interface Key {
  readonly kid: string
  readonly privateKey: CryptoKey
  readonly publicKey: CryptoKey
  readonly jwk: JWK
}

let made = 0
async function newKey(): Promise<Key> {
  const kid = `key-${++made}`
  const { privateKey, publicKey } = await generateKeyPair(ALG, { extractable: true })
  return { kid, privateKey, publicKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: ALG, use: 'sig' } }
}

const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

export async function startIssuer(): Promise<Issuer> {
  let keys = [await newKey()]
  let reads = 0
  let failing = false
  const server = createServer((req, res) => {
    const answer = (status: number, body: object) =>
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (req.url === '/.well-known/openid-configuration')
      return answer(200, { issuer: url, jwks_uri: `${url}/keys`, id_token_signing_alg_values_supported: [ALG] })
    if (req.url !== '/keys') return answer(404, {})
    reads++
    if (failing) return answer(500, {})
    answer(200, { keys: keys.map((k) => k.jwk) })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const now = () => Math.floor(Date.now() / 1000)
  const payload = (claims: Claims) => ({
    iss: url,
    aud: AUDIENCE,
    sub: 'somebody',
    iat: now(),
    exp: now() + 3_600,
    tenant: 'acme',
    scope: 'read run approve admin',
    ...claims,
  })
  const sign = (claims: Claims, key = keys.at(-1)!, header: object = {}) =>
    new SignJWT(payload(claims))
      .setProtectedHeader({ alg: ALG, kid: key.kid, ...header })
      .sign(key.privateKey, { crit: { x: true } })

  return {
    url,
    token: (claims = {}) => sign(claims),
    async rotate({ keepOld } = { keepOld: true }) {
      keys = [...(keepOld ? keys : []), await newKey()]
    },
    keyReads: () => reads,
    fail: (value) => (failing = value),
    async forged() {
      const key = keys.at(-1)!
      const stranger = await newKey()
      const good = await sign({})
      const [head = '', body = '', signature = ''] = good.split('.')
      const spki = Buffer.from(await exportSPKI(key.publicKey))
      const shared = (secret: Uint8Array) =>
        new SignJWT(payload({})).setProtectedHeader({ alg: 'HS256', kid: key.kid }).sign(secret)
      return [
        ['expired', await sign({ exp: now() - 3_600 })],
        ['without an end', await sign({ exp: undefined })],
        ['not valid yet', await sign({ nbf: now() + 3_600 })],
        ['of another issuer', await sign({ iss: 'https://other.example' })],
        ['of an issuer that only begins alike', await sign({ iss: `${url}/` })],
        ['for another audience', await sign({ aud: 'another-api' })],
        ['for nobody in particular', await sign({ aud: undefined })],
        ['of nobody', await sign({ sub: undefined })],
        ['of a number', await sign({ sub: 42 })],
        ['of an object', await sign({ sub: { name: 'somebody' } })],
        ['of a list', await sign({ sub: ['somebody'] })],
        ['of null', await sign({ sub: null })],
        ['of an empty name', await sign({ sub: '' })],
        ['of a name with a line break', await sign({ sub: 'some\nbody' })],
        ['of a name with half of a surrogate pair', await sign({ sub: 'some\ud800body' })],
        ['of a name that is too long', await sign({ sub: 'x'.repeat(1_025) })],
        ['of another key under the same name', await sign({}, stranger, { kid: key.kid })],
        ['of a key that the issuer does not have', await sign({}, stranger)],
        ['with its own key in it', await sign({}, stranger, { kid: key.kid, jwk: stranger.jwk })],
        ['with an address of its own keys', await sign({}, stranger, { kid: key.kid, jku: 'http://127.0.0.1:1/keys' })],
        ['alg none, unsigned', `${base64({ alg: 'none', kid: key.kid })}.${body}.`],
        ['alg none, with the signature of a good one', `${base64({ alg: 'none', kid: key.kid })}.${body}.${signature}`],
        ['HS256 with the public key (PEM) as the secret', await shared(spki)],
        ['HS256 with the public key (JWK) as the secret', await shared(Buffer.from(JSON.stringify(key.jwk)))],
        ['HS256 with the coordinate of the public key', await shared(Buffer.from(key.jwk.x!, 'base64url'))],
        ['with other claims than were signed', `${head}.${base64(payload({ tenant: 'globex' }))}.${signature}`],
        ['with a header that must be understood and is not', await sign({}, key, { crit: ['x'], x: 1 })],
        ['cut off', good.slice(0, -20)],
        ['no token at all', 'hello'],
        ['two dots and nothing else', '..'],
        ['longer than a token can be', `${good}${'x'.repeat(9_000)}`],
      ]
    },
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Proved tokens that may not do what the route needs, by what is wrong with them. */
export async function powerless(issuer: Issuer): Promise<readonly (readonly [what: string, token: string])[]> {
  return [
    ['without scopes', await issuer.token({ scope: undefined })],
    ['with scopes of something else', await issuer.token({ scope: 'openid profile reader READ' })],
    ['with a scope that is an object', await issuer.token({ scope: { read: true } })],
    ['without a tenant', await issuer.token({ tenant: undefined })],
    ['with a list of tenants', await issuer.token({ tenant: ['acme'] })],
    ['with a tenant that would break a key', await issuer.token({ tenant: 'acme#RUN#1' })],
    ['with an empty tenant', await issuer.token({ tenant: '' })],
    ['with a tenant that is too long', await issuer.token({ tenant: 'a'.repeat(65) })],
  ]
}
