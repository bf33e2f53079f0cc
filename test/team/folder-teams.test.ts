import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SubledgerError } from '../../src/domain/errors.ts'
import type { Logger } from '../../src/ports.ts'
import { createFolderTeams } from '../../src/team/folder-teams.ts'
import { PRICED } from './team-text.ts'

const team = (description: string) => `agents: { root: { model: fast, description: ${description} } }\n${PRICED}`

let dir: string
let warnings: { message: string; fields?: object }[]
const log: Logger = {
  info: () => {},
  warn: (message, fields) => warnings.push({ message, ...(fields && { fields }) }),
  error: () => {},
}
const write = (file: string, text: string | Uint8Array) => writeFile(join(dir, file), text)
const refusal = async (work: Promise<unknown>): Promise<SubledgerError> => {
  const e = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!SubledgerError.is(e)) throw new Error(`not refused: ${String(e)}`)
  return e
}

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'teams-'))
  warnings = []
})
afterEach(() => rm(dir, { recursive: true, force: true }))

describe('a folder of team files', () => {
  test('lists its teams by file name, and leaves out a broken one with one warning', async () => {
    await write('b.yaml', team('second'))
    await write('a.yml', team('first'))
    await write('broken.yaml', 'agents: {}')
    await write('notes.txt', 'no team')
    await write('.hidden.yaml', team('hidden'))
    await write('odd name.yaml', team('odd'))
    await write('.yaml', team('none'))
    await mkdir(join(dir, 'folder.yaml'))
    const teams = createFolderTeams(dir, { log })
    const expected = [
      { name: 'a', description: 'first' },
      { name: 'b', description: 'second' },
    ]
    expect(await teams.list()).toEqual(expected)
    expect(await teams.list()).toEqual(expected)
    expect(warnings).toEqual([
      {
        message: 'a team file is not valid',
        fields: {
          file: 'broken.yaml',
          problems: 'broken.yaml:1:1: error: a team needs at least one agent under "agents"',
        },
      },
    ])
  })

  test('gives a team by name; .yaml goes before .yml', async () => {
    await write('a.yml', team('short'))
    await write('a.yaml', team('long'))
    const teams = createFolderTeams(dir, { log })
    expect(await teams.get('a')).toMatchObject({ name: 'a', description: 'long', agents: [{ name: 'root' }] })
    expect(await teams.list()).toHaveLength(1)
  })

  test('refuses a team that is not there and says which are', async () => {
    await write('a.yaml', team('first'))
    await write('b.yaml', 'agents: {}')
    const e = await refusal(createFolderTeams(dir, { log }).get('c'))
    expect(e.code).toBe('unknown_team')
    expect(e.message).toBe('There is no team "c"; there are: a, b.')
  })

  test('says when there are none', async () => {
    const e = await refusal(createFolderTeams(dir, { log }).get('c'))
    expect(e.message).toBe('There is no team "c"; the folder of teams is empty.')
  })

  test.each([
    '../secret',
    'sub/inner',
    '..',
    '.',
    '',
    'a.yaml',
    '/etc/passwd',
    'a\u0000',
    'A',
    'x'.repeat(1000),
    '__proto__',
  ])('never makes a path of the name %o', async (name) => {
    await mkdir(join(dir, 'teams', 'sub'), { recursive: true })
    await write('secret.yaml', team('outside'))
    await write('teams/a.yaml', team('inside'))
    await write('teams/sub/inner.yaml', team('deeper'))
    const e = await refusal(createFolderTeams(join(dir, 'teams'), { log }).get(name))
    expect(e.code).toBe('unknown_team')
    expect(e.message.length).toBeLessThan(150)
  })

  test('refuses a broken team with file, line and column of every error', async () => {
    await write('a.yaml', 'agents:\n  root:\n    model: openai/gpt-4o\n    hooks: {}\n    modl: x\n')
    const e = await refusal(createFolderTeams(dir, { log }).get('a'))
    expect(e.code).toBe('bad_team')
    expect(e.message).toBe(
      'the team file "a.yaml" has 2 errors: "hooks" has no place on Lambda: hooks run shell commands',
    )
    expect(e.issues).toEqual([
      { path: 'a.yaml:4:5', message: '"hooks" has no place on Lambda: hooks run shell commands' },
      { path: 'a.yaml:5:5', message: '"modl" is not a key of agents.root (did you mean "model"?)' },
    ])
  })

  test('refuses what is no text, and what is too large', async () => {
    await write('bytes.yaml', Uint8Array.of(0x61, 0x3a, 0xff, 0xfe))
    await write('large.yaml', `${team('large')}${'#'.repeat(1_000_000)}`)
    const teams = createFolderTeams(dir, { log })
    expect((await refusal(teams.get('bytes'))).issues).toEqual([
      { path: 'bytes.yaml:1:1', message: 'the file is not UTF-8 text: see byte 2; save it as UTF-8' },
    ])
    expect((await refusal(teams.get('large'))).issues[0]?.message).toBe('the file is larger than 1,000,000 bytes')
  })

  test('reads a file again when it has changed, and only then', async () => {
    await write('a.yaml', team('one'))
    const then = new Date('2026-01-01T00:00:00Z')
    await utimes(join(dir, 'a.yaml'), then, then)
    const teams = createFolderTeams(dir, { log })
    const first = await teams.get('a')
    expect(await teams.get('a')).toBe(first)
    await write('a.yaml', team('two'))
    await utimes(join(dir, 'a.yaml'), then, new Date('2026-01-01T00:00:01Z'))
    expect(await teams.get('a')).toMatchObject({ description: 'two' })
    await write('a.yaml', 'agents: {}')
    expect((await refusal(teams.get('a'))).code).toBe('bad_team')
    await rm(join(dir, 'a.yaml'))
    expect((await refusal(teams.get('a'))).code).toBe('unknown_team')
  })

  test('checks scripts with what it is given', async () => {
    await write(
      'a.yaml',
      'agents: { root: { model: m } }\nmodels: { m: { provider: scripted, provider_opts: { x: 1 } } }\n',
    )
    const checkScript = () => [{ path: '/x', message: 'is not known here' }]
    const e = await refusal(createFolderTeams(dir, { log, checkScript }).get('a'))
    expect(e.issues).toEqual([{ path: 'a.yaml:2:56', message: '"models.m.provider_opts.x" is not known here' }])
  })

  test('that is not there is a fault', async () => {
    const teams = createFolderTeams(join(dir, 'nowhere'), { log })
    await expect(teams.list()).rejects.toThrow(/the folder of team files ".*nowhere" cannot be read/)
    await expect(teams.get('a')).rejects.toThrow(/cannot be read/)
  })
})
