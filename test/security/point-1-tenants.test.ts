/** Nothing of one tenant is there for another: the app itself, without a network in front of it. */
import { afterAll, beforeAll, describe } from 'vitest'
import { readAuth } from '../../src/config-auth.ts'
import { doorOf } from '../../src/http/auth/identify.ts'
import { type Embedded, startEmbedded } from '../../src/local/embedded.ts'
import { AUDIENCE, type Issuer, startIssuer } from '../support/oidc-issuer.ts'
import { tenantChecks } from './front-door.ts'

describe('two tenants', () => {
  let issuer: Issuer
  let embedded: Embedded
  beforeAll(async () => {
    issuer = await startIssuer()
    const env = { SUBLEDGER_AUTH: 'oidc', SUBLEDGER_OIDC_ISSUER: issuer.url, SUBLEDGER_OIDC_AUDIENCE: AUDIENCE }
    const door = doorOf(readAuth(env, 'local'), 'local')
    embedded = await startEmbedded({ dataDir: null, teamsDir: 'test/offline/teams', env: {}, work: true, door })
  })
  afterAll(async () => {
    await embedded.stop()
    await issuer.close()
  })
  tenantChecks(() => ({ issuer, url: 'http://localhost', fetch: embedded.fetch }))
})
