import { plainJson } from './domain/text.ts'
import type { Logger } from './ports.ts'

export interface JsonLogger extends Logger {
  /** a logger whose lines carry these fields too */
  with(fields: object): JsonLogger
}

/** One JSON object a line: `{time, level, message, …fields}`. Control characters are escaped, so a line stays one line, and moves
 * nothing where it is read. */
export function createJsonLogger(
  write: (line: string) => void = (line) => void process.stdout.write(`${line}\n`),
  always: object = {},
  now: () => number = Date.now,
): JsonLogger {
  const log = (level: string) => (message: string, fields?: object) =>
    write(plainJson({ time: new Date(now()).toISOString(), level, message, ...always, ...fields }, plain))
  return {
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    with: (fields) => createJsonLogger(write, { ...always, ...fields }, now),
  }
}

/** What JSON cannot say: money is a bigint, and an Error would be `{}`. */
function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Error)
    return { name: value.name, message: value.message, stack: value.stack, cause: value.cause }
  return value
}
