import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { validate } from '../../src/cli/commands/validate.ts'
import { parseUsd, UNLIMITED } from '../../src/domain/money.ts'
import { createFolderLimits, limitsOf } from '../../src/team/folder-limits.ts'
import { createFolderTeams } from '../../src/team/folder-teams.ts'
import { formatProblems } from '../../src/team/problems.ts'
import { parseLimits } from '../../src/team/read-limits.ts'

const GOOD = `limits:
  - { tenant: acme, per: day, max_cost: 25.00 }
  - { tenant: '*', per: day, max_cost: 10 }
  - { team: research, per: month, max_cost: 300, max_tokens: 50000000 }
  - { tag: customer, tenant: acme, per: day, max_cost: 0.000001 }
`
const problemsOf = (text: string) => formatProblems(parseLimits(text, { file: 'limits.yaml' }).problems)

describe('limits.yaml', () => {
  const { rules } = parseLimits(GOOD, { file: 'limits.yaml' })
  const run = (tenant: string, team: string, tags = {}) =>
    limitsOf(rules!, { tenant, team, tags }).map((l) => [l.name, l.per, l.limit.usd, l.limit.tok])

  test('says what holds for a run: the tenant by name before all of them, its team, the value of its tag', () => {
    expect(run('acme', 'crew')).toEqual([['tenant', 'day', parseUsd('25'), UNLIMITED]])
    expect(run('other', 'research')).toEqual([
      ['tenant', 'day', parseUsd('10'), UNLIMITED],
      ['team research', 'month', parseUsd('300'), 50_000_000n],
    ])
    expect(run('acme', 'crew', { customer: 'x y' })).toEqual([
      ['tag ["customer","x y"]', 'day', 1_000_000n, UNLIMITED],
      ['tenant', 'day', parseUsd('25'), UNLIMITED],
    ])
    expect(run('other', 'crew', { customer: 'x' })).toHaveLength(1)
  })

  test('has amounts that no float has touched', () => {
    const limitOf = (usd: string) =>
      parseLimits(`limits: [{ per: day, max_cost: ${usd} }]`, { file: 'x' }).rules?.[0]?.limit
    expect(limitOf('12345678.123456789012')?.usd).toBe(12_345_678_123_456_789_012n)
    expect(limitOf('0.1000000000000000055')).toBeUndefined()
  })

  test.each([
    ['', '1:1: error: the file is empty; it needs the key "limits" with a list'],
    ['limit: []', '1:1: error: the file needs the key "limits" with a list'],
    ['limits:\n  - 5', '2:5: error: a limit is a mapping, such as'],
    ['limits:\n  - { per: day }', '2:5: error: a limit needs "max_cost" (USD), "max_tokens" or both'],
    ['limits:\n  - { max_cost: 1 }', '2:5: error: a limit needs "per": day or month'],
    ['limits:\n  - { per: week, max_cost: 1 }', '2:12: error: "limits[0].per" must be day or month, not "week"'],
    ['limits:\n  - { per: day, max_cots: 1 }', '2:17: error: "max_cots" is not a key of a limit'],
    ['limits:\n  - { per: day, max_cost: -1 }', '2:27: error: "max_cost" is -1: it must be an amount in USD'],
    ['limits:\n  - { per: day, max_cost: 1e3 }', '2:27: error: "max_cost" is 1e3'],
    ['limits:\n  - { per: day, max_tokens: 1.5 }', '2:29: error: "limits[0].max_tokens" must be a whole number'],
    ['limits:\n  - { per: day, max_tokens: }', '2:29: error: "max_tokens" needs a number'],
    ['limits:\n  - { team: a, tag: b, per: day, max_cost: 1 }', '2:16: error: a limit is of a team or of a tag'],
    ['limits:\n  - { tag: "", per: day, max_cost: 1 }', '2:12: error: "tag" must be a name'],
    ['limits:\n  - { tenant: a/b, per: day, max_cost: 1 }', '2:15: error: "a/b" is no name of a tenant'],
    [
      'limits:\n  - &a { per: day, max_cost: 1 }\n  - { per: day, max_cost: 2 }',
      '3:5: error: this limit stands here twice',
    ],
    ['limits: [', 'error: YAML'],
  ])('%j is refused by line and column', (text, message) => {
    expect(problemsOf(text)).toContain(message)
    expect(parseLimits(text, { file: 'limits.yaml' }).rules).toBeUndefined()
  })
})

describe('the folder of teams', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'limits-'))
  })
  afterAll(() => rm(folder, { recursive: true }))
  const write = async (text: string | Uint8Array, at: number) => {
    await writeFile(join(folder, 'limits.yaml'), text)
    await utimes(join(folder, 'limits.yaml'), at, at)
  }
  const log = { info: () => {}, warn: () => {}, error: () => {} }
  const run = { tenant: 'acme', team: 'crew', tags: {} }

  test('without the file nothing is limited; with it its limits hold, as they are now; a wrong one throws', async () => {
    const limits = createFolderLimits(folder)
    expect([await limits.of(run), await limits.requiredTags('acme')]).toEqual([[], []])
    await write(GOOD, 1_000)
    expect(await limits.of(run)).toHaveLength(1)
    expect([await limits.requiredTags('acme'), await limits.requiredTags('other')]).toEqual([['customer'], []])
    await write('limits: []', 2_000)
    expect(await limits.of(run)).toEqual([])
    await write('limits: [5]', 3_000)
    await expect(limits.of(run)).rejects.toThrow('limits.yaml:1:10: error: a limit is a mapping')
  })

  test('the file may have a byte order mark, and is UTF-8', async () => {
    const limits = createFolderLimits(folder)
    await write(`\ufeff${GOOD}`, 3_100)
    expect(await limits.of(run)).toHaveLength(1)
    await write(Uint8Array.of(0x23, 0xfc), 3_200)
    await expect(limits.of(run)).rejects.toThrow('limits.yaml is not UTF-8 text: see byte 1; save it as UTF-8')
  })

  test('the file is no team', async () => {
    await write(GOOD, 4_000)
    expect(await createFolderTeams(folder, { log }).list()).toEqual([])
  })

  test('subledger validate reads it', async () => {
    const [out, err]: [string[], string[]] = [[], []]
    const io = { out: (s: string) => out.push(s), err: (s: string) => err.push(s) } as never
    const file = join(folder, 'limits.yaml')
    await write(GOOD, 5_000)
    expect(await validate.run(io, [file])).toBe(0)
    expect(out).toEqual([`${file}: good (4 limits)`])
    await write('limits: [5]', 6_000)
    expect(await validate.run(io, [file])).toBe(2)
    expect(err.join()).toContain('limits.yaml:1:10: error: a limit is a mapping')
  })
})

test('the file goes to every function that may spend, or looks after runs', async () => {
  const { functions } = parse(await readFile(join(import.meta.dirname, '../../serverless.yml'), 'utf8'))
  const patterns = (name: string): string[] => functions[name].package.patterns
  for (const name of ['http', 'startRun']) expect(patterns(name)).toContain('teams/**')
  for (const name of ['worker', 'sweep', 'deadLetter']) expect(patterns(name)).toContain('teams/limits.yaml')
})
