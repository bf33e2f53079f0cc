import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { LocalError } from './local-error.ts'

export interface DataLock {
  /** tells on which port of this machine the owner can be found */
  announce(port: number): Promise<void>
  release(): Promise<void>
}

interface Owner {
  readonly pid: number
  /** 0: it is just starting */
  readonly port: number
}

const FILE = 'owner.json'

/** Where a data folder has its tables. */
export const tablesIn = (dir: string): string => join(dir, 'dynamodb')

/** Whether a folder holds books already. */
export const holdsBooks = async (dir: string): Promise<boolean> =>
  (await stat(tablesIn(dir)).catch(() => undefined))?.isDirectory() === true

/**
 * Takes a data folder for this process. The owner's file may be left over from a process that was killed, so it counts only
 * while its process is there and answers on its port: process ids are used again.
 * @throws LocalError when another process works on the same data, or the folder cannot be written
 */
export async function lockData(dir: string): Promise<DataLock> {
  try {
    await mkdir(dir, { recursive: true })
    return await lock(dir, join(dir, FILE))
  } catch (cause) {
    if (cause instanceof LocalError) throw cause
    const { code } = cause as NodeJS.ErrnoException
    throw new LocalError(`The data folder "${dir}" cannot be used (${code}).`, { cause })
  }
}

async function lock(dir: string, file: string): Promise<DataLock> {
  const mine = (port: number) => JSON.stringify({ pid: process.pid, port } satisfies Owner)
  if (!(await create(file, mine(0)))) {
    const owner = await read(file)
    if (owner && (await isThere(owner))) throw inUse(dir, owner)
    await rm(file, { force: true })
    // of two that find a dead owner at once, one creates the file
    if (!(await create(file, mine(0)))) throw inUse(dir, await read(file))
  }
  return {
    announce: (port) => writeFile(file, mine(port)),
    release: () => rm(file, { force: true }),
  }
}

const inUse = (dir: string, owner: Owner | undefined): LocalError =>
  new LocalError(
    `The data under "${dir}" is in use by another process${owner ? ` (${owner.pid})` : ''}. ` +
      'Talk to that one with --url (npm start: --url http://127.0.0.1:4310), or use other data with --data.',
  )

async function create(file: string, text: string): Promise<boolean> {
  try {
    await writeFile(file, text, { flag: 'wx' })
    return true
  } catch (e) {
    if ((e as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw e
  }
}

async function read(file: string): Promise<Owner | undefined> {
  try {
    const value = JSON.parse(await readFile(file, 'utf8')) as Partial<Owner> | null
    return typeof value?.pid === 'number' && typeof value.port === 'number' ? (value as Owner) : undefined
  } catch {
    return undefined
  }
}

async function isThere({ pid, port }: Owner): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch (e) {
    // a process of another user may not be signalled, but it is there
    if ((e as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  return port === 0 ? pid !== process.pid : answers(port)
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const done = (there: boolean) => {
      socket.destroy()
      resolve(there)
    }
    socket.once('connect', () => done(true))
    socket.once('error', () => done(false))
  })
