import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { readAuth } from './config-auth.ts'
import { doorOf } from './http/auth/identify.ts'
import type { AuthSettings } from './http/auth/settings.ts'
import { type Embedded, type EmbeddedOptions, startEmbedded, TENANT } from './local/embedded.ts'
import { LocalError } from './local/local-error.ts'

export interface LocalOptions extends Omit<EmbeddedOptions, 'work' | 'env' | 'door'> {
  /** 0: any free one */
  readonly port: number
  readonly env?: EmbeddedOptions['env']
}

export interface Local extends Omit<Embedded, 'fetch'> {
  /** `http://127.0.0.1:port` */
  readonly url: string
  /** how callers are told apart */
  readonly auth: AuthSettings
}

/**
 * The whole product on this machine: API, workers and sweep in one process, on loopback only. With `SUBLEDGER_AUTH=oidc` in
 * its environment it lets in who has a token, as a deployed stage does.
 * @throws LocalError when a setting is wrong
 * @throws LocalError when another process works on the same data
 * @throws LocalError when the port is taken
 */
export async function startLocal(options: LocalOptions): Promise<Local> {
  const { port, env = process.env, ...rest } = options
  const auth = readLocalAuth(env)
  const { fetch, ...embedded } = await startEmbedded({ ...rest, env, work: true, door: doorOf(auth, TENANT) })
  try {
    const server = createAdaptorServer({ fetch })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', resolve)
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return {
      ...embedded,
      url,
      auth,
      async stop() {
        await new Promise<void>((resolve) => {
          server.close(() => resolve())
          // what is being answered may take no longer than the workers' own grace
          if ('closeIdleConnections' in server) server.closeIdleConnections()
          setTimeout(() => 'closeAllConnections' in server && server.closeAllConnections(), 1_000).unref()
        })
        await embedded.stop()
      },
    }
  } catch (e) {
    await embedded.stop()
    const taken = (e as NodeJS.ErrnoException).code === 'EADDRINUSE'
    throw taken ? new LocalError(`Port ${port} of 127.0.0.1 is taken: choose another one.`, { cause: e }) : e
  }
}

function readLocalAuth(env: EmbeddedOptions['env']): AuthSettings {
  try {
    return readAuth(env, 'local')
  } catch (cause) {
    throw new LocalError((cause as Error).message, { cause })
  }
}
