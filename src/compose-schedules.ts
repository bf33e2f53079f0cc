/** Schedules that stand in a file beside the teams: `schedules.yaml`. Read for the functions, and for the template. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Document, isAlias, isPair, isScalar, parseDocument, type Scalar, visit } from 'yaml'
import { SubledgerError } from './domain/errors.ts'
import { SCHEDULE_ID } from './domain/ids.ts'
import { plainDecimal } from './domain/money.ts'
import { isObject } from './domain/objects.ts'
import type { Schedule } from './domain/schedule.ts'
import { NotUtf8, readUtf8 } from './domain/text.ts'
import { readBody } from './http/schedules.ts'
import { checkBody, scheduleBody } from './http/schemas.ts'
import type { Schedules } from './ports.ts'

export const SCHEDULES_FILE = 'schedules.yaml'

/** A schedule of a file; one that is not enabled is there, and does not tick. */
export interface FileSchedule extends Schedule {
  readonly enabled: boolean
}

/**
 * @returns none where there is no file
 * @throws Error that names the file, the schedule and what is wrong with it
 */
export async function readSchedules(dir: string): Promise<readonly FileSchedule[]> {
  const file = join(dir, SCHEDULES_FILE)
  let text: string
  try {
    text = readUtf8(await readFile(file))
  } catch (e) {
    if (e instanceof NotUtf8) throw new Error(`${file} ${e.message}; save it as UTF-8`)
    if ((e as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw e
  }
  const { schedules, errors } = parseSchedules(text, file)
  if (errors.length > 0) throw new Error(errors.join('\n'))
  return schedules
}

/** @returns what stands in a file, and a line for each thing that is wrong, with the file and the schedule's name */
export function parseSchedules(
  text: string,
  file: string,
): { readonly schedules: readonly FileSchedule[]; readonly errors: readonly string[] } {
  const wrong = (what: string) => ({ schedules: [], errors: [`${file}: ${what}`] })
  let value: unknown
  try {
    const document = parseDocument(text)
    if (document.errors.length > 0) throw document.errors[0]
    keepMoney(document)
    value = document.toJS() ?? {}
  } catch (e) {
    return wrong(`it is not valid YAML: ${(e as Error).message.split('\n')[0]!.replace(/:$/, '')}`)
  }
  if (!isObject(value)) return wrong('it must be a map with the key "schedules"')
  const { schedules: map = {}, ...others } = value
  const [other] = Object.keys(others)
  if (other !== undefined) return wrong(`the key "${other}" is not known: there is "schedules" alone`)
  if (!isObject(map)) return wrong('schedules must be a map of names')
  const schedules: FileSchedule[] = []
  const errors: string[] = []
  for (const [id, body] of Object.entries(map)) {
    try {
      schedules.push(read(id, body))
    } catch (e) {
      if (!(e instanceof WrongSchedule)) throw e
      errors.push(`${file}: schedules.${id}: ${e.message}`)
    }
  }
  return { schedules, errors }
}

/** Makes texts of amounts that stand there as numbers, since no double has all their digits. */
function keepMoney(document: Document): void {
  visit(document, {
    Pair(_, pair, path) {
      const above = path.at(-2)
      if (!isPair(above) || keyOf(above) !== 'budget' || keyOf(pair) !== 'usd') return
      const amount = isAlias(pair.value) ? pair.value.resolve(document) : pair.value
      if (!isScalar(amount) || typeof amount.value !== 'number' || amount.source === undefined) return
      const text = plainDecimal(amount.source)
      // what an alias names may be a count elsewhere
      if (isAlias(pair.value)) pair.value = document.createNode(text)
      else amount.value = text
    },
  })
}

const keyOf = ({ key }: { readonly key: unknown }): unknown => (isScalar(key) ? (key as Scalar).value : key)

/** What is wrong with one schedule. */
class WrongSchedule extends Error {}

function read(id: string, body: unknown): FileSchedule {
  const fail = (what: string): never => {
    throw new WrongSchedule(what)
  }
  if (!SCHEDULE_ID.test(id)) return fail('a name has letters, digits, - and _, at most 64')
  if (!isObject(body)) return fail('must be a map')
  const { enabled = true, ...rest } = body
  if (typeof enabled !== 'boolean') return fail('enabled must be true or false')
  try {
    return { ...readBody(checkBody(scheduleBody, rest), id, 0), enabled }
  } catch (e) {
    if (!SubledgerError.is(e)) throw e
    return fail(e.issues.map((i) => `${i.path.slice(1).replaceAll('/', '.')} ${i.message}`).join('; '))
  }
}

/** @param tenant whose schedules they are */
export function createFileSchedules(dir: string, tenant: string): Schedules {
  const enabled = async () => (await readSchedules(dir)).filter((s) => s.enabled)
  return {
    list: async (of) => (of === tenant ? enabled() : []),
    get: async (ref) => (ref.tenant === tenant ? (await enabled()).find((s) => s.id === ref.id) : undefined),
  }
}
