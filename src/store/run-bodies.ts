/** Bodies that stand beside RUN, in parts: the frozen team definition and the inputs of rounds. Written once. */
import { GROUP_SIZE } from '../domain/limits.ts'
import { isObject } from '../domain/objects.ts'
import type { RetryInput, RunInput, RunRef, TaskInput } from '../domain/run.ts'
import type { TeamDefinition } from '../domain/team.ts'
import type { Store } from '../ports.ts'
import { joinParts, partBytes, splitBody } from './bodies.ts'
import { BadItemError, ItemReader } from './item-reader.ts'
import { definitionKey, inputKey, type Key } from './keys.ts'
import { putNew } from './statements.ts'
import { A } from './table.ts'
import type { TableClient } from './table-client.ts'

type RunBodies = Pick<Store, 'putDefinition' | 'getDefinition' | 'putInput' | 'getInput' | 'getTask' | 'getTasks'>

export function runBodies(table: TableClient): RunBodies {
  /**
   * Parts that are there already are left alone. A text has one way to be cut, and part 0 is put last, so whoever finds
   * part 0 finds them all, also when two writers put the same text at once.
   */
  async function put(text: string, key: (part: number) => Key): Promise<void> {
    const bytes = Buffer.from(text)
    const pieces = splitBody(bytes).map((piece, part) => ({ ...key(part), ...piece }))
    await Promise.all(pieces.slice(1).map((item) => putNew(table, item)))
    await putNew(table, { ...pieces[0]!, [A.partCount]: pieces.length, [A.partBytes]: bytes.byteLength })
  }

  async function get(key: (part: number) => Key): Promise<unknown> {
    const read = async (part: number) => (await table.get({ key: key(part), consistent: true })).item
    const first = await read(0)
    if (!first) return undefined
    const where = `${key(0).pk} ${key(0).sk}`
    const r = new ItemReader(first, A, where)
    const items = [
      first,
      ...(await Promise.all(Array.from({ length: r.whole('partCount') - 1 }, (_, i) => read(i + 1)))),
    ]
    const pieces = items.map((item, part) => {
      if (!item) throw new BadItemError(`${where}: part ${part} of ${items.length} is missing`)
      return partBytes(item, key(part).sk)
    })
    const text = joinParts(pieces, r.whole('partBytes'), where)
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw new BadItemError(`${where}: it is not JSON`, { cause })
    }
  }

  return {
    putDefinition: (ref: RunRef, hash: string, definition: TeamDefinition) =>
      put(JSON.stringify(definition), (part) => definitionKey(ref, hash, part)),

    async getDefinition(ref: RunRef, hash: string): Promise<TeamDefinition | undefined> {
      const value = await get((part) => definitionKey(ref, hash, part))
      if (value === undefined) return undefined
      if (!isObject(value) || value.shape !== 1 || !Array.isArray(value.agents) || !isObject(value.models))
        throw new BadItemError(`definition ${hash}: it has not the shape of a team definition that this version reads`)
      return value as unknown as TeamDefinition
    },

    /** A list of tasks is stored in chunks, so that a worker reads no more than the chunk in which its own task stands. */
    async putInput(ref: RunRef, round: number, inputRef: string, input: RunInput | RetryInput): Promise<void> {
      const write = (value: unknown, name: string) =>
        put(JSON.stringify(value), (part) => inputKey(ref, round, name, part))
      if ('input' in input || 'retry' in input) return write(input, inputRef)
      const chunks = Math.ceil(input.tasks.length / GROUP_SIZE)
      for (let c = 0; c < chunks; c++)
        await write(input.tasks.slice(c * GROUP_SIZE, (c + 1) * GROUP_SIZE), chunkRef(inputRef, c))
      // last, so that whoever finds it finds its chunks
      await write({ chunks }, inputRef)
    },

    async getInput(ref: RunRef, round: number, inputRef: string): Promise<RunInput | RetryInput | undefined> {
      const value = await get((part) => inputKey(ref, round, inputRef, part))
      if (value === undefined) return undefined
      if (isObject(value) && typeof value.input === 'string') return { input: value.input }
      if (isObject(value) && Array.isArray(value.retry)) return { retry: value.retry as number[] }
      if (!isObject(value) || typeof value.chunks !== 'number')
        throw new BadItemError(`input ${inputRef} of round ${round}: it has neither input, tasks nor places of tasks`)
      const chunks = await Promise.all(
        Array.from({ length: value.chunks }, (_, c) => readChunk(ref, round, inputRef, c)),
      )
      return { tasks: chunks.flat() }
    },

    async getTask(ref: RunRef, round: number, inputRef: string, index: number): Promise<TaskInput | undefined> {
      const chunk = await readChunk(ref, round, inputRef, Math.floor(index / GROUP_SIZE))
      return chunk[index % GROUP_SIZE]
    },

    getTasks: (ref: RunRef, round: number, inputRef: string, first: number): Promise<readonly TaskInput[]> =>
      readChunk(ref, round, inputRef, Math.floor(first / GROUP_SIZE)),
  }

  async function readChunk(ref: RunRef, round: number, inputRef: string, chunk: number): Promise<readonly TaskInput[]> {
    const name = chunkRef(inputRef, chunk)
    const value = await get((part) => inputKey(ref, round, name, part))
    if (!Array.isArray(value)) throw new BadItemError(`input ${name} of round ${round}: there are no tasks`)
    return value as readonly TaskInput[]
  }
}

/** Name of a chunk of a list of tasks. */
const chunkRef = (inputRef: string, chunk: number): string => `${inputRef}-${String(chunk).padStart(3, '0')}`
