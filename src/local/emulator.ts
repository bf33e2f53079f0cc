import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { type DataLock, lockData, tablesIn } from './data-lock.ts'

// It has no types, and only its server is used.
const dynalite = createRequire(import.meta.url)('dynalite') as (options: object) => Server

/** A DynamoDB of one's own on loopback. */
export interface Emulator {
  /** `http://127.0.0.1:port` */
  readonly endpoint: string
  stop(): Promise<void>
}

/**
 * Starts the embedded DynamoDB.
 * @param dataDir where it keeps its data (what has been written survives the end of the process); null: in memory
 * @throws LocalError when another process works on the same data
 */
export async function startEmulator(dataDir: string | null): Promise<Emulator> {
  // the emulator would end the process when its data is locked by another one, so that is found out first
  const lock = dataDir === null ? undefined : await lockData(dataDir)
  try {
    const server = dynalite({ createTableMs: 0, ...(dataDir !== null && { path: tablesIn(dataDir) }) })
    const requests = requestsOf(server)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    const { port } = server.address() as AddressInfo
    await lock?.announce(port)
    return { endpoint: `http://127.0.0.1:${port}`, stop: () => stop(server, requests, lock) }
  } catch (e) {
    await lock?.release()
    throw e
  }
}

/** The requests that a server works on. */
interface Requests {
  /** how many it reads or has read and not answered, also of clients that have gone away meanwhile */
  underWay(): number
  /** From now on a request is cut off; one that is read whole is still answered. */
  refuse(): void
}

function requestsOf(server: Server): Requests {
  const underWay = new Map<ServerResponse, IncomingMessage>()
  let refusing = false
  // before the emulator's own listener
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    if (refusing) return request.destroy()
    underWay.set(response, request)
    const end = response.end.bind(response)
    response.end = ((...args: Parameters<typeof end>) => {
      underWay.delete(response)
      return end(...args)
    }) as typeof end
    // nobody will answer what was never read whole
    request.once('close', () => {
      if (!request.complete) underWay.delete(response)
    })
  })
  // after it: it throws, where nobody can catch it, when a client goes away in the middle of a body
  server.on('request', (request: IncomingMessage) => request.removeAllListeners('error').on('error', () => {}))
  return {
    underWay: () => underWay.size,
    refuse: () => {
      refusing = true
      for (const request of underWay.values()) if (!request.complete) request.destroy()
    },
  }
}

const PATIENCE_MS = 10_000

async function stop(server: Server, requests: Requests, lock: DataLock | undefined): Promise<void> {
  // A write of several steps whose database is closed between two of them throws where nobody can catch it.
  requests.refuse()
  for (let waited = 0; requests.underWay() > 0 && waited < PATIENCE_MS; waited += 5) await wait(5)
  await new Promise<void>((resolve, reject) => {
    server.close((e) => (e ? reject(e) : resolve()))
    // connections that clients keep for later would hold the server open
    server.closeAllConnections()
  })
  await lock?.release()
}
