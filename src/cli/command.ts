import { parseArgs } from 'node:util'
import { type ExitCode, type Io, UsageError } from './io.ts'

type Options = {
  readonly [name: string]: { readonly type: 'string' | 'boolean'; readonly short?: string; readonly multiple?: boolean }
}

export interface Command {
  /** `run TEAM [INPUT] [--watch]` */
  readonly usage: string
  /** one line */
  readonly summary: string
  readonly run: (io: Io, argv: readonly string[]) => Promise<ExitCode>
}

/** Options of every command that talks to the API. */
export const CONNECTION = {
  url: { type: 'string' },
  auth: { type: 'string' },
  data: { type: 'string' },
  teams: { type: 'string' },
  json: { type: 'boolean' },
} as const satisfies Options

export interface Arguments {
  readonly positionals: readonly string[]
  readonly text: (name: string) => string | undefined
  readonly flag: (name: string) => boolean
  /** of an option that may be given several times */
  readonly texts: (name: string) => readonly string[]
}

/**
 * @param names what the positional arguments are called; those in brackets may be left out, `…` takes any number
 * @throws UsageError
 */
export function readArguments(argv: readonly string[], options: Options, names: readonly string[]): Arguments {
  const { values, positionals } = parse(argv, options)
  const required = names.filter((n) => !n.startsWith('['))
  if (positionals.length < required.length) throw new UsageError(`${required[positionals.length]} is missing.`)
  if (!names.at(-1)?.endsWith('…') && positionals.length > names.length)
    throw new UsageError(`"${positionals[names.length]}" is one argument too many. Quote an input that has spaces.`)
  return {
    positionals,
    text: (name) => values[name] as string | undefined,
    flag: (name) => values[name] === true,
    texts: (name) => (values[name] as string[] | undefined) ?? [],
  }
}

function parse(argv: readonly string[], options: Options) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true })
  } catch (e) {
    if (e instanceof TypeError && 'code' in e && String(e.code).startsWith('ERR_PARSE_ARGS'))
      throw new UsageError(`${e.message.split('. ')[0]}.`)
    throw e
  }
}
