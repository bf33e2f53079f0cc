import { createRequire } from 'node:module'
import type { AddressInfo, Server } from 'node:net'
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
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    const { port } = server.address() as AddressInfo
    await lock?.announce(port)
    return { endpoint: `http://127.0.0.1:${port}`, stop: () => stop(server, lock) }
  } catch (e) {
    await lock?.release()
    throw e
  }
}

async function stop(server: Server, lock: DataLock | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.close((e) => (e ? reject(e) : resolve()))
    // connections that clients keep for later would hold the server open
    if ('closeAllConnections' in server) (server as { closeAllConnections(): void }).closeAllConnections()
  })
  await lock?.release()
}
