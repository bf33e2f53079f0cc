import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'

/** Another process works on the same data. */
export class DataInUseError extends Error {
  override readonly name = 'DataInUseError'

  constructor(dir: string, pid: number) {
    super(`The data under ${dir} is in use by another process (${pid}).`)
  }
}

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

/**
 * Takes a data folder for this process. The owner's file may be left over from a process that was killed, so it counts only
 * while its process is there and answers on its port: process ids are used again.
 * @throws DataInUseError
 */
export async function lockData(dir: string): Promise<DataLock> {
  await mkdir(dir, { recursive: true })
  const file = join(dir, FILE)
  const mine = (port: number) => JSON.stringify({ pid: process.pid, port } satisfies Owner)
  if (!(await create(file, mine(0)))) {
    const owner = await read(file)
    if (owner && (await isThere(owner))) throw new DataInUseError(dir, owner.pid)
    await rm(file, { force: true })
    // of two that find a dead owner at once, one creates the file
    if (!(await create(file, mine(0)))) throw new DataInUseError(dir, (await read(file))?.pid ?? 0)
  }
  return {
    announce: (port) => writeFile(file, mine(port)),
    release: () => rm(file, { force: true }),
  }
}

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
