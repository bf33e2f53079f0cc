/** Wrong use ends with exit code 2 and a sentence, before anything is started. */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { say } from './terminal.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'subledger-'))
  await writeFile(join(folder, 'no-json'), '[{')
  await writeFile(join(folder, 'file'), '')
})
afterAll(() => rm(folder, { recursive: true }))

describe('wrong use', () => {
  test.each<[argv: string, text: RegExp]>([
    ['', /subledger run TEAM/],
    ['fly', /no command "fly"/],
    ['constructor', /no command "constructor"/],
    ['run', /^TEAM is missing\.\nUse: subledger run TEAM/],
    ['run demo', /neither is there/],
    ['run demo go --tasks x.json', /not from both/],
    ['run demo go on', /"on" is one argument too many\. Quote/],
    ['run demo go --speed 9', /Unknown option '--speed'/],
    ['run demo go --agent', /argument missing/],
    ['budget x', /Give the new budget in USD/],
    ['budget x --tokens many', /--tokens must be a whole number/],
    ['run demo --tasks nowhere.json', /nowhere\.json cannot be read: ENOENT/],
    ['run teams/demo.yaml go --url http://127.0.0.1:1', /use "demo" in place of the file/],
    ['run demo go --teams nowhere', /no folder "nowhere"/],
    ['run ./nowhere.yaml go', /There is no file "\.\/nowhere\.yaml"\. TEAM is the path of a team file, or the name/],
    ['run ./teams go', /"\.\/teams" is a folder\. Say which team of it is meant: subledger run TEAM --teams \.\/teams/],
    ['run ./README.md go', /"\.\/README\.md" is no team file: its name must end in \.yaml/],
    ['estimate demo', /neither is there/],
    ['estimate nobody go', /There is no team "nobody"/],
    ['get', /RUN is missing/],
    ['get a b', /"b" is one argument too many/],
    ['messages a', /SESSION is missing/],
    ['input a', /TEXT is missing/],
    ['approve x', /CALL is missing\.\nUse: subledger approve RUN CALL \[--deny\]/],
    ['approve x y --note', /argument missing/],
    ['cancel', /RUN is missing/],
    ['validate', /FILE is missing/],
    ['validate nowhere.yaml', /nowhere\.yaml: error: cannot be read \(ENOENT\)/],
    ['dev --port 99999', /"99999" is not a port/],
    ['dev --port x', /"x" is not a port/],
    ['dev --teams nowhere', /no folder "nowhere"/],
    ['list --url ftp://x', /not the address of an API/],
    ...['export', 'replay', 'init'].map((name): [string, RegExp] => [
      `${name} x`,
      new RegExp(`"${name}" is not supported by this version`),
    ]),
  ])('subledger %s', async (line, text) => {
    const { code, out, err } = await say(line === '' ? [] : line.split(' '))
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(text)
    expect(err).not.toMatch(/ {4}at /)
  })

  test('a file of tasks that is no JSON', async () => {
    const { code, err } = await say(['run', 'demo', '--tasks', join(folder, 'no-json')])
    expect(code).toBe(2)
    expect(err).toMatch(/is not valid JSON/)
  })

  test('a data folder that cannot be written', async () => {
    const { code, err } = await say(['run', 'demo', 'go', '--data', join(folder, 'file', 'x')])
    expect(code).toBe(2)
    expect(err).toMatch(/The data folder ".*" cannot be used \(ENOTDIR\)/)
  })

  test('a team file whose name cannot name a team', async () => {
    await writeFile(join(folder, 'my team.yaml'), 'agents: {}')
    const { code, err } = await say(['run', join(folder, 'my team.yaml'), 'go', '--data', join(folder, 'd')])
    expect(code).toBe(2)
    expect(err).toMatch(/my team\.yaml" cannot name a team: letters, digits/)
  })

  test.each(['list', 'get x', 'sessions x', 'calls x', 'usage', 'audit x', 'cancel x', 'input x y', 'budget x 1'])(
    '%s makes no books where there are none',
    async (line) => {
      const data = join(folder, 'nowhere')
      const { code, err } = await say([...line.split(' '), '--data', data])
      expect(code).toBe(2)
      expect(err).toContain(`There are no books under "${data}"`)
      expect(existsSync(data)).toBe(false)
    },
  )

  test.each(['teams', 'estimate demo go', 'run demo go --dry-run'])(
    '%s needs no books and makes none',
    async (line) => {
      const data = join(folder, 'none')
      expect((await say([...line.split(' '), '--data', data])).code).toBe(0)
      expect(existsSync(data)).toBe(false)
    },
  )

  test('a file of limits that is wrong, with its place', async () => {
    const teams = join(folder, 'limited')
    await mkdir(teams)
    await writeFile(join(teams, 'limits.yaml'), 'limits:\n  - { per: day, max_cost: much }\n')
    for (const line of [
      ['run', 'demo', 'go'],
      ['dev', '--port', '0'],
    ]) {
      const { code, err } = await say([...line, '--teams', teams, '--data', join(folder, 'd')])
      expect(code).toBe(2)
      expect(err).toMatch(/limits\.yaml:2:\d+: .*max_cost/)
    }
  })

  test('a setting that is wrong', async () => {
    const { code, err } = await say(['run', 'demo', 'go', '--data', join(folder, 'd')], {
      env: { SUBLEDGER_LEASE_SECONDS: '-1' },
    })
    expect({ code, err }).toEqual({
      code: 2,
      err: 'SUBLEDGER_LEASE_SECONDS is "-1": it must be a number of seconds above 0',
    })
  })
})

test('an API that does not answer is a failure, not wrong use', async () => {
  const { code, err } = await say(['list'], { env: { SUBLEDGER_URL: 'http://127.0.0.1:9' } })
  expect(code).toBe(1)
  expect(err).toMatch(/does not answer/)
})

test('help is asked for, and is no error', async () => {
  for (const argv of [['help'], ['--help'], ['run', '--help'], ['dev', '-h']]) {
    const { code, out, err } = await say(argv)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('subledger')
  }
})

test('help tells the options that all commands have in common', async () => {
  for (const argv of [['help'], ['list', '--help'], ['run', '-h']]) {
    const { out } = await say(argv)
    for (const option of ['--data DIR', '--teams DIR', '--url URL', '--auth iam', 'SUBLEDGER_TOKEN', '--json'])
      expect(out).toContain(option)
  }
  expect((await say(['validate', '--help'])).out).not.toContain('--url')
})

test('the version is that of the package', async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'))
  for (const argv of [['--version'], ['-v'], ['version']])
    expect(await say(argv)).toEqual({ code: 0, out: version, err: '' })
})

describe('validate', () => {
  test('says what is good about a good file', async () => {
    const { code, out } = await say(['validate', 'teams/demo.yaml', 'teams/tasks.yaml'])
    expect(code).toBe(0)
    expect(out).toMatch(/^teams\/demo\.yaml: good \(6 agents, 6 models\)\nteams\/tasks\.yaml: good/)
  })

  test('says file, line and column of what is wrong, and looks at the other files all the same', async () => {
    const file = join(folder, 'bad.yaml')
    await writeFile(file, 'agents:\n  root:\n    model: m\n    toolsets:\n      - type: shell\nmodels: {}\n')
    const { code, out, err } = await say(['validate', file, 'teams/demo.yaml'])
    expect(code).toBe(2)
    expect(err).toMatch(new RegExp(`^${file}:\\d+:\\d+: error: .*m`))
    expect(err).toContain(`${file}:5:`)
    expect(out).toContain('teams/demo.yaml: good')
  })

  test('leniently leaves out with a warning what has no place here', async () => {
    const file = join(folder, 'lenient.yaml')
    await writeFile(file, 'agents:\n  root:\n    model: openai/gpt-5\n    toolsets:\n      - type: shell\n')
    expect((await say(['validate', file])).code).toBe(2)
    const { code, out, err } = await say(['validate', file, '--lenient'])
    expect(code).toBe(0)
    expect(err).toMatch(/:5:\d+: warning: /)
    expect(out).toMatch(/good \(1 agent, 1 model\)/)
  })

  test('a file that is no text', async () => {
    const file = join(folder, 'bytes.yaml')
    await writeFile(file, new Uint8Array([0xff, 0xfe, 0x00]))
    expect(await say(['validate', file])).toMatchObject({
      code: 2,
      err: `${file}: error: is not UTF-8 text: see byte 0`,
    })
  })
})
