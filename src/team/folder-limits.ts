import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SubledgerError } from '../domain/errors.ts'
import type { OuterLimit, Per } from '../domain/outer-limit.ts'
import { type NotUtf8, readUtf8 } from '../domain/text.ts'
import type { OuterLimits } from '../ports.ts'
import type { LimitRule } from './read-limits.ts'

/** The file that stands beside the teams. */
export const LIMITS_FILE = 'limits.yaml'
const NOTHING: readonly LimitRule[] = []

/**
 * The limits over time that stand in `limits.yaml`, beside the team files; none where there is no such file. Read again
 * when it changes. Methods throw Error when it cannot be read or is wrong: then no run starts and no call is made.
 */
export function createFolderLimits(dir: string): OuterLimits {
  const path = join(dir, LIMITS_FILE)
  let known: { readonly mtimeMs: number; readonly size: number; readonly rules: readonly LimitRule[] } | undefined

  async function rules(): Promise<readonly LimitRule[]> {
    let found: { mtimeMs: number; size: number }
    try {
      found = await stat(path)
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code === 'ENOENT') return NOTHING
      throw e
    }
    const { mtimeMs, size } = found
    if (known?.mtimeMs === mtimeMs && known.size === size) return known.rules
    const text = await textOf(path)
    // where there is no file, nothing of YAML is loaded
    const { parseLimits } = await import('./read-limits.ts')
    const { formatProblems } = await import('./problems.ts')
    const parsed = parseLimits(text, { file: LIMITS_FILE })
    if (!parsed.rules) throw wrong(formatProblems(parsed.problems))
    known = { mtimeMs, size, rules: parsed.rules }
    return known.rules
  }

  return {
    of: async (run) => limitsOf(await rules(), run),
    requiredTags: async (tenant) =>
      (await rules())
        .flatMap(({ of, tenant: t }) => (of.kind === 'tag' && (t === null || t === tenant) ? [of.tag] : []))
        .filter((tag, i, all) => all.indexOf(tag) === i),
  }
}

/** @throws SubledgerError bad_team that names the file */
async function textOf(path: string): Promise<string> {
  const bytes = await readFile(path)
  try {
    return readUtf8(bytes)
  } catch (e) {
    throw wrong(`${LIMITS_FILE} ${(e as NotUtf8).message}; save it as UTF-8`)
  }
}

const wrong = (why: string) => new SubledgerError('bad_team', `The limits beside the teams cannot be read: ${why}`)

/** Each limit that applies to a run; one that names the tenant goes before one that means each of them. */
export function limitsOf(rules: readonly LimitRule[], run: Parameters<OuterLimits['of']>[0]): readonly OuterLimit[] {
  const found = new Map<string, OuterLimit & { readonly named: boolean }>()
  for (const { tenant, of, per, limit } of rules) {
    if (tenant !== null && tenant !== run.tenant) continue
    const name = nameOf(of, run)
    if (name === undefined) continue
    const key = keyOf(per, name)
    if (!found.get(key)?.named) found.set(key, { name, per, limit, named: tenant !== null })
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { name, per, limit }]) => ({ name, per, limit }))
}

const keyOf = (per: Per, name: string): string => `${per} ${name}`

/** Undefined: it is not of this run. */
function nameOf(of: LimitRule['of'], run: Parameters<OuterLimits['of']>[0]): string | undefined {
  if (of.kind === 'tenant') return 'tenant'
  if (of.kind === 'team') return of.team === run.team ? `team ${of.team}` : undefined
  return Object.hasOwn(run.tags, of.tag) ? `tag ${JSON.stringify([of.tag, run.tags[of.tag]])}` : undefined
}
