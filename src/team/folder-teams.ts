import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { SubledgerError } from '../domain/errors.ts'
import type { TeamDefinition } from '../domain/team.ts'
import { type NotUtf8, readUtf8 } from '../domain/text.ts'
import type { Logger, Teams } from '../ports.ts'
import { MAX_TEAM_BYTES, type ParsedTeam, parseTeam, TOO_LARGE } from './parse-team.ts'
import { formatProblems } from './problems.ts'
import type { CheckScript } from './read-model.ts'
import { MAX_NAME_BYTES, NAME } from './reader.ts'

export interface FolderOptions {
  readonly checkScript?: CheckScript
  readonly log: Logger
}

/** A file as it was read; read again when its time or size changes. */
interface Cached extends ParsedTeam {
  readonly mtimeMs: number
  readonly size: number
}

/**
 * The teams in a folder: each `NAME.yaml` or `NAME.yml` but `schedules` and `limits` is the team NAME, `.yaml` goes before `.yml`. Other files and
 * folders inside are not looked at. Names are compared with what is in the folder and never made into a path.
 * Methods throw Error when the folder cannot be read.
 */
export function createFolderTeams(dir: string, options: FolderOptions): Teams {
  const cache = new Map<string, Cached>()

  function parse(file: string, bytes: Uint8Array): ParsedTeam {
    const { checkScript } = options
    let text: string
    try {
      text = readUtf8(bytes)
    } catch (e) {
      return refused(file, `the file ${(e as NotUtf8).message}; save it as UTF-8`)
    }
    return parseTeam(text, { file, ...(checkScript && { checkScript }) })
  }

  async function load(file: string): Promise<Cached> {
    const path = join(dir, file)
    const { mtimeMs, size } = await stat(path)
    const known = cache.get(file)
    if (known && known.mtimeMs === mtimeMs && known.size === size) return known
    const parsed = size > MAX_TEAM_BYTES ? refused(file, TOO_LARGE) : parse(file, await readFile(path))
    const loaded = { ...parsed, mtimeMs, size }
    if (!parsed.team) options.log.warn('a team file is not valid', { file, problems: formatProblems(parsed.problems) })
    cache.set(file, loaded)
    return loaded
  }

  /** Files by team name. */
  async function files(): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    const entries = await readdir(dir, { withFileTypes: true }).catch((cause: unknown) => {
      throw new Error(`the folder of team files "${dir}" cannot be read`, { cause })
    })
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const extension = extname(entry.name)
      const name = entry.name.slice(0, -extension.length || undefined)
      // schedules and limits stand beside the teams and are none
      if (
        name === 'schedules' ||
        name === 'limits' ||
        entry.isDirectory() ||
        (extension !== '.yaml' && extension !== '.yml')
      )
        continue
      if (NAME.test(name) && name.length <= MAX_NAME_BYTES && !found.has(name)) found.set(name, entry.name)
    }
    return found
  }

  return {
    async list() {
      const teams: { name: string; description: string }[] = []
      for (const [name, file] of await files()) {
        const team = (await load(file)).team
        if (team) teams.push({ name, description: team.description ?? '' })
      }
      return teams
    },

    async get(name): Promise<TeamDefinition> {
      const found = await files()
      const file = found.get(name)
      if (file === undefined) {
        const names = [...found.keys()]
        const there = names.length > 0 ? `there are: ${names.join(', ')}` : 'the folder of teams is empty'
        const which = NAME.test(name) && name.length <= MAX_NAME_BYTES ? `team "${name}"` : 'team of that name'
        throw new SubledgerError('unknown_team', `There is no ${which}; ${there}.`)
      }
      const { team, problems } = await load(file)
      if (team) return team
      const errors = problems.filter((p) => p.severity === 'error')
      throw new SubledgerError(
        'bad_team',
        `the team file "${file}" has ${errors.length === 1 ? 'an error' : `${errors.length} errors`}: ${errors[0]!.message}`,
        { issues: errors.map((p) => ({ path: `${p.file}:${p.line}:${p.column}`, message: p.message })) },
      )
    },
  }
}

const refused = (file: string, message: string): ParsedTeam => ({
  problems: [{ severity: 'error', file, line: 1, column: 1, path: '', message }],
})
